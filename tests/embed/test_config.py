"""The environment says who embeds; what is missing is named."""

from __future__ import annotations

import logging

import pytest

from omnigraph.embed import Provider, config_from_environment, embedder_from_environment
from omnigraph.embed.config import EmbedConfig
from omnigraph.embed.mock import MockEmbedder
from omnigraph.errors import EmbeddingNotConfigured


@pytest.mark.parametrize(
    ("environment", "provider", "url", "model", "key"),
    [
        (
            {"OPENROUTER_API_KEY": "r", "OPENAI_API_KEY": "o"},
            Provider.OPENAI_COMPATIBLE,
            "https://openrouter.ai/api/v1",
            "openai/text-embedding-3-large",
            "r",
        ),
        (
            {"OPENROUTER_API_KEY": "", "OPENAI_API_KEY": "o"},
            Provider.OPENAI_COMPATIBLE,
            "https://openrouter.ai/api/v1",
            "openai/text-embedding-3-large",
            "o",
        ),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OPENAI_API_KEY": "o"},
            Provider.OPENAI,
            "https://api.openai.com/v1",
            "text-embedding-3-large",
            "o",
        ),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "gemini", "GEMINI_API_KEY": "g"},
            Provider.GEMINI,
            "https://generativelanguage.googleapis.com/v1beta",
            "gemini-embedding-2",
            "g",
        ),
        (
            {
                "OMNIGRAPH_EMBED_PROVIDER": "openai",
                "OPENAI_API_KEY": "o",
                "OMNIGRAPH_EMBED_BASE_URL": "http://localhost:1/v1/",
                "OMNIGRAPH_EMBED_MODEL": "mine",
            },
            Provider.OPENAI,
            "http://localhost:1/v1",
            "mine",
            "o",
        ),
        ({"OMNIGRAPH_EMBED_PROVIDER": "mock"}, Provider.MOCK, "", "", ""),
    ],
)
def test_each_provider_has_its_own_defaults(
    environment: dict[str, str], provider: Provider, url: str, model: str, key: str
) -> None:
    assert config_from_environment(environment) == EmbedConfig(provider, model, url, key)


def test_patience_is_read_from_the_environment() -> None:
    config = config_from_environment(
        {
            "OPENAI_API_KEY": "o",
            "OMNIGRAPH_EMBED_TIMEOUT_MS": "1",
            "OMNIGRAPH_EMBED_DEADLINE_MS": "0",
            "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "2",
            "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "3",
        }
    )

    assert config is not None
    patience = (config.timeout_ms, config.deadline_ms, config.retry_attempts)
    assert (*patience, config.retry_backoff_ms) == (1, 0, 2, 3)


def test_nothing_set_is_no_provider_and_not_the_mock() -> None:
    assert config_from_environment({}) is None
    assert embedder_from_environment({"UNRELATED": "1"}) is None


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OMNIGRAPH_EMBED_PROVIDER": "openai"}, "set OPENAI_API_KEY"),
        ({"OMNIGRAPH_EMBED_PROVIDER": "gemini", "OPENAI_API_KEY": "o"}, "set GEMINI_API_KEY"),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "openai-compatible"},
            "set OPENROUTER_API_KEY or OPENAI_API_KEY",
        ),
        ({"OMNIGRAPH_EMBED_MODEL": "m"}, "set OPENROUTER_API_KEY or OPENAI_API_KEY"),
        ({"OMNIGRAPH_EMBED_PROVIDER": "opnai"}, "OMNIGRAPH_EMBED_PROVIDER is 'opnai'"),
        (
            {"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_BASE_URL": "localhost:1"},
            "OMNIGRAPH_EMBED_BASE_URL is not an address",
        ),
        (
            {"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_TIMEOUT_MS": "soon"},
            "OMNIGRAPH_EMBED_TIMEOUT_MS is 'soon'",
        ),
        (
            {"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "0"},
            "OMNIGRAPH_EMBED_RETRY_ATTEMPTS is '0'",
        ),
    ],
)
def test_an_incomplete_configuration_names_the_variable(
    environment: dict[str, str], words: str
) -> None:
    with pytest.raises(EmbeddingNotConfigured, match=words):
        embedder_from_environment(environment)


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_the_mock_switch_wins_and_warns_when_it_overrides(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    environment = {
        "OMNIGRAPH_EMBEDDINGS_MOCK": value,
        "OMNIGRAPH_EMBED_PROVIDER": "openai",
        "OMNIGRAPH_EMBED_MODEL": "m",
    }

    with caplog.at_level(logging.WARNING):
        embedder = embedder_from_environment(environment)

    assert embedder == MockEmbedder("m")
    assert "OMNIGRAPH_EMBEDDINGS_MOCK overrides" in caplog.text


def test_the_mock_switch_turned_off_is_off() -> None:
    assert embedder_from_environment({"OMNIGRAPH_EMBEDDINGS_MOCK": "0"}) is None


def test_a_configuration_shows_neither_its_key_nor_a_password() -> None:
    config = EmbedConfig(Provider.OPENAI, "m", "https://me:secret@host:8/v1?k=secret", "secret")

    assert "secret" not in repr(config).replace(config.base_url, "")
    assert config.public_url == "https://host:8/v1"
