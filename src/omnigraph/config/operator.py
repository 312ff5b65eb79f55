"""Operator: `~/.omnigraph/config.yaml`, what a person has on a machine: servers, profiles, aliases.

`$OMNIGRAPH_HOME` replaces `~/.omnigraph`. Tokens are never in this file; see `credentials.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from omnigraph.config.document import Table, read_document
from omnigraph.config.project import FORMATS, LAYOUTS, read_column_width
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConfigError, did_you_mean

HOME_VARIABLE = "OMNIGRAPH_HOME"
CONFIG_FILE = "config.yaml"

ScopeKind: TypeAlias = Literal["server", "cluster", "store"]
_SCOPE_KINDS: tuple[ScopeKind, ...] = ("server", "cluster", "store")
_KEYS = ("operator", "servers", "clusters", "profiles", "defaults", "aliases")
_ALIAS = ("server", "graph", "query", "args", "params", "format")


@dataclass(frozen=True, slots=True)
class OperatorServer:
    name: str
    url: str

    @property
    def token_variable(self) -> str:
        """The environment variable that holds this server's token."""
        return f"OMNIGRAPH_TOKEN_{self.name.upper().replace('-', '_')}"


@dataclass(frozen=True, slots=True)
class Profile:
    """A named scope. What it binds is checked when it is used, so that one bad one harms none."""

    name: str
    bindings: Mapping[ScopeKind, str]
    default_graph: str | None
    place: str

    def binding(self) -> tuple[ScopeKind, str]:
        """The one thing the profile addresses.

        Raises:
            ConfigError: It binds none or several, or a graph inside a store.
        """
        if len(self.bindings) != 1:
            raise ConfigError(
                f"{self.place}: profile '{self.name}' needs exactly one of server, cluster, store"
            )
        [(kind, target)] = self.bindings.items()
        if kind == "store" and self.default_graph is not None:
            raise ConfigError(
                f"{self.place}: profile '{self.name}' has a default_graph, but a store is one graph"
            )
        return kind, target


@dataclass(frozen=True, slots=True)
class Defaults:
    output: str | None = None
    table_max_column_width: int | None = None
    table_cell_layout: str | None = None
    server: str | None = None
    default_graph: str | None = None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorAlias:
    """A name for a stored query of a server, with its arguments."""

    name: str
    server: str
    query: str
    graph: str | None = None
    args: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator config, and the directory it is in."""

    home: Path
    actor: str | None = None
    servers: Mapping[str, OperatorServer] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=Defaults)
    aliases: Mapping[str, OperatorAlias] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def config_path(self) -> Path:
        return self.home / CONFIG_FILE

    @property
    def credentials_path(self) -> Path:
        return self.home / "credentials"

    def server(self, name: str) -> OperatorServer:
        """The server of that name."""
        found = self.servers.get(name)
        if found is None:
            raise self._unknown("server", name, self.servers)
        return found

    def profile(self, name: str) -> Profile:
        """The profile of that name."""
        found = self.profiles.get(name)
        if found is None:
            raise self._unknown("profile", name, self.profiles)
        return found

    def _unknown(self, what: str, name: str, known: Mapping[str, object]) -> ConfigError:
        hint = did_you_mean(name, known) or f"add it there under `{what}s:`"
        return ConfigError(f"{what} '{name}' is not in {self.config_path} — {hint}")


def operator_home(environment: Mapping[str, str] | None = None) -> Path:
    """The directory of the operator's files."""
    given = (os.environ if environment is None else environment).get(HOME_VARIABLE, "").strip()
    return Path(given or "~/.omnigraph").expanduser()


def load_operator(environment: Mapping[str, str] | None = None) -> Operator:
    """Read the operator config; absent is empty.

    Raises:
        ConfigError: The file cannot be used; every problem is named with its place.
    """
    home = operator_home(environment)
    warnings: list[str] = []
    read = partial(_operator, home)
    found = read_document(home / CONFIG_FILE, read, known=_KEYS, warnings=warnings)
    return Operator(home) if found is None else replace(found, warnings=tuple(warnings))


def _operator(home: Path, top: Table) -> Operator:
    clusters = top.tables("clusters", "root")
    profiles = top.tables("profiles", *_SCOPE_KINDS, "default_graph")
    return Operator(
        home=home,
        actor=top.table("operator", "actor").text("actor"),
        servers=_servers(top),
        clusters={name: table.require("root") for name, table in clusters},
        profiles={name: _profile(name, table) for name, table in profiles},
        defaults=_defaults(top.table("defaults", *Defaults.__dataclass_fields__)),
        aliases={name: _alias(name, table) for name, table in top.tables("aliases", *_ALIAS)},
    )


def _servers(top: Table) -> dict[str, OperatorServer]:
    servers: dict[str, OperatorServer] = {}
    variables: dict[str, str] = {}
    for name, table in top.tables("servers", "url"):
        url = table.require("url")
        problem = _url_problem(url) if url else None
        if problem is not None:
            table.note(problem)
        server = OperatorServer(name, url.rstrip("/"))
        other = variables.setdefault(server.token_variable, name)
        if other != name:
            # One variable for two hosts would send the token of one to the other.
            table.note(
                f"servers '{other}' and '{name}' would share the token variable "
                f"{server.token_variable} — rename one"
            )
        servers[name] = server
    return servers


def _url_problem(url: str) -> str | None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"'{url}' is not a server address — expected http(s)://host"
    if parts.username is not None or parts.query or parts.fragment:
        return "a server address is a host and a path, nothing more"
    return None


def server_url(url: str, place: str) -> str:
    """A server's address without the slash at its end.

    Raises:
        ConfigError: It is no http(s) address, or it holds a password.
    """
    problem = _url_problem(url)
    if problem is not None:
        raise ConfigError(f"{place}: {problem}")
    return url.rstrip("/")


def _profile(name: str, table: Table) -> Profile:
    bindings = {kind: found for kind in _SCOPE_KINDS if (found := table.text(kind)) is not None}
    return Profile(name, bindings, table.text("default_graph"), table.place)


def _defaults(table: Table) -> Defaults:
    found = Defaults(
        table.choice("output", FORMATS),
        read_column_width(table),
        table.choice("table_cell_layout", LAYOUTS),
        table.text("server"),
        table.text("default_graph"),
        table.text("store"),
    )
    if found.server is not None and found.store is not None:
        table.note("has both server and store — keep one")
    if found.store is not None and found.default_graph is not None:
        table.note("default_graph picks a graph of a server, but defaults.store is one graph")
    return found


def _alias(name: str, table: Table) -> OperatorAlias:
    return OperatorAlias(
        name=name,
        server=table.require("server"),
        query=table.require("query"),
        graph=table.text("graph"),
        args=table.texts("args"),
        params=table.values("params"),
        format=table.choice("format", FORMATS),
    )
