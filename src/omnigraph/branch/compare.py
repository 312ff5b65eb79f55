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

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.descent import Descent
from omnigraph.branch.differences import SCHEMA, Differences
from omnigraph.branch.row_batches import is_valid, to_row_ids
from omnigraph.branch.row_tasks import equal_content
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.reads import CREATED
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.taken_rows import keep_taken


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
    old, new = to_row_ids(pairs["before"]), to_row_ids(pairs["after"])
    # A write of the rows that differ need not read the ids that they were found by.
    ids = pa.RecordBatch.from_arrays([pairs["id"].combine_chunks()], ["id"])
    keep_taken(before, old, ids)
    keep_taken(after, new, ids)
    is_equal = equal_content(tables, before, old, after, new)
    keep = ~on_both
    keep[on_both] = ~is_equal
    return Differences(rows.filter(pa.array(keep)))
