"""Relations of edge tables: built for the edges a query walks, and cached by table version.

A small frontier on a large table that has no adjacency yet is looked up by `src` or `dst` instead.
When the same table is walked again, the adjacency is made in the background, and look-ups go on
until it is there; where each has many edges to look at, it is built at once. One rule decides,
and `explain` prints it:

    a look-up costs   hops · frontier · edges per node, or a pass over all per hop without an index
    building costs    one and a half passes over all, once; it never pays beyond the budget

An adjacency that was saved is mapped, at the same versions or with what has changed since.

`OMNIGRAPH_TRAVERSAL_MODE=indexed` or `csr` forces one of the two on every large table.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmnigraphError
from omnigraph.index import thresholds
from omnigraph.index.adjacency import (
    Endpoints,
    Pairs,
    Relation,
    build_distinct_relation,
    build_edge_relation,
    select_pairs,
)
from omnigraph.index.arrays import IntArray
from omnigraph.index.background import may_give_up
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.carry_over import RowDelta
from omnigraph.index.derived import RelationName, Versions
from omnigraph.index.edge_lookup import EdgeLookup, Walk, read_mode
from omnigraph.index.keys import DistinctKey, EdgeTables, EndpointsKey, PerEdgeKey, TableId
from omnigraph.index.notes import note
from omnigraph.index.patches import EdgeChanges, Moves, patch_distinct, patch_edges
from omnigraph.index.selection import Selection
from omnigraph.index.table_view import TableView

_HOPS_LOOKED_UP = 6
LOOKUPS_BEFORE_BUILDING = 1
BUILD_COST = 1.5
_ADJACENCY_BYTES = 32
"""What one edge takes in an adjacency: both directions, two numbers each."""
_NONE: IntArray = np.empty(0, dtype=np.int64)


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
        self._lookup = EdgeLookup(edges, sources, targets)

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
        return self._lookup.find(near.positions(), walk, keep)

    def _is_worth_looking_up(self, frontier: int, walk: Walk) -> bool:
        """Whether to look a small frontier up rather than build. Counts as a use of the table."""
        edges, mode = self.edges.size, read_mode()
        if frontier == 0 or edges <= thresholds.SMALL_TABLE_ROWS or mode == "csr":
            return False
        if mode == "indexed":
            return True
        if frontier > thresholds.FEW_IDS or walk.hops > _HOPS_LOOKED_UP:
            return False
        key = (PerEdgeKey if walk.is_stored else DistinctKey)(self._ids, walk.both)
        if self._cache.peek(key) is not None or (not walk.is_stored and self._is_on_disk(walk)):
            return False
        cost, building = self._lookup.cost(frontier, walk), edges * BUILD_COST
        fits = edges * _ADJACENCY_BYTES <= self._cache.budget_bytes
        is_cheaper = cost < building
        if is_cheaper and fits and self._cache.touch(key) > LOOKUPS_BEFORE_BUILDING:
            is_cheaper = cost <= thresholds.EDGES_LOOKED_UP_AGAIN
            if is_cheaper:
                make = self.per_edge if walk.is_stored else self.distinct
                self._cache.background.start(key, partial(make, both=walk.both))
        note(
            f"{'looking up' if is_cheaper else 'building'} {self.edges.table_key}: about "
            f"{cost:,.1f} edges to look at, {building:,.1f} to build its adjacency"
        )
        return is_cheaper

    # Building

    def _map_or_build(self, both: bool) -> Relation:
        for view in (self.edges, self._sources, self._targets):
            view.previous.remember()
        found = self._map_saved(both) or self._carry_saved(both)
        if found is not None:
            return found
        built = self._build(both)
        note(f"built the adjacency of {self.edges.table_key}", built.forward.count)
        store = self._cache.derived
        if store is not None and self.edges.size > thresholds.SMALL_TABLE_ROWS:
            may_give_up()  # of a graph that was closed, the files may be gone
            store.save(self._name(both), built)
        return built

    def _build(self, both: bool) -> Relation:
        return build_distinct_relation(self.endpoints(), self._sizes, both=both)

    def _resolve_endpoints(self) -> Endpoints:
        carried = self._carry_newest_endpoints()
        if carried is not None:
            return carried
        sources = self._sources.positions_of_ids(self.edges.read("src"))
        may_give_up()
        return Endpoints(sources, self._targets.positions_of_ids(self.edges.read("dst")))

    # Saved ones

    def _map_saved(self, both: bool) -> Relation | None:
        """The adjacency of exactly these versions, when it is saved."""
        store = self._cache.derived
        if store is None:
            return None
        found = store.load(self._name(both), partial(self._build, both))
        if found is None or found.sizes != self._sizes:
            return None
        note(f"mapped the saved adjacency of {self.edges.table_key}")
        return found

    def _carry_saved(self, both: bool) -> Relation | None:
        """That of earlier versions that is saved, and what came and went since."""
        store = self._cache.derived
        for versions in [] if store is None else store.list_versions(self._name(both).tables):
            try:
                base = self._at(versions)
                is_known = base is not None and base.recall(both=both)
            except OmnigraphError:
                continue  # those versions may have been cleaned up
            if is_known and (found := self._carry_distinct(both)) is not None:
                return found
        return None

    def recall(self, *, both: bool) -> bool:
        """Have the adjacency that is saved of these versions ready for later ones to go on from."""
        for view in (self.edges, self._sources, self._targets):
            view.previous.remember()
        key = DistinctKey(self._ids, both)
        return self._cache.get_if(key, partial(self._map_saved, both)) is not None

    def _at(self, versions: Versions) -> EdgeIndex | None:
        """The same tables at earlier versions."""
        ids = [
            each._replace(version=version, transaction=transaction)
            for each, (version, transaction) in zip(self._ids, versions, strict=True)
        ]
        if tuple(ids) == tuple(self._ids):
            return None
        views = (self.edges, self._sources, self._targets)
        found = [view.at(each) for view, each in zip(views, ids, strict=True)]
        return EdgeIndex(found[0], found[1], found[2], self._cache)

    def _is_on_disk(self, walk: Walk) -> bool:
        store = self._cache.derived
        return store is not None and store.has(self._name(walk.both))

    def _name(self, both: bool) -> RelationName:
        versions = tuple((each.version, each.transaction) for each in self._ids)
        return RelationName(f"{tuple(self._ids.slot)!r} both={both}", versions)

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
