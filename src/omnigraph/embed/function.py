"""The embedder of a program: a function from texts to vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from omnigraph.embed.embedder import unit_vectors
from omnigraph.errors import EmbeddingFailed, OmnigraphError

EmbedFunction: TypeAlias = Callable[[list[str]], Any]
"""Takes a list of texts and returns an array, or a list, of one vector per text."""

BATCH_TEXTS = 1_024


class FunctionEmbedder:
    """Asks a function, some texts at a time. Queries and documents are embedded alike."""

    def __init__(self, function: EmbedFunction, model: str) -> None:
        self.model = model
        self._function = function

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        parts = [
            self._embed(list(texts[start : start + BATCH_TEXTS]), dimension)
            for start in range(0, len(texts), BATCH_TEXTS)
        ]
        return np.concatenate([np.zeros((0, dimension), np.float32), *parts])

    def embed_query(self, text: str, dimension: int) -> list[float]:
        vector: list[float] = self._embed([text], dimension)[0].tolist()
        return vector

    def _embed(self, texts: list[str], dimension: int) -> np.ndarray:
        try:
            made = np.asarray(self._function(texts), np.float64)
        except OmnigraphError:
            raise
        except Exception as error:
            raise EmbeddingFailed(
                f"the embedder '{self.model}' failed on {len(texts)} texts: "
                f"{type(error).__name__}: {error}"
            ) from error
        if made.ndim != 2 or len(made) != len(texts):
            raise EmbeddingFailed(
                f"the embedder '{self.model}' gave an array of shape {made.shape} for "
                f"{len(texts)} texts, expected ({len(texts)}, {dimension})"
            )
        return unit_vectors(made, dimension)
