"""Surroundings: the changed part of a graph, with one hop of what did not change around it.

For people to look at, so it is bounded: the first changes of each type are looked at, and those
that there is room for are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import TypeAlias

import pyarrow as pa

from omnigraph.branch.changes import ChangeOp, ChangeSet, EntityChange
from omnigraph.branch.descent import open_entry
from omnigraph.branch.diff import State
from omnigraph.catalog import Catalog, EdgeType
from omnigraph.dataclass import dataclass
from omnigraph.manifest import Snapshot
from omnigraph.storage.predicates import IsIn, Or
from omnigraph.storage.tables import TableStorage

NODES_MAX = 80
EDGES_MAX = 160
LOOKED_AT_MAX = 1_000
"""Of each type."""

NodeKey: TypeAlias = tuple[str, str]
"""Type name and id."""


@dataclass(frozen=True, slots=True)
class ShownEdge:
    """An edge between two shown nodes; `op` is None when it did not change."""

    type_name: str
    source: NodeKey
    target: NodeKey
    op: ChangeOp | None = None


@dataclass(slots=True)
class Subgraph:
    """Nodes with what happened to them, None for context, and the edges between them."""

    nodes: dict[NodeKey, ChangeOp | None] = field(default_factory=dict)
    edges: list[ShownEdge] = field(default_factory=list)

    @property
    def drawn(self) -> int:
        """How many changes it shows."""
        nodes = sum(op is not None for op in self.nodes.values())
        return nodes + sum(edge.op is not None for edge in self.edges)


def find_changed_subgraph(
    changes: ChangeSet, earlier: Catalog, state: State, tables: TableStorage
) -> Subgraph:
    """What changed since the types were those of `earlier`, and its neighbours in `state`."""
    found = Subgraph()
    # An edge whose type is gone is described by the schema it was in.
    edges = {**earlier.edges, **state.catalog.edges}
    for part in sorted(changes.table_changes, key=lambda each: each.entity.table_key):
        for change in islice(changes.of_table(part, wanted=LOOKED_AT_MAX), LOOKED_AT_MAX):
            _add(found, edges, change)
    _add_neighbours(found, state.catalog, state.snapshot, tables)
    return found


def _add(found: Subgraph, edges: Mapping[str, EdgeType], change: EntityChange) -> None:
    if change.endpoints is None:
        if len(found.nodes) < NODES_MAX:
            found.nodes[change.type_name, change.id] = change.op
        return
    edge = edges[change.type_name]
    ends = (edge.source, change.endpoints[0]), (edge.target, change.endpoints[1])
    new = [end for end in ends if end not in found.nodes]
    if len(found.edges) >= EDGES_MAX or len(found.nodes) + len(new) > NODES_MAX:
        return
    for end in new:
        found.nodes[end] = None
    found.edges.append(ShownEdge(edge.name, *ends, op=change.op))


def _add_neighbours(
    found: Subgraph, catalog: Catalog, state: Snapshot, tables: TableStorage
) -> None:
    changed = [key for key, op in found.nodes.items() if op is not None]
    drawn = {(edge.type_name, edge.source, edge.target) for edge in found.edges}
    for edge in catalog.edges.values():
        for source, target in _touching(edge, changed, state, tables):
            key = (edge.name, source, target)
            new = {source, target} - found.nodes.keys()
            is_full = len(found.nodes) + len(new) > NODES_MAX or len(found.edges) >= EDGES_MAX
            if key in drawn or is_full:
                continue
            found.nodes.update(dict.fromkeys(new))
            found.edges.append(ShownEdge(*key))
            drawn.add(key)


def _touching(
    edge: EdgeType, changed: Iterable[NodeKey], state: Snapshot, tables: TableStorage
) -> Iterator[tuple[NodeKey, NodeKey]]:
    sources = [id_ for type_name, id_ in changed if type_name == edge.source]
    targets = [id_ for type_name, id_ in changed if type_name == edge.target]
    entry = state.entries.get(edge.table_key)
    if entry is None or not (sources or targets):
        return
    either = Or(
        (IsIn("src", pa.array(sources, pa.utf8())), IsIn("dst", pa.array(targets, pa.utf8())))
    )
    rows = tables.reads.scan(
        open_entry(tables, entry), ["id", "src", "dst"], either, limit=EDGES_MAX
    )
    for row in rows.sort_by("id").to_pylist():
        yield (edge.source, row["src"]), (edge.target, row["dst"])
