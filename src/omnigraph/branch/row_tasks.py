"""Row tasks: rows of large branches, compared and written by tasks where a Spark is chosen.

A task gets the names of versions and row ids of them. What comes back is one flag a row, or what
names the files that were written: no row passes through this process.
"""

from __future__ import annotations

import numpy as np

from omnigraph.branch.row_batches import equal_in_batches, take_rows
from omnigraph.dataclass import dataclass
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.parts import WrittenPart, count_rows, mark_by_tasks, write_part
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.table_tasks import NamedVersion, TableTasks, cut_rows
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.work_progress import COMPARING, REMOVING, WRITING, one_part


def equal_content(
    tables: TableStorage,
    first: TableHandle,
    first_rows: RowIds,
    second: TableHandle,
    second_rows: RowIds,
) -> np.ndarray:
    """Which of the paired rows, of the same id each, are equal."""
    tasks = tables.tasks
    if tasks is None or not tasks.takes_rows(len(first_rows), first, second):
        with one_part(COMPARING, len(first_rows)):
            return equal_in_batches(tables, first, first_rows, second, second_rows)
    # Row ids follow the files, so a task reads a few files and not some rows of all.
    order = np.argsort(second_rows, kind="stable")
    pairs = [
        _Pairs(NamedVersion.of(second), first_rows[order[part]], second_rows[order[part]])
        for part in cut_rows(len(order))
    ]
    found = tasks.run(first, _compare, pairs, COMPARING, len)
    is_equal = np.empty(len(order), dtype=np.bool_)
    is_equal[order] = np.concatenate(found)
    return is_equal


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Rows of the table that a task is given, and of another version, in pairs."""

    other: NamedVersion
    rows: RowIds
    other_rows: RowIds


def _compare(tables: TableStorage, handle: TableHandle, pairs: _Pairs) -> np.ndarray:
    other = pairs.other.open(tables)
    tables.reads.expect_takes(handle, pairs.rows)
    tables.reads.expect_takes(other, pairs.other_rows)
    return equal_in_batches(tables, handle, pairs.rows, other, pairs.other_rows)


def stage_append_of(
    tables: TableStorage, handle: TableHandle, source: TableHandle, row_ids: RowIds
) -> StagedTransaction:
    """Stage rows of another table, in the order of the row ids, as new ones."""
    tasks = tables.tasks
    if tasks is None or not tasks.takes_rows(len(row_ids), handle, source):
        with one_part(WRITING, len(row_ids)):
            return tables.rows.stage_append_stream(handle, take_rows(tables, source, row_ids))
    return tables.parts.stage_append(handle, _write_parts(tasks, handle, source, row_ids))


def stage_replace_by(
    tables: TableStorage,
    handle: TableHandle,
    source: TableHandle,
    row_ids: RowIds,
    replaced: RowIds,
) -> StagedTransaction:
    """Stage rows of another table in place of others."""
    tasks = tables.tasks
    if tasks is None or not tasks.takes_rows(len(row_ids), handle, source):
        rows = take_rows(tables, source, row_ids)
        with one_part(WRITING, len(row_ids)):
            return tables.rows.stage_replace_rows(handle, rows, replaced)
    parts = _write_parts(tasks, handle, source, row_ids)
    return tables.parts.stage_replace(handle, parts, mark_by_tasks(tasks, handle, replaced))


def stage_delete_of(
    tables: TableStorage, handle: TableHandle, row_ids: RowIds
) -> StagedTransaction | None:
    """Stage the removal of rows; None when there is none."""
    tasks = tables.tasks
    if tasks is None or not tasks.takes_rows(len(row_ids), handle):
        with one_part(REMOVING, len(row_ids)):
            return tables.rows.stage_delete_rows(handle, row_ids)
    return tables.parts.stage_delete(handle, mark_by_tasks(tasks, handle, row_ids), len(row_ids))


@dataclass(frozen=True, slots=True)
class _Taken:
    """Rows of a version, to be written to the table that a task is given."""

    source: NamedVersion
    rows: RowIds


def _write_parts(
    tasks: TableTasks, handle: TableHandle, source: TableHandle, row_ids: RowIds
) -> list[WrittenPart]:
    name = NamedVersion.of(source)
    taken = [_Taken(name, row_ids[part]) for part in cut_rows(len(row_ids))]
    return list(tasks.run(handle, _write_taken, taken, WRITING, count_rows))


def _write_taken(tables: TableStorage, handle: TableHandle, taken: _Taken) -> WrittenPart:
    source = taken.source.open(tables)
    tables.reads.expect_takes(source, taken.rows)
    return write_part(handle, take_rows(tables, source, taken.rows))
