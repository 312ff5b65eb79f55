"""Relations of edge tables: built for the edges a query walks, and kept by table version."""

from __future__ import annotations

from omnigraph.index.adjacency import Endpoints, Relation, distinct_relation, stored_relation
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.columns import BoolArray
from omnigraph.index.table_view import Note, TableView


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

        def build() -> Relation:
            self._note(f"built the adjacency of {self.edges.table_key}")
            return distinct_relation(self.endpoints(), self._sizes, both=both)

        return self._cache.get(("distinct", self._key, both), build)

    def stored(self, *, both: bool, keep: BoolArray | None = None) -> Relation:
        """One entry per stored edge; with `keep`, of those edges only, and not kept."""
        if keep is not None:
            return stored_relation(self.endpoints(), self._sizes, both=both, keep=keep)

        def build() -> Relation:
            self._note(f"built the stored edges of {self.edges.table_key}")
            return stored_relation(self.endpoints(), self._sizes, both=both)

        return self._cache.get(("stored", self._key, both), build)

    def is_built(self, *, both: bool, is_stored: bool) -> bool:
        """Whether a walk costs no build."""
        kind = "stored" if is_stored else "distinct"
        return self._cache.peek((kind, self._key, both)) is not None

    def endpoints(self) -> Endpoints:
        """Both ends of every stored edge, by the edge's position."""
        return self._cache.get(("endpoints", self._key), self._resolve)

    def _resolve(self) -> Endpoints:
        return Endpoints(
            self._sources.positions_of_ids(self.edges.read("src")),
            self._targets.positions_of_ids(self.edges.read("dst")),
        )
