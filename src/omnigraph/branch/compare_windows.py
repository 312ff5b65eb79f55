"""Compare windows: the same comparison as `compare.py`, for readers that take it in order of ids.

Merges need all differences at once. A diff or a page of the feed needs the next ones, so it is
given `Differences` if a window holds them all, and otherwise `WindowedDifferences`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.branch import windows
from omnigraph.branch.compare import candidates, find_gone, ids_of, join_sides, pair_rows, sort_rows
from omnigraph.branch.descent import Descent
from omnigraph.branch.differences import Differences
from omnigraph.branch.row_batches import to_row_ids
from omnigraph.branch.windows import Source, WindowedDifferences, read_window
from omnigraph.storage.ancestry import TOUCHED
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.tables import TableStorage

AnyDifferences: TypeAlias = Differences | WindowedDifferences
Combine: TypeAlias = Callable[[Sequence[pa.Table]], pa.Table]
_IDS = pa.schema([("id", pa.utf8()), (ROW_ID, pa.uint64())])
_SCANNED_ROWS = 1 << 14
TAKEN_ROWS_MAX = 8_192
"""Ids of more rows than these are found by a scan."""


def find_differences(
    descent: Descent,
    before: TableHandle | None,
    after: TableHandle | None,
    check: Callable[[Differences], Differences],
) -> AnyDifferences:
    """The rows that differ, in the order of ids. `check` drops candidates that do not."""
    tables = descent.tables
    by_tasks = _list_for_tasks(descent, before, after)
    if by_tasks is not None:
        return check(by_tasks)
    sources, combine = _list_sources(descent, before, after)

    def find(start: str | None) -> tuple[Differences, str | None]:
        window = read_window(sources, start, windows.WINDOW_ROWS)
        for handle, rows in zip(
            (before, after), (window.tables[0], window.tables[-1]), strict=True
        ):
            if handle is not None and rows.schema.equals(TOUCHED):
                tables.reads.addresses.put_rows(handle, rows)
        found = sort_rows(combine(window.tables))
        for handle, name in ((before, "before"), (after, "after")):
            if handle is not None:
                tables.reads.expect_takes(handle, to_row_ids(found.rows[name].drop_null()))
        return found, window.end

    found = WindowedDifferences(find, check)
    whole = found.is_whole()
    return found if whole is None else whole


def _list_for_tasks(
    descent: Descent, before: TableHandle | None, after: TableHandle | None
) -> Differences | None:
    """Every candidate, if they are so many that tasks compare them; else they are read in turn."""
    tasks = descent.tables.tasks
    if tasks is None or not descent.reads_all or before is None or after is None:
        return None
    if not tasks.takes_rows(max(before.row_count, after.row_count), before, after):
        return None
    found = candidates(descent, before, after)
    return found if tasks.takes_rows(len(found), before, after) else None


def _list_sources(
    descent: Descent, before: TableHandle | None, after: TableHandle | None
) -> tuple[list[Source], Combine]:
    """The streams of a comparison, the one of `before` first and that of `after` last."""
    tables = descent.tables
    if before is None or after is None:
        handle = after or before
        assert handle is not None
        return [_all_ids(tables, handle)], _of_one_side(is_before=after is None)
    ancestor = descent.common_ancestor(before, after)
    if ancestor is None:
        return [_all_ids(tables, before), _all_ids(tables, after)], _join_by_id
    old, new = (_touched(tables, ancestor, each) for each in (before, after))
    lost = [_lost(tables, ancestor, each, one) for each, one in ((before, old), (after, new))]

    def combine(parts: Sequence[pa.Table]) -> pa.Table:
        version = ancestor.version
        sides = (
            pair_rows(one, each, version) for one, each in zip(parts[::3], parts[1:3], strict=True)
        )
        return join_sides(*sides)

    return [old, *lost, new], combine


def _of_one_side(*, is_before: bool) -> Combine:
    name, other = ("before", "after") if is_before else ("after", "before")

    def combine(parts: Sequence[pa.Table]) -> pa.Table:
        rows = parts[0].rename_columns(["id", name])
        return rows.append_column(other, pa.nulls(rows.num_rows, pa.uint64()))

    return combine


def _join_by_id(parts: Sequence[pa.Table]) -> pa.Table:
    old, new = (
        each.rename_columns(["id", name])
        for each, name in zip(parts, ("before", "after"), strict=True)
    )
    return old.join(new, "id", join_type="full outer")


def _all_ids(tables: TableStorage, handle: TableHandle) -> Source:
    def read() -> Iterator[pa.Table]:
        batches = tables.reads.scan_stream(
            handle, ["id"], with_row_id=True, batch_rows=_SCANNED_ROWS, in_turn=True
        )
        for batch in batches:
            yield pa.Table.from_batches([batch]).select(_IDS.names).cast(_IDS)

    return Source(_IDS, read)


def _touched(tables: TableStorage, ancestor: TableHandle, handle: TableHandle) -> Source:
    return Source(TOUCHED, lambda: tables.ancestry.stream_touched(handle, ancestor))


def _lost(
    tables: TableStorage, ancestor: TableHandle, handle: TableHandle, touched: Source
) -> Source:
    """The rows of an ancestor that a version does not have; which they are is found once."""

    @cache
    def find() -> RowIds:
        return np.sort(find_gone(tables, ancestor, handle, touched.read()))

    def read() -> Iterator[pa.Table]:
        gone = find()
        if len(gone) <= TAKEN_ROWS_MAX:
            yield pa.table([ids_of(tables, ancestor, gone), pa.array(gone)], schema=_IDS)
            return
        for part in _all_ids(tables, ancestor).read():
            row_ids = to_row_ids(part[ROW_ID])
            at = np.minimum(np.searchsorted(gone, row_ids), len(gone) - 1)
            yield part.filter(pa.array(gone[at] == row_ids))

    return Source(_IDS, read)
