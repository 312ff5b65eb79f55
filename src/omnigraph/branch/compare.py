"""Compare: the rows in which two versions of a table differ.

Two steps. The first finds candidates: ids that are on one side only, and ids on both sides whose
rows may differ. The second looks at the content of the latter, a bounded batch at a time, and
drops those that are equal. Rows on one side only are never read.

    candidates by row version   both versions come from one: only what was touched since is listed
    candidates by id            otherwise: every id of both sides, in order
    candidates of ids           a few that are asked for, wherever they are

All give the same answer after the second step; only the cost differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.descent import Descent
from omnigraph.branch.differences import SCHEMA, Differences
from omnigraph.branch.equality import equal_rows
from omnigraph.branch.images import images
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.reads import CREATED
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.tables import TableStorage

BATCH_BYTES = 4 * 1024 * 1024
BATCH_ROWS_MAX = 8_192
FIRST_ROWS = 1_024
_BYTES_OF_TEXT = 64


def differences(descent: Descent, before: TableHandle, after: TableHandle) -> Differences:
    """The rows that differ between two versions of a table."""
    return drop_equal_rows(descent.tables, before, after, candidates(descent, before, after))


def candidates(descent: Descent, before: TableHandle, after: TableHandle) -> Differences:
    """Every id that may differ; the cheapest way that can be proved right."""
    ancestor = descent.common_ancestor(before, after)
    if ancestor is None:
        return candidates_by_id(descent.tables, before, after)
    return candidates_by_row_version(descent.tables, before, after, ancestor)


def candidates_by_row_version(
    tables: TableStorage, before: TableHandle, after: TableHandle, ancestor: TableHandle
) -> Differences:
    """What happened on either side since both were one."""
    sides = [_since(tables, ancestor, each) for each in (before, after)]
    return sort_rows(join_sides(*sides))


def join_sides(old: pa.Table, new: pa.Table) -> pa.Table:
    """What two sides made of what an ancestor had, as one comparison of both."""
    if old.num_rows == 0:
        return new
    joined = old.join(new, "id", join_type="full outer", left_suffix="_old", right_suffix="_new")
    # A side that did not touch the row still has the ancestor's.
    in_old, in_new = joined["side_old"].is_valid(), joined["side_new"].is_valid()
    rows = pa.table(
        {
            "id": joined["id"],
            "before": pc.if_else(in_old, joined["after_old"], joined["before_new"]),
            "after": pc.if_else(in_new, joined["after_new"], joined["before_old"]),
        },
        schema=SCHEMA,
    )
    is_anywhere = pc.or_(rows["before"].is_valid(), rows["after"].is_valid())
    return rows.filter(is_anywhere)


def _since(tables: TableStorage, ancestor: TableHandle, handle: TableHandle) -> pa.Table:
    """Ids touched between an ancestor and a version."""
    touched = tables.ancestry.find_touched(handle, ancestor)
    gone = find_gone(tables, ancestor, handle, [touched])
    lost = pa.table({"id": ids_of(tables, ancestor, gone), ROW_ID: pa.array(gone)})
    return pair_rows(touched, lost, ancestor.version)


def find_gone(
    tables: TableStorage, ancestor: TableHandle, handle: TableHandle, touched: Iterable[pa.Table]
) -> RowIds:
    """The row ids of an ancestor that a version, of which this was touched, does not have."""
    made = sum(pc.sum(pc.greater(each[CREATED], ancestor.version)).as_py() or 0 for each in touched)
    kept = handle.row_count - made
    return tables.ancestry.find_gone(handle, ancestor, ancestor.row_count - kept)


def pair_rows(touched: pa.Table, lost: pa.Table, version: int) -> pa.Table:
    """Rows touched and lost since a version, by id; `side` marks them for an outer join."""
    is_new = pc.greater(touched[CREATED], version)
    made = touched.filter(is_new).select(["id", ROW_ID]).rename_columns(["id", "after"])
    lost = lost.rename_columns(["id", "before"])
    stayed = touched.filter(pc.invert(is_new))
    changed = pa.table([stayed["id"], stayed[ROW_ID], stayed[ROW_ID]], schema=SCHEMA)
    # An id that was taken away and written again is one row that changed.
    replaced = (
        made.join(lost, "id", join_type="full outer").select(SCHEMA.names).cast(SCHEMA)
        if lost.num_rows
        else made.append_column("before", pa.nulls(made.num_rows, pa.uint64())).select(SCHEMA.names)
    )
    rows = pa.concat_tables([changed, replaced.cast(SCHEMA)])
    return rows.append_column("side", pa.repeat(pa.scalar(True), rows.num_rows))


def ids_of(tables: TableStorage, handle: TableHandle, row_ids: RowIds) -> pa.Array:
    batches = tables.reads.take_stream(handle, row_ids, ["id"])
    return pa.concat_arrays([pa.array([], pa.utf8()), *(batch.column("id") for batch in batches)])


def candidates_by_id(tables: TableStorage, before: TableHandle, after: TableHandle) -> Differences:
    """Every id of both sides: always right, at the cost of a full scan of both tables."""
    old = _all_ids(tables, before, "before")
    new = _all_ids(tables, after, "after")
    joined = old.join(new, "id", join_type="full outer")
    return sort_rows(joined)


def candidates_of_ids(
    tables: TableStorage, before: TableHandle, after: TableHandle, ids: pa.Array
) -> Differences:
    """These ids, where at least one side has them; looked up by an index if there is one."""
    old = _all_ids(tables, before, "before", ids)
    new = _all_ids(tables, after, "after", ids)
    return sort_rows(old.join(new, "id", join_type="full outer"))


def candidates_of_one(
    tables: TableStorage, before: TableHandle | None, after: TableHandle | None
) -> Differences:
    """Every row of a table that only one of the two states has."""
    handle, name, other = (before, "before", "after") if before else (after, "after", "before")
    assert handle is not None
    rows = _all_ids(tables, handle, name)
    return sort_rows(rows.append_column(other, pa.nulls(rows.num_rows, pa.uint64())))


def _all_ids(
    tables: TableStorage, handle: TableHandle, name: str, ids: pa.Array | None = None
) -> pa.Table:
    """Ids and row ids of a side, of some ids if they are given."""
    wanted = None if ids is None else IsIn("id", ids)
    rows = tables.reads.scan(handle, ["id"], wanted, with_row_id=True)
    return rows.rename_columns(["id", name])


def sort_rows(rows: pa.Table) -> Differences:
    return Differences(rows.select(SCHEMA.names).sort_by("id").combine_chunks())


def drop_equal_rows(
    tables: TableStorage, before: TableHandle, after: TableHandle, found: Differences
) -> Differences:
    """Drop the rows that are on both sides with the same content."""
    rows = found.rows
    on_both = is_valid(rows["before"]) & is_valid(rows["after"])
    if not on_both.any():
        return found
    pairs = rows.filter(pa.array(on_both))
    is_equal = equal_content(
        tables, before, to_row_ids(pairs["before"]), after, to_row_ids(pairs["after"])
    )
    keep = ~on_both
    keep[on_both] = ~is_equal
    return Differences(rows.filter(pa.array(keep)))


def equal_content(
    tables: TableStorage,
    first: TableHandle,
    first_rows: RowIds,
    second: TableHandle,
    second_rows: RowIds,
) -> np.ndarray:
    """Which of the paired rows, of the same id each, are equal; read a bounded batch at a time."""
    size = BatchSize(first, second)
    parts = [np.empty(0, dtype=np.bool_)]
    for part in size.cut(len(first_rows)):
        # Rows are paired by id, so of all columns that one need not be read.
        one = _take(tables, first, first_rows[part], _columns_to_compare(first))
        other = _take(tables, second, second_rows[part], _columns_to_compare(second))
        parts.append(equal_rows(one, other))
        size.learn(one, other)
    return np.concatenate(parts)


def _columns_to_compare(handle: TableHandle) -> list[str]:
    return [name for name in handle.schema.names if name != "id"] or ["id"]


class BatchSize:
    """How many rows to read at once: `BATCH_BYTES` of them, as far as can be known.

    What a text takes is not known before one is read, so the first batch is a small one, and each
    may be eight times the one before it.
    """

    def __init__(self, *handles: TableHandle, most: int = BATCH_ROWS_MAX) -> None:
        self._most = min([most, *(_batch_rows(each.schema) for each in handles)])
        has_blobs = any(map(pa.types.is_large_binary, (t for h in handles for t in h.schema.types)))
        self.rows = 1 if has_blobs else min(FIRST_ROWS, self._most)

    def learn(self, *batches: pa.RecordBatch) -> None:
        """Choose the size of the next batches by what the last ones took."""
        fitting = BATCH_BYTES * batches[0].num_rows // max(sum(b.nbytes for b in batches), 1)
        self.rows = max(1, min(self._most, 8 * self.rows, fitting))

    def cut(self, count: int) -> Iterator[slice]:
        """Parts of so many rows, each of the size that was chosen by then."""
        first = 0
        while first < count:
            part = slice(first, first + self.rows)
            yield part
            first = part.stop


def _batch_rows(schema: pa.Schema) -> int:
    """How many rows may be in memory at once: fewer when rows are wide."""
    width = sum(_width(field.type) for field in schema)
    return max(1, min(BATCH_ROWS_MAX, BATCH_BYTES // max(width, 1)))


def _width(type_: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * _width(type_.value_type)
    if pa.types.is_large_binary(type_):
        return 64 * 1024
    try:
        return int(max(type_.bit_width // 8, 1))
    except ValueError:
        return _BYTES_OF_TEXT


def take_rows(
    tables: TableStorage,
    handle: TableHandle,
    rows: pa.ChunkedArray,
    size: BatchSize | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows with these row ids, in that order, a bounded batch at a time."""
    row_ids, size = to_row_ids(rows), size or BatchSize(handle)
    for part in size.cut(len(row_ids)):
        batch = _take(tables, handle, row_ids[part])
        yield batch
        size.learn(batch)


def _take(
    tables: TableStorage, handle: TableHandle, row_ids: RowIds, columns: list[str] | None = None
) -> pa.RecordBatch:
    (batch,) = tables.reads.take_stream(handle, row_ids, columns, batch_rows=len(row_ids))
    return batch


def read_images(
    tables: TableStorage,
    handle: TableHandle,
    rows: pa.ChunkedArray,
    size: BatchSize | None = None,
) -> Iterator[dict[str, Any] | None]:
    """The row of each row id as plain values; None where the row id is null."""
    found = (
        image
        for batch in take_rows(tables, handle, rows.drop_null(), size)
        for image in images(batch)
    )
    return (next(found) if is_there else None for is_there in is_valid(rows))


def to_row_ids(column: pa.ChunkedArray) -> RowIds:
    return np.asarray(column.to_numpy(), dtype=np.uint64)


def is_valid(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)
