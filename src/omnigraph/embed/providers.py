"""Providers: from a provider's name to its embedder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from omnigraph.embed.config import (
    BASE_URL,
    MOCK,
    MODEL,
    PROVIDER,
    EmbedConfig,
    Provider,
    config_from_environment,
)
from omnigraph.embed.embedder import Embedder, require_embedder
from omnigraph.embed.mock import MockEmbedder


def make_embedder(config: EmbedConfig) -> Embedder:
    """The embedder of a resolved configuration. Nothing is contacted yet."""
    # httpx, which the providers below need, takes longer to import than the rest of this package.
    match config.provider:
        case Provider.MOCK:
            return MockEmbedder(config.model)
        case Provider.OPENAI | Provider.OPENAI_COMPATIBLE:
            from omnigraph.embed.openai import OpenAiEmbedder

            return OpenAiEmbedder(config)
        case Provider.GEMINI:
            from omnigraph.embed.gemini import GeminiEmbedder

            return GeminiEmbedder(config)


def embedder_from_environment(environment: Mapping[str, str] | None = None) -> Embedder | None:
    """The embedder that the environment configures, or None. Call it when one is needed.

    Raises:
        EmbeddingNotConfigured: What is configured cannot work; names the variable to set.
    """
    config = config_from_environment(os.environ if environment is None else environment)
    return None if config is None else make_embedder(config)


def embedder_of_documents(environment: Mapping[str, str] | None = None) -> Embedder | None:
    """The embedder for text to be stored, or None when no provider is chosen.

    A key alone is no choice: many programs set one, and stored text must not leave the machine
    because of it. The provider, its address or the model has to be named.
    """
    given = os.environ if environment is None else environment
    if not any(given.get(name) for name in (MOCK, PROVIDER, BASE_URL, MODEL)):
        return None
    return embedder_from_environment(given)


class EnvironmentEmbedder:
    """The embedder of the environment, looked up when the first text has to be embedded.

    A query that embeds nothing needs no provider, and a broken setting does not disturb it.
    """

    @cached_property
    def _embedder(self) -> Embedder:
        return require_embedder(embedder_from_environment())

    @cached_property
    def _document_embedder(self) -> Embedder:
        return require_embedder(embedder_of_documents())

    @property
    def model(self) -> str:
        return self._embedder.model

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        return self._document_embedder.embed_documents(texts, dimension)

    def embed_query(self, text: str, dimension: int) -> list[float]:
        return self._embedder.embed_query(text, dimension)
