"""The wire format of Gemini: one text a request, and a task that tells queries from documents."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal
from urllib.parse import quote

import numpy as np

from omnigraph.embed.config import EmbedConfig
from omnigraph.embed.embedder import unit_vectors
from omnigraph.embed.http import JsonClient

REQUESTS_AT_ONCE = 8
Task = Literal["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"]


class GeminiEmbedder:
    """`POST {base}/models/{model}:embedContent`, several requests at once for documents."""

    def __init__(self, config: EmbedConfig) -> None:
        self.model = config.model
        self._client = JsonClient(config, {"x-goog-api-key": config.api_key})

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            tasks = [
                pool.submit(self._embed, text, dimension, "RETRIEVAL_DOCUMENT") for text in texts
            ]
            try:
                vectors = [task.result() for task in tasks]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return unit_vectors(vectors, dimension)

    def embed_query(self, text: str, dimension: int) -> list[float]:
        vector = self._embed(text, dimension, "RETRIEVAL_QUERY")
        unit: list[float] = unit_vectors([vector], dimension)[0].tolist()
        return unit

    def _embed(self, text: str, dimension: int, task: Task) -> list[float]:
        body = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": task,
            "outputDimensionality": dimension,
        }
        reply = self._client.post(f"/models/{quote(self.model, safe='')}:embedContent", body)
        try:
            return [float(number) for number in reply["embedding"]["values"]]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._client.reply_error("not an embedding") from None
