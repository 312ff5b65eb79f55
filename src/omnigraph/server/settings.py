"""Settings: what a server serves, to whom, and within which limits. No I/O but `tokens_from`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from omnigraph.config.document import read_text
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.graph.reads import READ_ENGINES
from omnigraph.server.auth import NO_TOKENS, TokenEntry, Tokens
from omnigraph.server.token_entries import parse_entries

DEFAULT_GRAPH_ID = "default"
DEFAULT_BIND = "127.0.0.1:8080"
_GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
_RESERVED_IDS = frozenset({"policies"})
WRITE_THREADS_MAX = 512

TOKEN = "OMNIGRAPH_SERVER_BEARER_TOKEN"
TOKENS_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
TOKENS_JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
TOKENS_SECRET = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"
QUERY_ENGINE = "OMNIGRAPH_QUERY_ENGINE"
DEFAULT_ACTOR = "default"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one client may ask for. Every one of them can be set in the environment."""

    body_bytes_max: int = 1 << 20
    load_bytes_max: int = 32 << 20
    upload_bytes_max: int = 1 << 30
    line_bytes_max: int = 32 << 20
    json_depth_max: int = 64
    actor_requests_max: int = 16
    actor_bytes_max: int = 4 << 30
    exports_per_graph_max: int = 4
    exports_max: int = 8
    export_wait_seconds: float = 0.25
    event_streams_max: int = 64
    read_threads: int = 16
    stall_seconds: float = 60.0
    shutdown_seconds: int = 60
    reload_seconds: float = 2.0


LIMIT_VARIABLES: Mapping[str, str] = {
    "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "actor_requests_max",
    "OMNIGRAPH_PER_ACTOR_BYTES_MAX": "actor_bytes_max",
    "OMNIGRAPH_SERVER_BODY_BYTES_MAX": "body_bytes_max",
    "OMNIGRAPH_SERVER_LOAD_BYTES_MAX": "load_bytes_max",
    "OMNIGRAPH_SERVER_UPLOAD_BYTES_MAX": "upload_bytes_max",
    "OMNIGRAPH_SERVER_EXPORTS_PER_GRAPH_MAX": "exports_per_graph_max",
    "OMNIGRAPH_SERVER_EXPORTS_MAX": "exports_max",
    "OMNIGRAPH_SERVER_EVENT_STREAMS_MAX": "event_streams_max",
    "OMNIGRAPH_SERVER_READ_THREADS": "read_threads",
    "OMNIGRAPH_SERVER_STALL_SECONDS": "stall_seconds",
    "OMNIGRAPH_SERVER_SHUTDOWN_SECONDS": "shutdown_seconds",
    "OMNIGRAPH_SERVER_RELOAD_SECONDS": "reload_seconds",
}


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """One graph to serve. `queries` are the entries of its stored queries, by name.

    They are the files of `query_directory`, if there is one.
    """

    graph_id: str
    uri: str
    policy_text: str | None = field(default=None, repr=False)
    policy_name: str = "policy"
    policy_resource: str | None = None
    queries: Mapping[str, Any] = field(default_factory=dict)
    query_directory: Path | None = None
    retention: str | None = None
    embedding: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_graph_id(self.graph_id)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Everything a server is started with. With `is_single` the flat paths are served as well."""

    graphs: tuple[ServedGraph, ...]
    is_single: bool = True
    bind: str = DEFAULT_BIND
    tokens: Tokens = NO_TOKENS
    server_policy_text: str | None = field(default=None, repr=False)
    server_policy_name: str = "server policy"
    unauthenticated: bool = False
    require_all_graphs: bool = False
    limits: Limits = Limits()
    query_engine: str = "local"

    @property
    def is_open(self) -> bool:
        """Whether every caller may do everything: there are no tokens, by explicit wish."""
        return not self.tokens

    @property
    def write_threads(self) -> int:
        """One thread per write that can be admitted, so that no actor waits for another."""
        wanted = self.limits.actor_requests_max * max(1, len(self.tokens))
        return min(wanted, WRITE_THREADS_MAX)

    def check(self) -> None:
        """Refuse a server that no caller could use, or every caller by oversight.

        Raises:
            BadRequestError: There is nothing to serve, or no statement about who may use it.
        """
        if not self.graphs:
            raise BadRequestError(
                "no graph to serve — give a URI, --target <name>, or --config with `graphs:`"
            )
        ids = [graph.graph_id for graph in self.graphs]
        if len(set(ids)) != len(ids):
            raise BadRequestError(f"two graphs have the same id among {', '.join(sorted(ids))}")
        if self.tokens:
            return
        has_policy = self.server_policy_text is not None or any(
            graph.policy_text is not None for graph in self.graphs
        )
        if has_policy:
            raise BadRequestError(
                "there is a policy but no bearer token, so every request would be refused — "
                f"set {TOKENS_FILE}"
            )
        if not self.unauthenticated:
            raise BadRequestError(
                f"there are no bearer tokens — set {TOKEN} or {TOKENS_FILE}, or start with "
                "--unauthenticated to let every client that can connect do everything"
            )


def is_graph_id(text: str) -> bool:
    """Whether a text can be the id of a graph."""
    return bool(_GRAPH_ID.fullmatch(text)) and text not in _RESERVED_IDS


def check_graph_id(text: str) -> None:
    """Refuse an id that cannot stand in a path.

    Raises:
        BadRequestError: It cannot.
    """
    if not is_graph_id(text):
        raise BadRequestError(
            f"'{text[:80]}' is not a graph id — use 1 to 64 letters, digits and '-'; "
            "'policies' is reserved"
        )


def is_truthy(value: str | None) -> bool:
    """Whether an environment value switches something on."""
    return bool(value) and value not in ("0", "false")


def tokens_from(environment: Mapping[str, str]) -> Tokens:
    """The tokens that the environment names, hashed; the plain ones are not kept.

    Raises:
        BadRequestError: A source cannot be read, or an entry is blank or there twice.
    """
    if environment.get(TOKENS_SECRET):
        raise BadRequestError(
            f"{TOKENS_SECRET} is set, but this build does not read AWS secrets — "
            f"put the tokens into a file and set {TOKENS_FILE}"
        )
    entries: list[TokenEntry] = []
    single = environment.get(TOKEN)
    if single is not None:
        entries.append(TokenEntry(DEFAULT_ACTOR, single))
    path = environment.get(TOKENS_FILE)
    inline = environment.get(TOKENS_JSON)
    if path:
        entries += parse_entries(read_text(Path(path)), f"{path} (of {TOKENS_FILE})")
    elif inline:
        entries += parse_entries(inline, TOKENS_JSON)
    return Tokens.from_entries(entries)


def limits_from(environment: Mapping[str, str]) -> Limits:
    """The limits, with those that the environment sets.

    Raises:
        BadRequestError: A value is not a positive number.
    """
    found: dict[str, Any] = {}
    for variable, name in LIMIT_VARIABLES.items():
        text = environment.get(variable)
        if text is None:
            continue
        if not text.isdecimal() or int(text) < 1:
            raise BadRequestError(f"{variable} is {text!r}, expected a positive whole number")
        found[name] = int(text)
    return Limits(**found)


def query_engine_from(environment: Mapping[str, str]) -> str:
    """The engine that answers reads: this process, unless the environment says otherwise.

    Raises:
        BadRequestError: It names no engine.
    """
    engine = environment.get(QUERY_ENGINE) or "local"
    if engine not in READ_ENGINES:
        known = ", ".join(READ_ENGINES)
        raise BadRequestError(f"{QUERY_ENGINE} is {engine!r}, expected one of {known}")
    return engine
