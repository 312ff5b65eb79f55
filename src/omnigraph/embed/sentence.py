"""Models of the package sentence-transformers, when it is installed. Nothing is downloaded.

A model in a folder is named by its weights: the same model in another folder, or on another
machine, goes on where the first one stopped, and another model in the same folder does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from omnigraph.embed.embedder import unit_vectors
from omnigraph.errors import EmbeddingNotConfigured

BATCH_TEXTS = 64
WEIGHT_ENDINGS = (".safetensors", ".bin")

_loading = Lock()
"""Two threads that load at a time break each other's model."""


class SentenceEmbedder:
    """Embeds in this process, with a model that is on this machine, by its name or its path."""

    def __init__(self, model: str) -> None:
        self._place = model

    @property
    def model(self) -> str:
        return name_model(self._place)

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        if not texts:
            return np.zeros((0, dimension), np.float32)
        return self._encode("encode_document", texts, dimension)

    def embed_query(self, text: str, dimension: int) -> list[float]:
        vector: list[float] = self._encode("encode_query", [text], dimension)[0].tolist()
        return vector

    def _encode(self, role: str, texts: Sequence[str], dimension: int) -> np.ndarray:
        with _loading:
            model = load_model(self._place)
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
        with _without_bar():
            return package.SentenceTransformer(name, local_files_only=True)
    except (OSError, ValueError) as error:
        raise EmbeddingNotConfigured(
            f"the model '{name}' of OMNIGRAPH_EMBED_MODEL cannot be loaded from this machine "
            f"({type(error).__name__}) — download it first, or give the path of its folder"
        ) from error


@cache
def name_model(place: str) -> str:
    """What is recorded of a model: its name, or for a folder a digest of its weights."""
    folder = Path(place)
    weights = sorted(each for each in folder.rglob("*") if _tells_apart(each.relative_to(folder)))
    if not weights:
        return place
    digest = hashlib.sha256()
    for path in weights:
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"sentence-transformers:{digest.hexdigest()[:16]}"


def _tells_apart(path: Path) -> bool:
    """Whether a file makes the vectors what they are: weights, and how the words are pooled.

    Copies for other runtimes, and what a download notes of itself, do not.
    """
    if path.parts[0] in ("onnx", "openvino") or path.parts[0].startswith("."):
        return False
    return path.suffix in WEIGHT_ENDINGS or (len(path.parts) > 1 and path.name == "config.json")


@contextmanager
def _without_bar() -> Iterator[None]:
    """No bar of the package on the screen: a command says what it does in its own words."""
    try:
        logging: Any = import_module("transformers.utils.logging")
    except ImportError:
        yield
        return
    was_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_shown:
            logging.enable_progress_bar()
