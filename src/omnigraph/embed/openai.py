"""The wire format of OpenAI, which OpenRouter and many local servers speak too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from omnigraph.embed.config import EmbedConfig
from omnigraph.embed.embedder import unit_vectors
from omnigraph.embed.http import JsonClient

BATCH_TEXTS_MAX = 128
BATCH_CHARACTERS_MAX = 200_000


class OpenAiEmbedder:
    """`POST {base}/embeddings`, many texts per request. Queries and documents are alike."""

    def __init__(self, config: EmbedConfig) -> None:
        self.model = config.model
        key = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
        self._client = JsonClient(config, key)

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        parts = [self._embed(batch, dimension) for batch in batches(texts)]
        return np.concatenate(parts) if parts else np.zeros((0, dimension), np.float32)

    def embed_query(self, text: str, dimension: int) -> list[float]:
        vector: list[float] = self._embed([text], dimension)[0].tolist()
        return vector

    def _embed(self, texts: list[str], dimension: int) -> np.ndarray:
        body = {"model": self.model, "input": texts, "dimensions": dimension}
        vectors = _in_order(self._client.post("/embeddings", body), len(texts))
        if vectors is None:
            raise self._client.reply_error("not a list of one embedding per text")
        return unit_vectors(vectors, dimension)


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut texts into requests of bounded count and size; a long text goes alone."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        full = len(batch) >= BATCH_TEXTS_MAX or characters + len(text) > BATCH_CHARACTERS_MAX
        if batch and full:
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


def _in_order(reply: Any, count: int) -> list[list[float]] | None:
    """The vectors by their index, or None when the reply is anything else."""
    try:
        found = {int(item["index"]): item["embedding"] for item in reply["data"]}
        vectors = [[float(number) for number in found[place]] for place in range(count)]
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return vectors if len(found) == count else None
