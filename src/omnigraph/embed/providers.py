"""Providers: the one table from a provider's name to its embedder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from omnigraph.embed.config import (
    BASE_URL,
    MOCK,
    MODEL,
    NOT_CONFIGURED,
    PROVIDER,
    EmbedConfig,
    Provider,
    config_from_environment,
)
from omnigraph.embed.embedder import Embedder
from omnigraph.embed.mock import MockEmbedder
from omnigraph.errors import EmbeddingNotConfigured


def _mock(config: EmbedConfig) -> Embedder:
    return MockEmbedder(config.model)


def _openai(config: EmbedConfig) -> Embedder:
    # httpx takes longer to import than all the rest of this package.
    from omnigraph.embed.openai import OpenAiEmbedder

    return OpenAiEmbedder(config)


def _gemini(config: EmbedConfig) -> Embedder:
    from omnigraph.embed.gemini import GeminiEmbedder

    return GeminiEmbedder(config)


_PROVIDERS: dict[Provider, Callable[[EmbedConfig], Embedder]] = {
    Provider.OPENAI_COMPATIBLE: _openai,
    Provider.OPENAI: _openai,
    Provider.GEMINI: _gemini,
    Provider.MOCK: _mock,
}


def make_embedder(config: EmbedConfig) -> Embedder:
    """The embedder of a resolved configuration. Nothing is contacted yet."""
    return _PROVIDERS[config.provider](config)


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
        return _require(embedder_from_environment())

    @cached_property
    def _document_embedder(self) -> Embedder:
        return _require(embedder_of_documents())

    @property
    def model(self) -> str:
        return self._embedder.model

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        return self._document_embedder.embed_documents(texts, dimension)

    def embed_query(self, text: str, dimension: int) -> list[float]:
        return self._embedder.embed_query(text, dimension)


def _require(embedder: Embedder | None) -> Embedder:
    if embedder is None:
        raise EmbeddingNotConfigured(NOT_CONFIGURED)
    return embedder
