"""Subgraph: the nodes and edges that a read matched, or some of a graph, for pictures and programs.

A read is traced (see `compiler/trace.py`) for ids; nodes and edges are then read once each, with
the properties that fit on a card: no vectors, no blobs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.catalog import EdgeType, EntityType
from omnigraph.compiler.compile import parse_file, select_query
from omnigraph.compiler.trace import TracedQuery, trace_matches
from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, count_noun, show_html, show_text
from omnigraph.executor.result import json_values
from omnigraph.graph.arrays import choose_types
from omnigraph.graph.state_view import StateView
from omnigraph.syntax.print_query import print_query
from omnigraph.syntax.query_tree import QueryTree

NODES_MAX = 5_000

NodeKey: TypeAlias = tuple[str, str]
"""Type and id: two types may use one id."""


@dataclass(frozen=True, slots=True)
class SubgraphEdge:
    """One edge between two nodes of a subgraph."""

    type: str
    id: str
    source: NodeKey
    target: NodeKey
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Nodes with their properties, edges between them. `is_cut` when there are more of them."""

    nodes: Mapping[NodeKey, Mapping[str, Any]]
    edges: tuple[SubgraphEdge, ...]
    is_cut: bool = False

    def to_networkx(self) -> Any:
        """A `networkx.MultiDiGraph`: nodes are (type, id), edges have their id as key."""
        from omnigraph.graph.conversions import to_networkx

        return to_networkx(self)

    def to_igraph(self) -> Any:
        """An `igraph.Graph` whose vertices and edges have `type`, `id` and their properties."""
        from omnigraph.graph.conversions import to_igraph

        return to_igraph(self)

    def make_sheet(self) -> Sheet:
        counts = Counter(("node", type_name) for type_name, _ in self.nodes)
        counts.update(("edge", edge.type) for edge in self.edges)
        rows = [(*name, number) for name, number in counts.items()]
        cut = ", the first of more" if self.is_cut else ""
        nodes, edges = count_noun(len(self.nodes), "node"), count_noun(len(self.edges), "edge")
        return Sheet(f"{nodes} and {edges}{cut}", grids=[Grid(("", "type", "count"), rows)])

    __repr__ = show_text
    _repr_html_ = show_html


def find_matches(
    view: StateView, text: str, name: str | None, params: Mapping[str, Any] | None, rows_max: int
) -> Subgraph:
    """What a read matches, of at most so many rows."""
    traced = trace_matches(select_query(parse_file(text, "query.gq"), name), rows_max)
    table = view.ask(print_query(QueryTree((traced.query,))), params).table
    nodes = dict.fromkeys(_list_nodes(traced, table))
    ids: dict[str, dict[str, None]] = defaultdict(dict)
    for edge_name, id_ in _list_edges(traced, table):
        ids[edge_name][id_] = None
    edges: list[SubgraphEdge] = []
    for edge_name, wanted in ids.items():
        edge = view.catalog.edge(edge_name)
        assert edge is not None  # the read was compiled with this catalogue
        edges += list_edges(edge, view.read(edge, list_shown(edge), ids=wanted))
    nodes |= dict.fromkeys(end for edge in edges for end in (edge.source, edge.target))
    return _fill(view, nodes, edges, NODES_MAX, is_cut=table.num_rows >= rows_max)


def sample_graph(view: StateView, types: Collection[str] | None, nodes_max: int) -> Subgraph:
    """At most so many nodes of these types, of all if none are named, and the edges among them.

    The first edges decide which nodes are shown, so that what is shown hangs together.
    """
    chosen = choose_types(view.catalog, types)
    inner = {each.name for each in chosen if not isinstance(each, EdgeType)}
    tables = [
        (each, view.read(each, list_shown(each), limit=nodes_max + 1))
        for each in chosen
        if isinstance(each, EdgeType) and {each.source, each.target} <= inner
    ]
    found = [edge for each, table in tables for edge in list_edges(each, table)]
    nodes = dict.fromkeys(end for edge in found for end in (edge.source, edge.target))
    for each in chosen:
        if not isinstance(each, EdgeType):
            ids = view.read(each, (), limit=nodes_max + 1)["id"]
            nodes |= dict.fromkeys((each.name, id_) for id_ in ids.to_pylist())
    is_cut = any(table.num_rows > nodes_max for _, table in tables)
    return _fill(view, nodes, found, nodes_max, is_cut=is_cut)


def read_whole(view: StateView, types: Iterable[EntityType]) -> Subgraph:
    """All rows of these types; an edge type only when both of its ends are there."""
    chosen = list(types)
    nodes = {
        (each.name, card.pop("id")): card
        for each in chosen
        if not isinstance(each, EdgeType)
        for card in list_cards(view.read(each, list_shown(each)))
    }
    inner = {each.name for each in chosen}
    edges = [
        edge
        for each in chosen
        if isinstance(each, EdgeType) and {each.source, each.target} <= inner
        for edge in list_edges(each, view.read(each, list_shown(each)))
    ]
    return Subgraph(nodes, tuple(edges))


def list_cards(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table as JSON shows them, without what is null."""
    names = table.column_names
    columns = [json_values(column.combine_chunks()) for column in table.columns]
    for row in zip(*columns, strict=True):
        yield {name: value for name, value in zip(names, row, strict=True) if value is not None}


def list_edges(edge: EdgeType, table: pa.Table) -> Iterator[SubgraphEdge]:
    """The rows of an edge type as edges."""
    for card in list_cards(table):
        id_, source, target = (card.pop(name) for name in ("id", "src", "dst"))
        yield SubgraphEdge(edge.name, id_, (edge.source, source), (edge.target, target), card)


def list_shown(entity: EntityType) -> list[str]:
    """The properties of a type that fit on a card."""
    return [
        name
        for name, each in entity.properties.items()
        if not each.type.is_vector and not each.type.is_blob
    ]


def _fill(
    view: StateView,
    nodes: Iterable[NodeKey],
    edges: Iterable[SubgraphEdge],
    nodes_max: int,
    *,
    is_cut: bool,
) -> Subgraph:
    """The subgraph of the first of these nodes, with their properties and the edges among them."""
    wanted = list(nodes)
    kept = wanted[:nodes_max]
    by_type: dict[str, list[str]] = defaultdict(list)
    for type_name, id_ in kept:
        by_type[type_name].append(id_)
    cards: dict[NodeKey, dict[str, Any]] = {key: {} for key in kept}
    for type_name, ids in by_type.items():
        entity = view.catalog.nodes[type_name]
        for card in list_cards(view.read(entity, list_shown(entity), ids=ids)):
            cards[type_name, card.pop("id")] = card
    inside = tuple(each for each in edges if each.source in cards and each.target in cards)
    return Subgraph(cards, inside, is_cut or len(kept) < len(wanted))


def _list_nodes(traced: TracedQuery, table: pa.Table) -> Iterator[NodeKey]:
    for node in traced.nodes:
        types, ids = table[node.type_column].to_pylist(), table[node.id_column].to_pylist()
        yield from ((type_, id_) for type_, id_ in zip(types, ids, strict=True) if id_ is not None)


def _list_edges(traced: TracedQuery, table: pa.Table) -> Iterator[tuple[str, str]]:
    for edge in traced.edges:
        column = table[edge.column].to_pylist()
        if edge.nodes_column is None:
            yield from ((edge.name, id_) for id_ in column if id_ is not None)
        else:
            yield from ((edge.name, id_) for path in column for id_ in path or ())
