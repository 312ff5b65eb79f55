"""Configuration: which provider embeds, as whom, and how patiently.

    OMNIGRAPH_EMBEDDINGS_MOCK      1, true, yes or on: the mock provider, whatever else is set
    OMNIGRAPH_EMBED_PROVIDER       local, sentence-transformers, openai-compatible, openai,
                                   gemini, mock
    OMNIGRAPH_EMBED_BASE_URL       the provider's own address when not set
    OMNIGRAPH_EMBED_MODEL          the provider's own default when not set
    OMNIGRAPH_EMBED_TIMEOUT_MS     30000   one request
    OMNIGRAPH_EMBED_DEADLINE_MS    60000   one call with all its retries; 0 is unbounded
    OMNIGRAPH_EMBED_RETRY_ATTEMPTS     4
    OMNIGRAPH_EMBED_RETRY_BACKOFF_MS 200   doubles with each attempt

Keys: OMNIGRAPH_EMBED_API_KEY, then OPENROUTER_API_KEY and OPENAI_API_KEY for openai-compatible,
OPENAI_API_KEY for openai, GEMINI_API_KEY for gemini. A server on this machine needs none. An
address or a model without a provider means openai-compatible. Nothing is chosen when there is no
key, and no provider, address or model is set; `source.py` says what happens then.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from omnigraph.dataclass import dataclass
from omnigraph.errors import EmbeddingNotConfigured

MOCK = "OMNIGRAPH_EMBEDDINGS_MOCK"
PROVIDER = "OMNIGRAPH_EMBED_PROVIDER"
BASE_URL = "OMNIGRAPH_EMBED_BASE_URL"
MODEL = "OMNIGRAPH_EMBED_MODEL"
API_KEY = "OMNIGRAPH_EMBED_API_KEY"
API_KEY_ENV = "OMNIGRAPH_EMBED_API_KEY_ENV"
"""The variable that the settings of a graph name for the key; errors name it."""
TIMEOUT_MS = "OMNIGRAPH_EMBED_TIMEOUT_MS"
DEADLINE_MS = "OMNIGRAPH_EMBED_DEADLINE_MS"
RETRY_ATTEMPTS = "OMNIGRAPH_EMBED_RETRY_ATTEMPTS"
RETRY_BACKOFF_MS = "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS"

LOCAL_MODEL = "wordllama-l2-supercat"
LOCAL_DIMENSIONS = (64, 128, 256)
"""The model is trained so that the first components of a vector are a vector on their own."""

_TRUE = frozenset({"1", "true", "yes", "on"})
_log = logging.getLogger("omnigraph.embed")


class Provider(StrEnum):
    """The embedding service, or a model on this machine."""

    LOCAL = "local"
    SENTENCE_TRANSFORMERS = "sentence-transformers"
    OPENAI_COMPATIBLE = "openai-compatible"
    OPENAI = "openai"
    GEMINI = "gemini"
    MOCK = "mock"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a provider uses where nothing is set; keys are tried in order."""

    base_url: str
    model: str
    key_variables: tuple[str, ...]


DEFAULTS: dict[Provider, Defaults] = {
    Provider.OPENAI_COMPATIBLE: Defaults(
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    Provider.OPENAI: Defaults(
        "https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)
    ),
    Provider.GEMINI: Defaults(
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
    ),
    Provider.LOCAL: Defaults("", LOCAL_MODEL, ()),
    Provider.SENTENCE_TRANSFORMERS: Defaults("", "", ()),
    Provider.MOCK: Defaults("", "", ()),
}

NOT_CONFIGURED = (
    f"no embedding provider is configured — set {PROVIDER}: local, sentence-transformers, or "
    "openai-compatible, openai or gemini with its key (OPENROUTER_API_KEY, OPENAI_API_KEY or "
    "GEMINI_API_KEY), or give the vectors"
)


@dataclass(frozen=True, slots=True)
class EmbedConfig:
    """One resolved configuration. The key is never shown."""

    provider: Provider
    model: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_ms: int = 30_000
    deadline_ms: int = 60_000
    retry_attempts: int = 4
    retry_backoff_ms: int = 200

    @property
    def public_url(self) -> str:
        """The address without what may be secret in it: a user, a password, a query."""
        return re.sub(r"//[^/]*@", "//", self.base_url).partition("?")[0]


def describe_local() -> str:
    """The vector types that the local model can make."""
    *others, last = (f"Vector({each})" for each in LOCAL_DIMENSIONS)
    return f"{', '.join(others)} or {last}"


def config_from_environment(environment: Mapping[str, str]) -> EmbedConfig | None:
    """Resolve the variables; None when nothing is configured.

    Raises:
        EmbeddingNotConfigured: Something is set but the key is not, the provider does not exist,
            or a number is not one.
    """
    named = environment.get(PROVIDER, "").strip()
    provider = _provider(environment, named)
    defaults = DEFAULTS[provider]
    base_url = _base_url(environment.get(BASE_URL, "").strip() or defaults.base_url)
    variables = defaults.key_variables
    if environment.get(API_KEY_ENV):
        variables = (API_KEY,)
    elif variables:
        variables = (API_KEY, *variables)
    key = next((environment[name] for name in variables if environment.get(name)), "")
    if defaults.key_variables and not key and not is_loopback(base_url):
        if not any(environment.get(name) for name in (PROVIDER, BASE_URL, MODEL)):
            return None
        named = environment.get(API_KEY_ENV) or " or ".join(defaults.key_variables)
        raise EmbeddingNotConfigured(
            f"embedding provider '{provider}' needs an API key — set {named}"
        )
    model = environment.get(MODEL) or defaults.model
    if provider is Provider.LOCAL and model != LOCAL_MODEL:
        raise EmbeddingNotConfigured(
            f"{MODEL} is '{model}', but provider 'local' has one model, '{LOCAL_MODEL}' — unset "
            f"{MODEL}, or choose another provider with {PROVIDER}"
        )
    if provider is Provider.SENTENCE_TRANSFORMERS and not model:
        raise EmbeddingNotConfigured(
            f"provider '{provider}' needs a model — set {MODEL} to its name or its folder"
        )
    return EmbedConfig(
        provider,
        model,
        base_url,
        key.strip(),
        _whole(environment, TIMEOUT_MS, 30_000, at_least=1),
        _whole(environment, DEADLINE_MS, 60_000, at_least=0),
        _whole(environment, RETRY_ATTEMPTS, 4, at_least=1),
        _whole(environment, RETRY_BACKOFF_MS, 200, at_least=0),
    )


def _provider(environment: Mapping[str, str], named: str) -> Provider:
    if environment.get(MOCK, "").strip().lower() in _TRUE:
        if named and named != Provider.MOCK:
            _log.warning("%s overrides %s=%s: vectors are made up", MOCK, PROVIDER, named)
        return Provider.MOCK
    try:
        return Provider(named) if named else Provider.OPENAI_COMPATIBLE
    except ValueError:
        known = ", ".join(Provider)
        raise EmbeddingNotConfigured(
            f"{PROVIDER} is '{named}', which is not a provider — use one of {known}"
        ) from None


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _base_url(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", text):
        raise EmbeddingNotConfigured(
            f"{BASE_URL} is not an address — expected http:// or https://, a host and a path"
        )
    return text.rstrip("/")


def _whole(environment: Mapping[str, str], name: str, default: int, *, at_least: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < at_least:
        raise EmbeddingNotConfigured(
            f"{name} is '{text}' — expected a whole number of at least {at_least}"
        )
    return int(text)
