"""Prefetch: derive what queries will want of a table version before it is published.

The first query of a new version has to decode it, and the queries after it wait meanwhile. The
writer can do that before it publishes, while queries still read the version before. What is in use
of that one says what will be wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omnigraph.catalog import Catalog
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.open_tables import OpenTables
from omnigraph.manifest import Snapshot, UpdatePin
from omnigraph.manifest.model import TableEntry
from omnigraph.storage.tables import TableStorage


def prefetch(
    before: Snapshot,
    pins: Sequence[UpdatePin],
    catalog: Catalog,
    tables: TableStorage,
    cache: RuntimeCache,
) -> None:
    """Derive of each pinned version what is in use of an earlier one. Reads only."""
    changed = {
        pin.table_key: _entry(before.entries[pin.table_key], pin)
        for pin in pins
        if pin.table_key in before.entries
    }
    after = replace(before, entries={**before.entries, **changed})
    opened = OpenTables(after, catalog, tables, cache)
    for key in changed:
        opened.view(key).prefetch()
    for edge in catalog.edges.values():
        ends = (edge.table_key, f"node:{edge.source}", f"node:{edge.target}")
        if not changed.keys().isdisjoint(ends):
            opened.edges(edge.name).prefetch()


def _entry(before: TableEntry, pin: UpdatePin) -> TableEntry:
    return replace(
        before,
        version=pin.version,
        table_branch=pin.table_branch,
        row_count=pin.row_count,
        transaction_uuid=pin.transaction_uuid,
    )
