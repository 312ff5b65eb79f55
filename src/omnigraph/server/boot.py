"""Boot: the arguments of a server, its project file and the environment → settings.

omnigraph-server URI                       that graph
omnigraph-server --target NAME             that graph of omnigraph.yaml
omnigraph-server                           `server.graph` of omnigraph.yaml, or all its graphs
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from omnigraph.config import Project, load_project
from omnigraph.config.document import read_text
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ConfigError
from omnigraph.server.settings import (
    DEFAULT_BIND,
    DEFAULT_GRAPH_ID,
    ServedGraph,
    ServerSettings,
    is_graph_id,
    is_truthy,
    limits_from,
    query_engine_from,
    tokens_from,
)
from omnigraph.storage.location import graph_root

log = logging.getLogger("omnigraph.server")

CLUSTER = "OMNIGRAPH_CLUSTER"
UNAUTHENTICATED = "OMNIGRAPH_UNAUTHENTICATED"
REQUIRE_ALL_GRAPHS = "OMNIGRAPH_REQUIRE_ALL_GRAPHS"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of the command."""

    uri: str | None = None
    target: str | None = None
    config: Path | None = None
    cluster: str | None = None
    bind: str | None = None
    unauthenticated: bool = False
    require_all_graphs: bool = False


def resolve_settings(arguments: Arguments, environment: Mapping[str, str]) -> ServerSettings:
    """Resolve arguments, files and environment to settings.

    Raises:
        BadRequestError: They contradict each other, or name nothing to serve.
    """
    if arguments.cluster is not None or environment.get(CLUSTER):
        raise BadRequestError(
            "this build does not serve a cluster — serve its graphs with --config omnigraph.yaml"
        )
    if arguments.uri is not None and arguments.target is not None:
        raise BadRequestError("a URI and --target both name a graph — give one of them")
    project = load_project(arguments.config)
    graphs, is_single = _graphs(arguments, project)
    return ServerSettings(
        graphs=graphs,
        is_single=is_single,
        bind=arguments.bind or project.server.bind or DEFAULT_BIND,
        tokens=tokens_from(environment),
        server_policy_text=_text(project.server.policy_file),
        server_policy_name=str(project.server.policy_file),
        unauthenticated=arguments.unauthenticated or is_truthy(environment.get(UNAUTHENTICATED)),
        require_all_graphs=(
            arguments.require_all_graphs or is_truthy(environment.get(REQUIRE_ALL_GRAPHS))
        ),
        limits=limits_from(environment),
        query_engine=query_engine_from(environment),
    )


def _graphs(arguments: Arguments, project: Project) -> tuple[tuple[ServedGraph, ...], bool]:
    """The graphs to serve, and whether there is one by choice: then it has the flat paths too."""
    if arguments.uri is not None:
        return (_graph_by_uri(arguments.uri, project),), True
    chosen = arguments.target or project.server.graph or _find_only(project)
    if chosen is not None:
        return (_graph_by_name(chosen, project, is_only=True),), True
    return tuple(_graph_by_name(name, project) for name in sorted(project.graphs)), False


def _find_only(project: Project) -> str | None:
    """The only graph, if its name cannot stand in a path: then it has the flat paths."""
    names = list(project.graphs)
    return names[0] if len(names) == 1 and not is_graph_id(names[0]) else None


def _choose_id(name: str) -> str:
    """The id of a graph of the project: its name, or where that cannot stand in a path, another."""
    if is_graph_id(name):
        return name
    log.warning(
        "graph '%s' is served as '%s': its name cannot stand in a path", name, DEFAULT_GRAPH_ID
    )
    return DEFAULT_GRAPH_ID


def _graph_by_uri(uri: str, project: Project) -> ServedGraph:
    return ServedGraph(
        DEFAULT_GRAPH_ID,
        uri,
        policy_text=_text(project.policy_file),
        policy_name=str(project.policy_file),
        policy_resource=str(graph_root(uri)),
        queries=project.queries,
        query_directory=project.query_directory,
    )


def _graph_by_name(name: str, project: Project, *, is_only: bool = False) -> ServedGraph:
    found = project.graph(name)
    if found.is_served:
        raise ConfigError(f"graph '{name}' is at '{found.uri}', which is a server — serve a store")
    return ServedGraph(
        _choose_id(name) if is_only else name,
        found.uri,
        policy_text=_text(found.policy_file),
        policy_name=str(found.policy_file),
        queries=found.queries,
        query_directory=found.query_directory,
        retention=found.retention,
        embedding=found.embedding,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else read_text(path)
