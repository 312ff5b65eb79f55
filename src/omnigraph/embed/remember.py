"""Remember: an embedder that asks for no text twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.embed.embedder import Embedder


class RememberingEmbedder:
    """Passes on the texts that it has not seen. For one write, which may be prepared again."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[tuple[str, int], np.ndarray] = {}

    @property
    def model(self) -> str:
        return self._embedder.model

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if (text, dimension) not in self._vectors]
        if new:
            made = self._embedder.embed_documents(new, dimension)
            self._vectors.update(zip(((text, dimension) for text in new), made, strict=True))
        vectors = [self._vectors[text, dimension] for text in texts]
        return np.array(vectors, np.float32).reshape(-1, dimension)

    def forget(self) -> None:
        """Let go of the vectors: what they were for is written."""
        self._vectors.clear()

    def embed_query(self, text: str, dimension: int) -> list[float]:
        return self._embedder.embed_query(text, dimension)
