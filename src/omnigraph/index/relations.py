"""Relations of edge tables: built for the edges a query walks, and cached by table version.

A small frontier on a large table that has no adjacency yet is looked up by `src` or `dst` instead;
when the same table is walked again, building pays. One rule decides, and `explain` prints it:

    a look-up costs   hops · frontier · edges per node, or a pass over all per hop without an index
    building costs    one and a half passes over all, once; it never pays beyond the budget

`OMNIGRAPH_TRAVERSAL_MODE=indexed` or `csr` forces one of the two on every large table.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.index import thresholds
from omnigraph.index.adjacency import (
    Endpoints,
    Pairs,
    Relation,
    build_distinct_relation,
    build_edge_relation,
    select_pairs,
)
from omnigraph.index.arrays import IntArray, sort_distinct
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.carry_over import RowDelta
from omnigraph.index.derived import RelationName
from omnigraph.index.keys import DistinctKey, EdgeTables, EndpointsKey, PerEdgeKey, TableId
from omnigraph.index.notes import note
from omnigraph.index.patches import EdgeChanges, Moves, patch_distinct, patch_edges
from omnigraph.index.selection import Selection
from omnigraph.index.table_view import TableView
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.projection import ROW_ID

MODE_VARIABLE = "OMNIGRAPH_TRAVERSAL_MODE"
_MODES = ("indexed", "csr")
_HOPS_LOOKED_UP = 6
LOOKUPS_BEFORE_BUILDING = 1
BUILD_COST = 1.5
_ADJACENCY_BYTES = 32
"""What one edge takes in an adjacency: both directions, two numbers each."""
_NONE: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Walk:
    """How a query walks an edge table from its smaller end.

    `from_source` says that this end is the source of the stored edges; with `both` they lead both
    ways. `is_stored` keeps parallel edges apart.
    """

    from_source: bool
    both: bool
    is_stored: bool = False
    hops: int = 1


_Edges: TypeAlias = "tuple[IntArray, IntArray, IntArray | None]"
"""Positions of near and far ends, and of the edges between them in a stored walk."""


class EdgeIndex:
    """The relations between two node tables along one edge table. Shared by every query."""

    def __init__(
        self, edges: TableView, sources: TableView, targets: TableView, cache: RuntimeCache
    ) -> None:
        self.edges = edges
        self._sources = sources
        self._targets = targets
        self._cache = cache
        self._ids = EdgeTables(edges.id, sources.id, targets.id)
        self._sizes = (sources.size, targets.size)

    @property
    def joins_one_type(self) -> bool:
        """Whether the edges lead from nodes of a type to nodes of the same type."""
        return self._sources.id == self._targets.id

    def distinct(self, *, both: bool) -> Relation:
        """Each pair of ends once."""
        found = self.peek_distinct(both=both)
        if found is not None:
            return found
        return self._cache.get(DistinctKey(self._ids, both), lambda: self._map_or_build(both))

    def peek_distinct(self, *, both: bool) -> Relation | None:
        """The same if it is cached, or little has changed since an earlier version that is."""
        key = DistinctKey(self._ids, both)
        found = self._cache.peek(key)
        if found is None and self._cache.other_versions(key):
            found = self._cache.get_if(key, lambda: self._carry_distinct(both))
        return found if isinstance(found, Relation) else None

    def per_edge(self, *, both: bool) -> Relation:
        """One entry per stored edge."""

        def build() -> Relation:
            carried = self._carry_per_edge(both)
            if carried is not None:
                return carried
            note(f"built the stored edges of {self.edges.table_key}")
            self.edges.previous.remember()
            return build_edge_relation(self.endpoints(), self._sizes, both=both)

        return self._cache.get(PerEdgeKey(self._ids, both), build)

    def select_edges(self, keep: Selection, *, both: bool) -> Pairs:
        """One entry per selected edge."""
        return select_pairs(self.endpoints(), self._sizes, keep.mask(), both=both)

    def endpoints(self) -> Endpoints:
        """Both ends of every stored edge, by the edge's position."""
        return self._cache.get(EndpointsKey(self._ids), self._resolve_endpoints)

    def prefetch(self, *, all_of_it: bool) -> None:
        """Derive what is in use of earlier versions, before a query has to wait for it.

        Unless `all_of_it` is wanted, what cannot be carried over is left to the query.
        """
        for both in (False, True):
            if self._cache.is_in_use(DistinctKey(self._ids, both)):
                self.distinct(both=both) if all_of_it else self.peek_distinct(both=both)
            stored = PerEdgeKey(self._ids, both)
            if self._cache.is_in_use(stored):
                if all_of_it:
                    self.per_edge(both=both)
                else:
                    self._cache.get_if(stored, partial(self._carry_per_edge, both))
        ends = EndpointsKey(self._ids)
        if self._cache.is_in_use(ends) and not all_of_it:
            self._cache.get_if(ends, self._carry_newest_endpoints)

    # Looking up

    def look_up(self, near: Selection, walk: Walk, keep: Selection | None = None) -> Pairs | None:
        """The pairs within reach of a few positions, seen along the stored edges.

        None when it costs less to build the whole relation; the caller then does.
        """
        if not self._is_worth_looking_up(near.count, walk):
            return None
        frontier = near.positions()
        seen = frontier
        found: list[_Edges] = []
        for _ in range(walk.hops):
            if len(frontier) > thresholds.FEW_IDS and _read_mode() is None:
                return None
            found.append(self._edges_at(frontier, walk, keep))
            reached = sort_distinct(found[-1][1])
            frontier = np.setdiff1d(reached, seen, assume_unique=True)
            seen = np.union1d(seen, reached)
            if len(frontier) == 0:
                break
        return self._pairs(found, walk)

    def _is_worth_looking_up(self, frontier: int, walk: Walk) -> bool:
        """Whether to look a small frontier up rather than build. Counts as a use of the table."""
        edges, mode = self.edges.size, _read_mode()
        if frontier == 0 or edges <= thresholds.SMALL_TABLE_ROWS or mode == "csr":
            return False
        if mode == "indexed":
            return True
        if frontier > thresholds.FEW_IDS or walk.hops > _HOPS_LOOKED_UP:
            return False
        key = (PerEdgeKey if walk.is_stored else DistinctKey)(self._ids, walk.both)
        if self._cache.peek(key) is not None or (not walk.is_stored and self._is_on_disk(walk)):
            return False
        cost, building = self._lookup_cost(frontier, walk), edges * BUILD_COST
        fits = edges * _ADJACENCY_BYTES <= self._cache.budget_bytes
        if fits and self._cache.touch(key) > LOOKUPS_BEFORE_BUILDING:
            return False
        is_cheaper = cost < building
        note(
            f"{'looking up' if is_cheaper else 'building'} {self.edges.table_key}: about "
            f"{cost:,.1f} edges to look at, {building:,.1f} to build its adjacency"
        )
        return is_cheaper

    def _lookup_cost(self, frontier: int, walk: Walk) -> float:
        cost = 0.0
        for from_source in (True, False) if walk.both else (walk.from_source,):
            near = self._sources if from_source else self._targets
            if self.edges.has_index("src" if from_source else "dst"):
                cost += walk.hops * frontier * self.edges.size / max(near.size, 1)
            else:
                cost += walk.hops * self.edges.size
        return cost

    def _edges_at(self, positions: IntArray, walk: Walk, keep: Selection | None) -> _Edges:
        """The edges at these positions."""
        parts = [
            self._one_way(positions, from_source, walk, keep)
            for from_source in ((True, False) if walk.both else (walk.from_source,))
        ]
        if walk.both and walk.is_stored:
            # A loop has both ends here and is one edge.
            nears, fars, edges = parts[1]
            assert edges is not None
            other = nears != fars
            parts[1] = (nears[other], fars[other], edges[other])
        return _concatenate(parts)

    def _one_way(
        self, positions: IntArray, from_source: bool, walk: Walk, keep: Selection | None
    ) -> _Edges:
        near, far, columns = self._sources, self._targets, ("src", "dst")
        if not from_source:
            near, far, columns = far, near, ("dst", "src")
        ids = near.values(["id"], positions)["id"]
        rows = self.edges.scan(columns, IsIn(columns[0], ids), with_row_id=walk.is_stored)
        found = rows.column(columns[0]).combine_chunks()
        nears = positions[pc.index_in(found, value_set=ids).to_numpy()]
        fars = far.positions_of_ids(rows.column(columns[1]).combine_chunks())
        is_kept = fars >= 0
        note(f"looked up {self.edges.table_key} by {columns[0]}", len(fars))
        if not walk.is_stored:
            return nears[is_kept], fars[is_kept], None
        edges = self.edges.positions_of_rows(rows.column(ROW_ID).to_numpy())
        if keep is not None:
            is_kept &= keep.contains(edges)
        return nears[is_kept], fars[is_kept], edges[is_kept]

    def _pairs(self, found: list[_Edges], walk: Walk) -> Pairs:
        nears, fars, edges = _concatenate(found)
        near_size, far_size = self._sizes if walk.from_source else self._sizes[::-1]
        if edges is None:
            keys = sort_distinct(nears * max(far_size, 1) + fars)
            nears, fars = np.divmod(keys, max(far_size, 1))
        pairs = Pairs(nears, fars, edges, (near_size, far_size))
        return pairs if walk.from_source else pairs.reverse()

    # Building

    def _map_or_build(self, both: bool) -> Relation:
        for view in (self.edges, self._sources, self._targets):
            view.previous.remember()
        store = self._cache.derived
        found = store.load(self._name(both)) if store is not None else None
        if found is not None and found.sizes == self._sizes:
            note(f"read the saved adjacency of {self.edges.table_key}")
            return found
        is_first = not self._cache.other_versions(EndpointsKey(self._ids))
        built = build_distinct_relation(self.endpoints(), self._sizes, both=both)
        note(f"built the adjacency of {self.edges.table_key}", len(built.forward.targets))
        # Of a graph that is being written to, a file would be out of date before it is read.
        if store is not None and is_first and self.edges.size > thresholds.SMALL_TABLE_ROWS:
            store.save(self._name(both), built)
        return built

    def _is_on_disk(self, walk: Walk) -> bool:
        store = self._cache.derived
        return store is not None and store.has(self._name(walk.both))

    def _name(self, both: bool) -> RelationName:
        return RelationName(f"{tuple(self._ids.slot)!r} both={both}", f"{tuple(self._ids)!r}")

    def _resolve_endpoints(self) -> Endpoints:
        return self._carry_newest_endpoints() or Endpoints(
            self._sources.positions_of_ids(self.edges.read("src")),
            self._targets.positions_of_ids(self.edges.read("dst")),
        )

    # From an earlier version

    def _carry_distinct(self, both: bool) -> Relation | None:
        """The adjacency of an earlier version, and what came and went since."""
        for key in self._cache.other_versions(DistinctKey(self._ids, both)):
            moves = self._find_moves(key.tables)
            changes = None if moves is None else self._find_changes(key.tables.edges, both)
            relation = None if changes is None else self._cache.peek(key)
            if moves is None or changes is None or not isinstance(relation, Relation):
                continue
            if relation.dangling:
                continue
            found = patch_distinct(relation, self._sizes, changes, moves, both=both)
            if found is not None:
                note(
                    f"carried the adjacency of {self.edges.table_key} over from version "
                    f"{key.tables.edges.version}"
                )
                self.edges.previous.remember()
                return found
        return None

    def _find_changes(self, base: TableId, both: bool) -> EdgeChanges | None:
        """The edges that came and went since a version; None if unknown, or one leads nowhere."""
        changes = self.edges.previous.changes_since(base, ("src", "dst"))
        if changes is None:
            return None
        come, gone = self._ends_of(changes.come), self._ends_of(changes.gone)
        if come.count_dangling():
            return None
        is_whole = (gone.sources >= 0) & (gone.targets >= 0)
        # An edge both ways is two pairs, and a loop is one.
        is_loop = pc.equal(changes.gone.column("src"), changes.gone.column("dst"))
        loops = np.asarray(is_loop.to_numpy(), dtype=bool)
        weights = np.where(loops, 1, 2) if both else np.ones(len(loops), dtype=np.int64)
        left = Endpoints(gone.sources[is_whole], gone.targets[is_whole])
        return EdgeChanges(come, left, int(weights[~is_whole].sum()))

    def _find_moves(self, bases: EdgeTables) -> tuple[Moves, Moves] | None:
        """The nodes that lost their positions since earlier versions; None if unknown, or many."""
        sources = self._sources.find_moves(bases.sources)
        if sources is None or self.joins_one_type:
            return None if sources is None else (sources, sources)
        targets = self._targets.find_moves(bases.targets)
        return None if targets is None else (sources, targets)

    def _carry_per_edge(self, both: bool) -> Relation | None:
        """The same of stored edges, when none of them went: the others keep their positions."""
        for key in self._cache.other_versions(PerEdgeKey(self._ids, both)):
            edges = self.edges.previous.delta_since(key.tables.edges)
            if edges is None or len(edges.removed) or not self._keeps_positions(key.tables):
                continue
            relation = self._cache.peek(key)
            come = self._tail_ends(key.tables, edges)
            if isinstance(relation, Relation) and not relation.dangling + come.count_dangling():
                note(f"carried the stored edges of {self.edges.table_key} over", len(come.sources))
                return patch_edges(relation, self._sizes, come, edges.kept, both=both)
        return None

    def _keeps_positions(self, bases: EdgeTables) -> bool:
        """Whether every node that was there at earlier versions still has its position."""
        deltas = (
            self._sources.previous.delta_since(bases.sources),
            self._targets.previous.delta_since(bases.targets),
        )
        return all(delta is not None and len(delta.removed) == 0 for delta in deltas)

    def _ends_of(self, rows: pa.Table) -> Endpoints:
        return self._find_ends(*(rows.column(each).combine_chunks() for each in ("src", "dst")))

    def _find_ends(self, src: pa.Array, dst: pa.Array) -> Endpoints:
        """The nodes that edges join. A few edges between nodes of one type take one look-up."""
        if self.joins_one_type and 2 * len(src) <= thresholds.FEW_IDS:
            found = self._sources.positions_of_ids(pa.concat_arrays([src, dst]))
            return Endpoints(found[: len(src)], found[len(src) :])
        return Endpoints(self._sources.positions_of_ids(src), self._targets.positions_of_ids(dst))

    def _tail_ends(self, bases: EdgeTables, edges: RowDelta) -> Endpoints:
        """The ends of the edges added since earlier versions."""
        if not edges.added:
            return Endpoints(_NONE, _NONE)
        return self._find_ends(
            *(self.edges.previous.tail(bases.edges, edges, name) for name in ("src", "dst"))
        )

    def _carry_newest_endpoints(self) -> Endpoints | None:
        for key in self._cache.other_versions(EndpointsKey(self._ids)):
            found = self._carry_endpoints(self._cache.peek(key), key.tables)
            if found is not None:
                return found
        return None

    def _carry_endpoints(self, cached: object, bases: EdgeTables) -> Endpoints | None:
        """The endpoints at earlier versions of the three tables, brought up to date."""
        edges = self.edges.previous.delta_since(bases.edges)
        sources = self._sources.previous.delta_since(bases.sources)
        targets = self._targets.previous.delta_since(bases.targets)
        if not isinstance(cached, Endpoints) or edges is None or sources is None or targets is None:
            return None

        def keep(column: str, before: IntArray, nodes: TableView, delta: RowDelta) -> IntArray:
            kept = delta.remap(edges.keep_numbers(before))
            lost = np.flatnonzero(kept < 0)
            if len(lost):
                # A node that was written again has a new position. The cached array stays as it is.
                kept = kept.copy()
                kept[lost] = nodes.positions_of_ids(self.edges.values([column], lost)[column])
            return kept

        note(f"carried the ends of {self.edges.table_key} over from version {bases.edges.version}")
        kept = cached
        if len(edges.removed) or not self._keeps_positions(bases) or cached.count_dangling():
            kept = Endpoints(
                keep("src", cached.sources, self._sources, sources),
                keep("dst", cached.targets, self._targets, targets),
            )
        return kept.append(self._tail_ends(bases, edges)) if edges.added else kept


def is_any_in_use(cache: RuntimeCache, tables: EdgeTables) -> bool:
    """Whether queries use something that is derived of these tables together."""
    kinds = (DistinctKey, PerEdgeKey, EndpointsKey)
    return any(cache.is_in_use(kind(tables, both)) for kind in kinds for both in (False, True))


def _concatenate(parts: list[_Edges]) -> _Edges:
    nears, fars, edges = zip(*parts, strict=True)
    is_stored = edges[0] is not None
    return (
        np.concatenate(nears),
        np.concatenate(fars),
        np.concatenate(edges) if is_stored else None,
    )


def _read_mode() -> str | None:
    """What the environment says; None to decide by cost.

    Raises:
        BadRequestError: It says something else.
    """
    mode = os.environ.get(MODE_VARIABLE)
    if mode and mode not in _MODES:
        raise BadRequestError(f"{MODE_VARIABLE} is '{mode}', expected 'indexed' or 'csr'")
    return mode or None
