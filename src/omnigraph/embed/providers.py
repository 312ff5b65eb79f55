"""Providers: from a provider's name to its embedder."""

from __future__ import annotations

import os
from collections.abc import Mapping

from omnigraph.embed.config import (
    BASE_URL,
    MOCK,
    MODEL,
    PROVIDER,
    EmbedConfig,
    Provider,
    config_from_environment,
)
from omnigraph.embed.embedder import Embedder
from omnigraph.embed.mock import MockEmbedder


def make_embedder(config: EmbedConfig) -> Embedder:
    """The embedder of a resolved configuration. Nothing is contacted yet."""
    # What the providers below need takes longer to import than the rest of this package.
    match config.provider:
        case Provider.LOCAL:
            from omnigraph.embed.local import LocalEmbedder

            return LocalEmbedder()
        case Provider.MOCK:
            return MockEmbedder(config.model)
        case Provider.SENTENCE_TRANSFORMERS:
            from omnigraph.embed.sentence import SentenceEmbedder

            return SentenceEmbedder(config.model)
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
