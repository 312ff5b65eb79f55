"""Spread: embed texts where a runner runs them, in this process or in Spark workers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from omnigraph.embed import EmbedColumn, EmbedSource
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.runner import Runner

CHUNK_TEXTS = 5_000


class SpreadEmbedder:
    """Embeds chunks of texts where the runner runs them."""

    def __init__(
        self, runner: Runner, source: EmbedSource, column: EmbedColumn, model: str
    ) -> None:
        self.model = model
        self._runner = runner
        self._function = partial(_embed_chunk, source, column)

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        chunks = [texts[start : start + CHUNK_TEXTS] for start in range(0, len(texts), CHUNK_TEXTS)]
        made = self._runner.map(self._function, chunks, Reporter(None))
        return np.concatenate([np.zeros((0, dimension), np.float32), *made])

    def embed_query(self, text: str, dimension: int) -> list[float]:
        vector: list[float] = self.embed_documents([text], dimension)[0].tolist()
        return vector


def _embed_chunk(source: EmbedSource, column: EmbedColumn, texts: Sequence[str]) -> np.ndarray:
    embedder = source.find_for_documents(column)
    assert embedder is not None
    return embedder.embed_documents(texts, column.dimension)
