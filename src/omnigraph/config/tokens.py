"""Tokens: which bearer token goes to which address, and to no other.

    a graph's own variable (`graphs.<n>.bearer_token_env`), from the environment or the env file
    the operator server whose address is the longest prefix: its variable, then the credentials file
    OMNIGRAPH_BEARER_TOKEN, from the environment or the env file

A token that belongs to a server is sent to addresses below that server's and nowhere else: prefixes
end at a path boundary, and an address with dots for segments is below nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from omnigraph.config.credentials import read_token
from omnigraph.config.operator import Operator, OperatorServer
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConfigError

SHARED_VARIABLE = "OMNIGRAPH_BEARER_TOKEN"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Url:
    """An address taken apart, so that what looks alike is not taken for the same."""

    origin: tuple[str, str, int | None]
    segments: tuple[str, ...]

    def covers(self, other: _Url) -> bool:
        count = len(self.segments)
        is_plain = not any(unquote(each) in (".", "..") for each in other.segments)
        return is_plain and self.origin == other.origin and self.segments == other.segments[:count]


def server_for(url: str, operator: Operator) -> OperatorServer | None:
    """The operator's server that an address belongs to: the longest prefix."""
    wanted = _split_url(url)
    covering = [
        (len(found.segments), server)
        for server in operator.servers.values()
        if wanted is not None
        and (found := _split_url(server.url)) is not None
        and found.covers(wanted)
    ]
    return max(covering, key=lambda pair: pair[0])[1] if covering else None


def token_for(
    url: str,
    operator: Operator,
    environment: Mapping[str, str],
    *,
    own_variable: str | None = None,
    env_file: Path | None = None,
) -> str | None:
    """The token to send with a request, or None.

    Raises:
        ConfigError: The credentials file or the env file cannot be used.
    """
    fallback = {} if env_file is None else read_env_file(env_file)

    def look_up(name: str) -> str | None:
        return environment.get(name, "").strip() or fallback.get(name) or None

    if own_variable is not None and (own := look_up(own_variable)) is not None:
        return own
    server = server_for(url, operator)
    if server is not None:
        keyed = environment.get(server.token_variable, "").strip() or read_token(
            operator.credentials_path, server.name
        )
        if keyed:
            return keyed
    return look_up(SHARED_VARIABLE)


def read_env_file(path: Path) -> dict[str, str]:
    """The `KEY=VALUE` lines of a file; blank lines, comments and `export` are allowed."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"cannot read the env file '{path}'") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip().removeprefix("export ").strip()
        if not text or text.startswith("#"):
            continue
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"{path}:{number}: expected KEY=VALUE")
        found[name.strip()] = _unquote(value.strip())
    return found


def _unquote(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def _split_url(url: str) -> _Url | None:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if scheme not in _PORTS or not host or parts.username is not None:
        return None
    segments = tuple(each for each in parts.path.split("/") if each)
    return _Url((scheme, host, port or _PORTS[scheme]), segments)
