"""One request and its answer. A refusal becomes a `RemoteError` with the server's own words.

Redirects are not followed: a token goes to the address it belongs to and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from omnigraph.errors import RemoteError
from omnigraph.version import __version__

Json = dict[str, Any]

CONNECT_SECONDS = 10.0
# A load or a merge answers when it is done, however long that takes.
ANSWER_SECONDS = 3_600.0
_ENVELOPE = frozenset({"error", "code"})
_TOKEN_HINT = "`omnigraph login <server>` keeps one, or set OMNIGRAPH_BEARER_TOKEN"


@dataclass(frozen=True, slots=True)
class Http:
    """Requests below one address, with one token."""

    base: str
    token: str | None = field(default=None, repr=False)

    def below(self, *segments: str) -> Http:
        """The same below a longer path; each segment is encoded as one."""
        path = "/".join(quote(each, safe="") for each in segments)
        return Http(f"{self.base}/{path}", self.token)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Send a request and return the JSON object it is answered with.

        Raises:
            RemoteError: The server refused, did not answer, or is no Omnigraph server.
        """
        with self._stream(
            method, path, json=body, content=content, params=params, headers=headers
        ) as answer:
            answer.read()
            return _object(answer)

    def lines(self, path: str, body: Json) -> Iterator[str]:
        """Send a request and yield the lines of its answer as they come."""
        with self._stream("POST", path, json=body) as answer:
            rest = b""
            for chunk in answer.iter_bytes():
                # Not `iter_lines`: that also breaks at characters which JSON has inside texts.
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line.decode() for line in whole if line)
            if rest:
                yield rest.decode()

    @contextmanager
    def _stream(self, method: str, path: str, **options: Any) -> Iterator[httpx.Response]:
        headers = {
            "Accept": "application/json, application/x-ndjson",
            "User-Agent": f"omnigraph/{__version__}",
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
            **(options.pop("headers", None) or {}),
        }
        timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        try:
            with (
                httpx.Client(timeout=timeout, follow_redirects=False) as client,
                client.stream(method, self.base + path, headers=headers, **options) as answer,
            ):
                if not answer.is_success:
                    answer.read()
                    raise _refusal(answer)
                yield answer
        except httpx.RemoteProtocolError:
            raise RemoteError(
                f"the answer of {self.base} broke off — discard what came of it"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise RemoteError(
                f"no answer from {self.base}: {reason} — is the server up, and the address right?"
            ) from None


def _object(answer: httpx.Response) -> Json:
    try:
        found = json.loads(answer.content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RemoteError(
            f"{answer.url} answered {answer.status_code}, but not as an Omnigraph server does",
            status=answer.status_code,
        )
    return found


def _refusal(answer: httpx.Response) -> RemoteError:
    if answer.is_redirect:
        where = answer.headers.get("location", "elsewhere")
        return RemoteError(
            f"{answer.url} redirects to {where} — use that address if you trust it",
            status=answer.status_code,
        )
    envelope = _object(answer)
    text = str(envelope.get("error") or f"the server answered {answer.status_code}")
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        text = f"{text} — {_TOKEN_HINT}"
    code = envelope.get("code")
    return RemoteError(
        text,
        status=answer.status_code,
        code=code if isinstance(code, str) else None,
        details={name: value for name, value in envelope.items() if name not in _ENVELOPE},
    )
