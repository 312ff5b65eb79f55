"""One request and its response. An error status becomes a `RemoteError` with the server's text.

Redirects are not followed: a token is sent only to the address that it belongs to.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from typing import IO, Any
from urllib.parse import quote

import httpx

from omnigraph.dataclass import dataclass
from omnigraph.errors import RemoteError
from omnigraph.version import __version__

Json = dict[str, Any]

CONNECT_SECONDS = 10.0
# The response to a load or a merge is sent when it is done.
RESPONSE_SECONDS = 3_600.0
_ENVELOPE = frozenset({"error", "code"})
_TOKEN_HINT = "`omnigraph login <server>` keeps one, or set OMNIGRAPH_BEARER_TOKEN"


@dataclass(frozen=True, slots=True)
class Http:
    """Requests below one address, with one token."""

    base: str
    token: str | None = field(default=None, repr=False)

    def below(self, *segments: str) -> Http:
        """Return a client for a longer path; each segment is percent-encoded."""
        path = "/".join(quote(each, safe="") for each in segments)
        return Http(f"{self.base}/{path}", self.token)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        content: bytes | IO[bytes] | None = None,
        files: Sequence[tuple[str, Any]] | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Send a request and return the JSON object of the response.

        Raises:
            RemoteError: The server refused, did not respond, or is not an Omnigraph server.
        """
        with self.stream(
            method,
            path,
            json=body,
            content=content,
            files=files,
            params=params,
            headers=headers,
        ) as response:
            response.read()
            return _parse_object(response)

    def text(self, method: str, path: str, *, params: Mapping[str, Any]) -> str:
        """Send a request and return the text of the response."""
        with self.stream(method, path, params=params) as response:
            return response.read().decode()

    def lines(self, method: str, path: str, **options: Any) -> Iterator[str]:
        """Send a request and yield the lines of the response as they arrive."""
        with self.stream(method, path, **options) as response:
            rest = b""
            for chunk in response.iter_bytes():
                # Not `iter_lines`: it also breaks at characters that JSON allows inside strings.
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line.decode() for line in whole if line)
            if rest:
                yield rest.decode()

    @contextmanager
    def stream(self, method: str, path: str, **options: Any) -> Iterator[httpx.Response]:
        """Send a request; its response can be read while it arrives.

        Raises:
            RemoteError: The server refused, did not respond, or broke off.
        """
        headers = {
            "Accept": "application/json, application/x-ndjson",
            "User-Agent": f"omnigraph/{__version__}",
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
            **(options.pop("headers", None) or {}),
        }
        timeout = httpx.Timeout(RESPONSE_SECONDS, connect=CONNECT_SECONDS)
        try:
            with (
                httpx.Client(
                    timeout=timeout, follow_redirects=False, verify=_load_trust()
                ) as client,
                client.stream(method, self.base + path, headers=headers, **options) as response,
            ):
                if not response.is_success:
                    response.read()
                    raise _to_error(response)
                yield response
        except httpx.RemoteProtocolError:
            raise RemoteError(
                f"the response of {self.base} broke off — discard the part that arrived"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise RemoteError(
                f"no response from {self.base}: {reason} — is the server up, and the address right?"
            ) from None


@cache
def _load_trust() -> ssl.SSLContext:
    """Read the certificates once per process: it takes longer than a short request."""
    return httpx.create_ssl_context()


def _parse_object(response: httpx.Response) -> Json:
    try:
        found = json.loads(response.content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RemoteError(
            f"{response.url} answered {response.status_code}, but not as an Omnigraph server does",
            status=response.status_code,
        )
    return found


def _to_error(response: httpx.Response) -> RemoteError:
    if response.is_redirect:
        where = response.headers.get("location", "elsewhere")
        return RemoteError(
            f"{response.url} redirects to {where} — use that address if you trust it",
            status=response.status_code,
        )
    envelope = _parse_object(response)
    text = str(envelope.get("error") or f"the server answered {response.status_code}")
    if response.status_code == httpx.codes.UNAUTHORIZED:
        text = f"{text} — {_TOKEN_HINT}"
    code = envelope.get("code")
    return RemoteError(
        text,
        status=response.status_code,
        code=code if isinstance(code, str) else None,
        details={name: value for name, value in envelope.items() if name not in _ENVELOPE},
    )
