"""Fold: several changes of one table, one after the other, as one plan of a merge.

Each change leads from a `before` to an `after`. A row of it is made if the row is what the change
starts from by then, as the target and the changes before it leave it; left alone if it is already
what the change ends with; and a conflict otherwise. The rows that are made are of several versions
of the table, so they are put beside the last one, which the merge reads as its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.compare import differences
from omnigraph.branch.conflicts import Contest, list_contests, read_base_images
from omnigraph.branch.descent import Descent, open_entry
from omnigraph.branch.differences import SCHEMA, Differences
from omnigraph.branch.plan import How, TablePlan
from omnigraph.branch.row_batches import is_valid, take_rows, to_row_ids
from omnigraph.branch.virtual_base import BaseTable, Flags, Rows, absent_rows
from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.manifest import GraphCommit, Snapshot, TableEntry
from omnigraph.storage.handles import TableHandle

Step = tuple[TableEntry, TableEntry]
"""A table before and after a change."""


def fold_changes(
    descent: Descent, entity: EntityType, target_entry: TableEntry, steps: Sequence[Step]
) -> tuple[TablePlan, list[Contest]]:
    """Plan the steps, in this order. Costs what they changed, not what the table has."""
    opened = [tuple(open_entry(descent.tables, each) for each in step) for step in steps]
    changes = [differences(descent, before, after) for before, after in opened]
    target = open_entry(descent.tables, target_entry)
    ids = pc.unique(pa.concat_arrays([each.ids for each in changes]))
    table = BaseTable(descent.tables, entity.table_key, _no_snapshot)
    start = table.find_in(target, ids) if len(ids) else absent_rows(0)
    fold = _Fold(table, ids, start)
    for (before, after), change in zip(opened, changes, strict=True):
        fold.make(before, after, change)
    source, rows, contested = fold.finish(opened[-1][1], target.schema)
    plan = TablePlan(
        entity=entity,
        source_entry=steps[-1][1],
        target_entry=target_entry,
        source=source,
        target=target,
        delta=Differences(rows),
        how=How.APPLY,
        is_rewrite=True,
    )
    bases = read_base_images(table, fold.bases.take(np.flatnonzero(fold.is_disputed)))
    return plan, list_contests(descent.tables, entity, bases, (target, source), contested)


def _no_snapshot(commit: GraphCommit) -> Snapshot:
    raise AssertionError("the rows of a fold are found by their handles")


@dataclass(slots=True)
class _Fold:
    """Rows by id: as the target has them, as they are by now, and what the last step makes."""

    table: BaseTable
    ids: pa.StringArray
    start: Rows
    now: Rows = field(init=False)
    last: Rows = field(init=False)
    bases: Rows = field(init=False)
    is_disputed: Flags = field(init=False)

    def __post_init__(self) -> None:
        everything = np.arange(len(self.ids))
        self.now, self.last = self.start.take(everything), self.start.take(everything)
        self.bases = absent_rows(len(self.ids))
        self.is_disputed = np.zeros(len(self.ids), dtype=np.bool_)

    def make(self, before: TableHandle, after: TableHandle, change: Differences) -> None:
        """Make one change, as far as its rows are what it starts from."""
        at = pc.index_in(change.ids, value_set=self.ids).to_numpy(zero_copy_only=False)
        old = self.table.rows_in(before, change.rows["before"])
        new = self.table.rows_in(after, change.rows["after"])
        found = self.now.take(at)
        fits, is_made = self.table.are_equal(found, old), self.table.are_equal(found, new)
        _put(self.now, at[fits], new.take(np.flatnonzero(fits)))
        _put(self.last, at, new)
        is_new_dispute = ~fits & ~is_made & ~self.is_disputed[at]
        _put(self.bases, at[is_new_dispute], old.take(np.flatnonzero(is_new_dispute)))
        self.is_disputed[at[is_new_dispute]] = True

    def finish(
        self, last: TableHandle, schema: pa.Schema
    ) -> tuple[TableHandle, pa.Table, pa.Table]:
        """The last version with the rows that were made, rows of the target to change, disputes."""
        is_changed = ~self.table.are_equal(self.now, self.start) & ~self.is_disputed
        made = self.now.take(np.arange(len(self.ids)))
        disputed = np.flatnonzero(self.is_disputed)
        _put(made, disputed, self.last.take(disputed))
        source, known = self.table.tables.put_beside(
            last, self._take(made, is_changed | self.is_disputed, schema)
        )
        after = pa.array([known.get(each) for each in self.ids.to_pylist()], pa.uint64())
        before = pa.array(self.start.row_ids, mask=self.start.numbers < 0)
        rows = pa.table([self.ids, before, after], schema=SCHEMA)
        changed = rows.filter(pa.array(is_changed)).sort_by("id").combine_chunks()
        contested = rows.filter(pa.array(self.is_disputed))
        return source, changed, contested.rename_columns(["id", "target", "after"])

    def _take(self, made: Rows, wanted: Flags, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for handle, row_ids in self.table.columns(made):
            chosen = row_ids.filter(pa.array(wanted & is_valid(row_ids)))
            for batch in take_rows(self.table.tables, handle, to_row_ids(chosen)):
                yield batch.select(schema.names).cast(schema)


def _put(rows: Rows, at: npt.NDArray[np.intp], values: Rows) -> None:
    rows.numbers[at], rows.row_ids[at] = values.numbers, values.row_ids
