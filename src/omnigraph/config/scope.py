"""Scope: which graph a command is about, from what was typed and what is configured.

1  an explicit address      a URI, --store, --server
2  --target NAME            a graph of omnigraph.yaml
3  --profile NAME           or OMNIGRAPH_PROFILE
4  the operator's defaults  defaults.server (with default_graph), or defaults.store
5  cli.graph                of omnigraph.yaml
6  nothing                  an error that names the ways
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TypeAlias, assert_never

from omnigraph.config.operator import Operator, Profile, load_operator, server_url
from omnigraph.config.project import Project, StoredEntry, load_project
from omnigraph.config.tokens import token_for
from omnigraph.dataclass import dataclass
from omnigraph.errors import AddressError, BadRequestError, ConfigError

PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"
NO_CLUSTERS = (
    "clusters are not part of this build — address a graph with --store, --server or --target"
)
_NESTED = re.compile(r"(?P<base>https?://.+)/graphs/(?P<graph>[A-Za-z0-9-]{1,64})")


@dataclass(frozen=True, slots=True)
class Address:
    """What was typed about where: at most one of these, and `graph` beside a server."""

    uri: str | None = None
    store: str | None = None
    server: str | None = None
    cluster: str | None = None
    target: str | None = None
    profile: str | None = None
    graph: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Both config files and the environment."""

    project: Project
    operator: Operator
    environment: Mapping[str, str]


def load_settings(config: Path | None = None) -> Settings:
    """Read both config files as they are now."""
    return Settings(load_project(config), load_operator(), dict(os.environ))


@dataclass(frozen=True, slots=True)
class DirectScope:
    """A graph in storage. A `policy_file` gates its writes; `name` is what the policy calls it."""

    uri: str
    name: str | None = None
    policy_file: Path | None = None
    queries: Mapping[str, StoredEntry] = field(default_factory=dict)
    query_directory: Path | None = None
    retention: str | None = None
    embedding: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri or self.uri.startswith("file:")


@dataclass(frozen=True, slots=True)
class ServedScope:
    """A graph of a server. Without a `graph` the server is asked which ones it has."""

    url: str
    graph: str | None = None
    queries: Mapping[str, StoredEntry] = field(default_factory=dict)
    token_variable: str | None = None

    def token(self, settings: Settings) -> str | None:
        """The bearer token that belongs to this address."""
        return token_for(
            self.url if self.graph is None else f"{self.url}/graphs/{self.graph}",
            settings.operator,
            settings.environment,
            own_variable=self.token_variable,
            env_file=settings.project.auth_env_file,
        )


Scope: TypeAlias = DirectScope | ServedScope


def resolve_scope(address: Address, settings: Settings) -> Scope:
    """The one graph, or server, that is meant.

    Raises:
        AddressError: Several were given, or none.
        ConfigError: A name is not configured, or what is configured does not fit together.
    """
    _refuse_several(address)
    scope = (
        _explicit(address, settings)
        or (_target_scope(address.target, settings) if address.target is not None else None)
        or _active_profile_scope(address, settings)
        or _default_scope(settings)
        or (
            _target_scope(settings.project.cli.graph, settings)
            if settings.project.cli.graph
            else None
        )
    )
    if scope is None:
        raise AddressError(
            "no graph addressed — give its path, --store <path or URI>, --server <name or URL>, "
            "--target <name in omnigraph.yaml> or --profile <name>"
        )
    return _with_graph(scope, address.graph)


def server_scope(name_or_url: str, operator: Operator) -> ServedScope:
    """A server by its name in the operator config, or by its address."""
    if name_or_url.startswith(("http://", "https://")):
        return _to_served_scope(server_url(name_or_url, "--server"))
    return _to_served_scope(operator.server(name_or_url).url)


def profile_scope(profile: Profile, operator: Operator) -> Scope:
    """What a profile addresses.

    Raises:
        ConfigError: It binds none or several, or something that is not there.
    """
    kind, target = profile.binding()
    match kind:
        case "server":
            return _with_graph(server_scope(target, operator), profile.default_graph)
        case "store":
            return DirectScope(target)
        case "cluster":
            raise ConfigError(f"{profile.place}: profile '{profile.name}': {NO_CLUSTERS}")
        case _:
            assert_never(kind)


def _refuse_several(address: Address) -> None:
    given = {
        "a URI": address.uri,
        "--store": address.store,
        "--server": address.server,
        "--cluster": address.cluster,
        "--target": address.target,
        "--profile": address.profile,
    }
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise AddressError(
            f"{' and '.join(names)} are mutually exclusive — pick one way to address the graph"
        )


def _explicit(address: Address, settings: Settings) -> Scope | None:
    if address.cluster is not None:
        raise AddressError(NO_CLUSTERS)
    if address.server is not None:
        return server_scope(address.server, settings.operator)
    if address.store is not None:
        return DirectScope(_location(address.store))
    if address.uri is not None:
        project = settings.project
        return DirectScope(
            _location(address.uri),
            policy_file=project.policy_file,
            queries=project.queries,
            query_directory=project.query_directory,
        )
    return None


def _location(text: str) -> str:
    if text.startswith(("http://", "https://")):
        raise BadRequestError(f"'{text}' is a server, not a store — use --server {text}")
    return text


def _target_scope(name: str, settings: Settings) -> Scope:
    graph = settings.project.graph(name)
    if graph.is_served:
        served = _to_served_scope(server_url(graph.uri, f"graphs.{graph.name}.uri"))
        return replace(served, queries=graph.queries, token_variable=graph.bearer_token_env)
    return DirectScope(
        graph.uri,
        graph.name,
        graph.policy_file,
        graph.queries,
        graph.query_directory,
        graph.retention,
        graph.embedding,
    )


def _active_profile_scope(address: Address, settings: Settings) -> Scope | None:
    name = address.profile or settings.environment.get(PROFILE_VARIABLE, "").strip()
    if not name:
        return None
    return profile_scope(settings.operator.profile(name), settings.operator)


def _default_scope(settings: Settings) -> Scope | None:
    defaults = settings.operator.defaults
    if defaults.store is not None:
        return DirectScope(defaults.store)
    if defaults.server is None:
        return None
    return _with_graph(server_scope(defaults.server, settings.operator), defaults.default_graph)


def _to_served_scope(url: str) -> ServedScope:
    nested = _NESTED.fullmatch(url)
    return ServedScope(url) if nested is None else ServedScope(nested["base"], nested["graph"])


def _with_graph(scope: Scope, graph: str | None) -> Scope:
    """The scope with a graph of the server picked; it replaces the one that is the default."""
    if graph is None:
        return scope
    match scope:
        case ServedScope():
            return replace(scope, graph=graph)
        case DirectScope():
            raise AddressError(
                f"--graph picks a graph inside a server, but '{scope.uri}' is a store — "
                "leave --graph out"
            )
        case _:
            assert_never(scope)
