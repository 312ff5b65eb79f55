"""Conversions: a subgraph in the forms of other libraries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.graph.subgraph import Subgraph


def to_networkx(subgraph: Subgraph) -> Any:
    """A `networkx.MultiDiGraph`: nodes are (type, id), edges have their id as key."""
    made = require_package("networkx").MultiDiGraph()
    made.add_nodes_from(
        (key, {"type": key[0], "id": key[1], **card}) for key, card in subgraph.nodes.items()
    )
    made.add_edges_from(
        (each.source, each.target, each.id, {"type": each.type, "id": each.id, **each.properties})
        for each in subgraph.edges
    )
    return made


def to_igraph(subgraph: Subgraph) -> Any:
    """A directed `igraph.Graph`, vertices and edges with `type`, `id` and their properties."""
    number = {key: place for place, key in enumerate(subgraph.nodes)}
    made = require_package("igraph").Graph(len(number), directed=True)
    made.add_edges((number[each.source], number[each.target]) for each in subgraph.edges)
    nodes = [{"type": key[0], "id": key[1], **card} for key, card in subgraph.nodes.items()]
    edges = [{"type": each.type, "id": each.id, **each.properties} for each in subgraph.edges]
    for sequence, rows in ((made.vs, nodes), (made.es, edges)):
        for name in dict.fromkeys(name for row in rows for name in row):
            sequence[name] = [row.get(name) for row in rows]
    return made


def require_package(package: str) -> Any:
    """Import what only this conversion needs.

    Raises:
        BadRequestError: It is not installed.
    """
    try:
        return import_module(package)
    except ImportError:
        raise BadRequestError(
            f"{package} is not installed — `pip install {package}`, or read `.nodes` and `.edges`"
        ) from None
