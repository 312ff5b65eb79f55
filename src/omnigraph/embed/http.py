"""One JSON request to a provider, tried again when trying again can help.

Timeouts, broken connections, 429 and 5xx are tried again, with a pause that doubles and varies;
anything else fails at once. A call ends by its deadline, pauses and retries included. Errors show
what the provider said, never the key.
"""

from __future__ import annotations

import random
import time
from dataclasses import field
from typing import Any

import httpx

from omnigraph.dataclass import dataclass
from omnigraph.embed.config import EmbedConfig
from omnigraph.errors import EmbeddingFailed

_SHOWN_CHARACTERS = 300
_UNSENDABLE = (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError)


@dataclass(frozen=True, slots=True)
class JsonClient:
    """Posts JSON as one provider, over kept connections. Thread-safe."""

    config: EmbedConfig
    headers: dict[str, str] = field(repr=False)
    _client: httpx.Client = field(default_factory=httpx.Client, repr=False, compare=False)

    def post(self, path: str, body: object) -> Any:
        """Return the JSON reply.

        Raises:
            EmbeddingFailed: The provider refused, stayed away, or did not reply with JSON.
        """
        call = _Call(self.config)
        while True:
            outcome = self._attempt(path, body, call)
            if isinstance(outcome, httpx.Response):
                return self._json(outcome)
            if not call.may_try_again(outcome.wait_s):
                raise EmbeddingFailed(
                    f"the embedding provider at {self.config.public_url} {outcome.reason} "
                    f"({call.attempts} attempts) — try again later, or write without vectors "
                    "(`--no-embed`) and run `omnigraph embed` then"
                )

    def _attempt(self, path: str, body: object, call: _Call) -> httpx.Response | _Transient:
        call.attempts += 1
        try:
            response = self._client.post(
                self.config.base_url + path,
                json=body,
                headers=self.headers,
                timeout=call.request_timeout_s(),
            )
        except httpx.TimeoutException:
            return _Transient("did not answer in time")
        except (*_UNSENDABLE, ValueError) as error:
            raise EmbeddingFailed(
                f"'{self.config.public_url}' cannot be asked for embeddings "
                f"({type(error).__name__}) — check OMNIGRAPH_EMBED_BASE_URL and the API key"
            ) from None
        except httpx.HTTPError as error:
            return _Transient(f"could not be reached ({type(error).__name__})")
        if response.status_code == 429 or response.status_code >= 500:
            reason = f"answered {response.status_code}{self._error_text(response)}"
            return _Transient(reason, _retry_after_s(response))
        return response

    def _json(self, response: httpx.Response) -> Any:
        if not response.is_success:
            raise EmbeddingFailed(
                f"the embedding provider at {self.config.public_url} refused the request: "
                f"{response.status_code}{self._error_text(response)} — "
                "check the model and the API key"
            )
        try:
            return response.json()
        except ValueError:
            raise self.reply_error("not JSON") from None

    def reply_error(self, what: str) -> EmbeddingFailed:
        """The error for a reply that is not what the wire format says."""
        return EmbeddingFailed(
            f"the embedding provider at {self.config.public_url} sent a reply that is {what} — "
            "check OMNIGRAPH_EMBED_BASE_URL and OMNIGRAPH_EMBED_PROVIDER"
        )

    def _error_text(self, response: httpx.Response) -> str:
        """What the provider said about it, cut short, with the key taken out."""
        try:
            error = response.json()["error"]
            text = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, KeyError, TypeError):
            return ""
        if self.config.api_key:
            text = text.replace(self.config.api_key, "***")
        return f": {' '.join(text.split())[:_SHOWN_CHARACTERS]}"


@dataclass(frozen=True, slots=True)
class _Transient:
    """A failure that may pass. `wait_s` is how long the provider asked us to wait."""

    reason: str
    wait_s: float = 0.0


class _Call:
    """The attempts of one call and the time they have left."""

    def __init__(self, config: EmbedConfig) -> None:
        self._config = config
        self._ends = time.monotonic() + config.deadline_ms / 1000 if config.deadline_ms else None
        self.attempts = 0

    def request_timeout_s(self) -> float:
        timeout = self._config.timeout_ms / 1000
        return timeout if self._ends is None else max(min(timeout, self._remaining_s()), 0.001)

    def may_try_again(self, wait_s: float) -> bool:
        """Sleep before the next attempt; False when there is none, or no time for it."""
        if self.attempts >= self._config.retry_attempts:
            return False
        backoff = self._config.retry_backoff_ms / 1000 * 2 ** (self.attempts - 1)
        pause = max(backoff * random.uniform(0.5, 1.5), wait_s)
        if self._ends is not None and pause >= self._remaining_s():
            return False
        time.sleep(pause)
        return True

    def _remaining_s(self) -> float:
        assert self._ends is not None
        return self._ends - time.monotonic()


def _retry_after_s(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0
