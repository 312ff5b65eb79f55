"""Relations of edge tables: built for the edges a query walks, and kept by table version.

A small frontier on a large table that has no adjacency yet is looked up by `src` or `dst` instead;
when the same table is walked again, building pays.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from omnigraph.index import table_view
from omnigraph.index.adjacency import (
    Endpoints,
    Pairs,
    Relation,
    distinct_relation,
    kept_pairs,
    stored_relation,
)
from omnigraph.index.arrays import BoolArray, IntArray, sorted_distinct
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.table_view import FEW_IDS, Note, TableView
from omnigraph.storage.predicates import IsIn

_LOOKUPS_BEFORE_BUILDING = 2
_BUILD_COST = 1.5


class EdgeIndex:
    """The relations between two node tables along one edge table."""

    def __init__(
        self,
        edges: TableView,
        sources: TableView,
        targets: TableView,
        cache: RuntimeCache,
        note: Note,
    ) -> None:
        self.edges = edges
        self._sources = sources
        self._targets = targets
        self._cache = cache
        self._note = note
        self._key = (edges.id, sources.id, targets.id)
        self._sizes = (sources.size, targets.size)

    def distinct(self, *, both: bool) -> Relation:
        """Each pair of ends once."""

        return self._cache.get(("distinct", self._key, both), lambda: self._map_or_build(both))

    def distinct_from(self, positions: IntArray, *, from_source: bool) -> Pairs:
        """The pairs that start (or end) at a few positions, looked up instead of built."""
        near, far = (self._sources, self._targets)
        columns = ("src", "dst")
        if not from_source:
            near, far, columns = far, near, ("dst", "src")
        ids = near.values(["id"], positions)["id"]
        rows = self.edges.select(columns, IsIn(columns[0], ids))
        found = rows.column(columns[0]).combine_chunks()
        starts = positions[pc.index_in(found, value_set=ids).to_numpy()]
        ends = far.positions_of_ids(rows.column(columns[1]).combine_chunks())
        whole = ends >= 0
        keys = sorted_distinct(starts[whole] * max(far.size, 1) + ends[whole])
        starts, ends = np.divmod(keys, max(far.size, 1))
        self._note(f"looked up {self.edges.table_key} by {columns[0]}", len(keys))
        pairs = Pairs(starts, ends, None, (near.size, far.size))
        return pairs if from_source else pairs.reversed()

    def is_worth_building(self, frontier: int, *, from_source: bool, both: bool) -> bool:
        """Whether to build the adjacency rather than look a small frontier up. Counts as a use.

        A look-up costs the edges it finds when an index covers the column, else one pass over
        them all; a build costs one and a half passes, once.
        """
        key = ("distinct", self._key, both)
        edges = self.edges.size
        if both or edges <= table_view.SMALL_TABLE_ROWS or frontier > FEW_IDS:
            return True
        if self._cache.peek(key) is not None or self._is_on_disk(both):
            return True
        if self._cache.touch(key) > _LOOKUPS_BEFORE_BUILDING:
            return True
        near = self._sources if from_source else self._targets
        cost = frontier * edges / max(near.size, 1)
        if not self.edges.has_index("src" if from_source else "dst"):
            cost = edges
        return cost > edges * _BUILD_COST

    def stored(self, *, both: bool) -> Relation:
        """One entry per stored edge."""

        def build() -> Relation:
            self._note(f"built the stored edges of {self.edges.table_key}")
            return stored_relation(self.endpoints(), self._sizes, both=both)

        return self._cache.get(("stored", self._key, both), build)

    def kept(self, keep: BoolArray, *, both: bool) -> Pairs:
        """One entry per stored edge to keep."""
        return kept_pairs(self.endpoints(), self._sizes, keep, both=both)

    def is_built(self, *, both: bool, is_stored: bool) -> bool:
        """Whether a walk costs no build."""
        kind = "stored" if is_stored else "distinct"
        return self._cache.peek((kind, self._key, both)) is not None

    def _map_or_build(self, both: bool) -> Relation:
        store = self._cache.derived
        found = store.load(self._name(both)) if store is not None else None
        if found is not None and self._fits(found):
            self._note(f"mapped the adjacency of {self.edges.table_key}")
            return found
        built = distinct_relation(self.endpoints(), self._sizes, both=both)
        self._note(f"built the adjacency of {self.edges.table_key}", len(built.forward.targets))
        if store is not None and self.edges.size > table_view.SMALL_TABLE_ROWS:
            store.save(self._name(both), built)
        return built

    def _fits(self, relation: Relation) -> bool:
        return (relation.forward.size, relation.backward.size) == self._sizes

    def _is_on_disk(self, both: bool) -> bool:
        store = self._cache.derived
        return store is not None and store.has(self._name(both))

    def _name(self, both: bool) -> str:
        return f"{self._key!r} both={both}"

    def endpoints(self) -> Endpoints:
        """Both ends of every stored edge, by the edge's position."""
        return self._cache.get(("endpoints", self._key), self._resolve)

    def _resolve(self) -> Endpoints:
        return Endpoints(
            self._sources.positions_of_ids(self.edges.read("src")),
            self._targets.positions_of_ids(self.edges.read("dst")),
        )
