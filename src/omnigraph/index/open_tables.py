"""Open tables: the views and edge indexes of one snapshot, opened once for all of its queries."""

from __future__ import annotations

from omnigraph.catalog.model import Catalog
from omnigraph.errors import NotFoundError
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.relations import EdgeIndex
from omnigraph.index.table_view import TableView
from omnigraph.manifest.model import Snapshot
from omnigraph.storage.tables import TableStorage


class OpenTables:
    """Tables of a snapshot in the types of a catalogue. Two threads may open the same one twice."""

    def __init__(
        self, snapshot: Snapshot, catalog: Catalog, tables: TableStorage, cache: RuntimeCache
    ) -> None:
        self._snapshot = snapshot
        self._catalog = catalog
        self._tables = tables
        self._cache = cache
        self._views: dict[str, TableView] = {}
        self._edges: dict[str, EdgeIndex] = {}

    def view(self, table_key: str) -> TableView:
        """One table of the snapshot."""
        found = self._views.get(table_key)
        if found is None:
            found = self._views[table_key] = self._open(table_key)
        return found

    def edges(self, edge: str) -> EdgeIndex:
        """An edge table and the node tables it joins."""
        found = self._edges.get(edge)
        if found is None:
            declared = self._catalog.edges[edge]
            found = self._edges[edge] = EdgeIndex(
                self.view(declared.table_key),
                self.view(f"node:{declared.source}"),
                self.view(f"node:{declared.target}"),
                self._cache,
            )
        return found

    def _open(self, table_key: str) -> TableView:
        entry = self._snapshot.entries.get(table_key)
        if entry is None:
            raise NotFoundError(
                f"'{table_key}' is not in manifest version {self._snapshot.manifest_version} "
                f"of branch '{self._snapshot.branch}' — its type was declared later or dropped"
            )
        return TableView(self._tables, entry, self._cache)


def open_tables(
    snapshot: Snapshot, catalog: Catalog, tables: TableStorage, cache: RuntimeCache
) -> OpenTables:
    """The open tables of a snapshot, shared with the queries of it before."""
    # The value holds both objects, so no other object can get their identities.
    key = (id(snapshot.entries), id(catalog))
    found: OpenTables = cache.recent.get_or_make(
        key, lambda: OpenTables(snapshot, catalog, tables, cache)
    )
    return found
