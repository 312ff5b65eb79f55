"""Models of the package sentence-transformers, when it is installed. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from omnigraph.embed.embedder import unit_vectors
from omnigraph.errors import EmbeddingNotConfigured

BATCH_TEXTS = 64


class SentenceEmbedder:
    """Embeds in this process, with a model that is on this machine, by its name or its path."""

    def __init__(self, model: str) -> None:
        self.model = model

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        if not texts:
            return np.zeros((0, dimension), np.float32)
        return self._encode("encode_document", texts, dimension)

    def embed_query(self, text: str, dimension: int) -> list[float]:
        vector: list[float] = self._encode("encode_query", [text], dimension)[0].tolist()
        return vector

    def _encode(self, role: str, texts: Sequence[str], dimension: int) -> np.ndarray:
        model = load_model(self.model)
        # Releases before 5 have one method for both roles.
        encode = getattr(model, role, model.encode)
        made = encode(list(texts), batch_size=BATCH_TEXTS, show_progress_bar=False)
        return unit_vectors(np.asarray(made), dimension)


@cache
def load_model(name: str) -> Any:
    """The model of a name or a folder, from this machine only."""
    try:
        package: Any = import_module("sentence_transformers")
    except ImportError:
        raise EmbeddingNotConfigured(
            "provider 'sentence-transformers' needs the package — `pip install "
            "sentence-transformers`, or choose another provider with OMNIGRAPH_EMBED_PROVIDER"
        ) from None
    try:
        return package.SentenceTransformer(name, local_files_only=True)
    except (OSError, ValueError) as error:
        raise EmbeddingNotConfigured(
            f"the model '{name}' of OMNIGRAPH_EMBED_MODEL cannot be loaded from this machine "
            f"({type(error).__name__}) — download it first, or give the path of its folder"
        ) from error
