"""Prefetch: derive what queries will want of a table version before it is published.

The first query of a new version has to decode it, and the queries after it wait meanwhile. The
writer can do that before it publishes, while queries still read the version before. What is in use
of that one says what will be wanted.

After a commit of a few rows that takes a fraction of a millisecond, since they are still in memory
and all else is carried over: every writer does it. What would have to be made anew, or follows a
large change, is left to the query, unless the caller wants all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from omnigraph.catalog import Catalog
from omnigraph.catalog.model import EdgeType
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.keys import EdgeTables
from omnigraph.index.open_tables import OpenTables
from omnigraph.index.prefetch_table import TablePrefetch
from omnigraph.index.relations import is_any_in_use
from omnigraph.index.table_view import to_table_id
from omnigraph.manifest import Snapshot, UpdatePin
from omnigraph.manifest.model import TableEntry
from omnigraph.storage.tables import TableStorage

FEW_ROWS = 1_024
"""So many changed rows of a table are few."""


def prefetch(
    before: Snapshot,
    pins: Sequence[UpdatePin],
    catalog: Catalog,
    tables: TableStorage,
    cache: RuntimeCache,
    *,
    all_of_it: bool,
) -> None:
    """Derive of each pinned version what is in use of an earlier one. Reads only.

    Unless `all_of_it` is wanted, only what follows from few changed rows.
    """
    changed = {
        pin.table_key: _entry(before.entries[pin.table_key], pin)
        for pin in pins
        if pin.table_key in before.entries
    }
    after = replace(before, entries={**before.entries, **changed})
    known = OpenTables(before, catalog, tables, cache)
    opened = OpenTables(after, catalog, tables, cache)
    small = _Small(known, opened, set() if all_of_it else changed.keys())
    for key in changed:
        languages = partial(catalog.text_language, key)
        table = TablePrefetch(opened.view(key), tables, cache, languages, all_of_it)
        if table.is_in_use() and small.covers([key]):
            table.run()
    for edge in catalog.edges.values():
        keys = _tables_of(edge)
        if changed.keys().isdisjoint(keys) or not after.entries.keys() >= set(keys):
            continue
        ids = EdgeTables(*(to_table_id(tables, after.entries[key]) for key in keys))
        if is_any_in_use(cache, ids) and small.covers(keys):
            opened.edges(edge.name).prefetch(all_of_it=all_of_it)


def _entry(before: TableEntry, pin: UpdatePin) -> TableEntry:
    return replace(
        before,
        version=pin.version,
        table_branch=pin.table_branch,
        row_count=pin.row_count,
        transaction_uuid=pin.transaction_uuid,
    )


def _tables_of(edge: EdgeType) -> tuple[str, str, str]:
    return edge.table_key, f"node:{edge.source}", f"node:{edge.target}"


class _Small:
    """Of which tables few rows have changed; those that are not asked about always count."""

    def __init__(self, known: OpenTables, opened: OpenTables, asked: Collection[str]) -> None:
        self._known = known
        self._opened = opened
        self._asked = asked
        self._verdicts: dict[str, bool] = {}

    def covers(self, table_keys: Sequence[str]) -> bool:
        return all(self._is_small(key) for key in table_keys if key in self._asked)

    def _is_small(self, key: str) -> bool:
        if key not in self._verdicts:
            before, view = self._known.view(key), self._opened.view(key)
            before.previous.remember()
            delta = view.previous.delta_since(before.id)
            self._verdicts[key] = (
                delta is not None and view.size - delta.kept + len(delta.removed) <= FEW_ROWS
            )
        return self._verdicts[key]
