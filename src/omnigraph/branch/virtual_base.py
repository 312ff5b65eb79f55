"""Virtual bases: the rows of several merge bases as one, looked up only where they are asked for.

A row of a virtual base is a row of one of the commits it is made of, or there is none, or its
parts disagree: both changed the row since their own base, and not alike. Such a row equals no
other, so that it counts as changed on both sides of the merge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.descent import open_entry
from omnigraph.branch.merge_base import Base, VirtualBase
from omnigraph.branch.row_batches import is_valid, to_row_ids
from omnigraph.branch.row_tasks import equal_content
from omnigraph.dataclass import dataclass
from omnigraph.manifest import GraphCommit, Snapshot, TableEntry
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.tables import TableStorage

ABSENT, DISPUTED = -1, -2
_IDS_PER_SCAN = 8_192

Flags = npt.NDArray[np.bool_]
HandleNumbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """One row per id: the number of its handle, ABSENT or DISPUTED, and its row id there."""

    numbers: HandleNumbers
    row_ids: RowIds

    def take(self, at: npt.NDArray[np.intp]) -> Rows:
        return Rows(self.numbers[at], self.row_ids[at])


def absent_rows(count: int) -> Rows:
    return Rows(np.full(count, ABSENT, dtype=np.int64), np.zeros(count, dtype=np.uint64))


def entry_of(
    base: Base, table_key: str, snapshot_of: Callable[[GraphCommit], Snapshot]
) -> TableEntry | VirtualBase | None:
    """The version of a table that is the base, or the virtual base when it takes several.

    As for rows: what one part did not change since its own base, the other part decides.
    """
    if not isinstance(base, VirtualBase):
        return snapshot_of(base).entries.get(table_key)
    one = entry_of(base.one, table_key, snapshot_of)
    other = entry_of(base.other, table_key, snapshot_of)
    if is_same_entry(one, other):
        return one
    deeper = base.find_base()
    under = entry_of(deeper, table_key, snapshot_of) if deeper is not None else None
    if is_same_entry(one, under):
        return other
    return one if is_same_entry(other, under) else base


def is_same_entry(
    one: TableEntry | VirtualBase | None, other: TableEntry | VirtualBase | None
) -> bool:
    """Whether both are known to have the same rows, because they are one version."""
    if isinstance(one, TableEntry) and isinstance(other, TableEntry):
        return one.shows_same_rows(other)
    return one is None and other is None


@dataclass(slots=True)
class BaseTable:
    """One table as the commits of a base have it."""

    tables: TableStorage
    table_key: str
    snapshot_of: Callable[[GraphCommit], Snapshot]
    handles: list[TableHandle] = field(default_factory=list)

    def rows_in(self, handle: TableHandle, row_ids: pa.ChunkedArray) -> Rows:
        """The rows with these row ids of a handle; absent where the row id is null."""
        if handle not in self.handles:
            self.handles.append(handle)
        numbers = np.where(is_valid(row_ids), self.handles.index(handle), ABSENT)
        return Rows(numbers.astype(np.int64), to_row_ids(row_ids.fill_null(0)))

    def find(self, base: Base, ids: pa.StringArray) -> Rows:
        """The rows of a base with these ids."""
        if isinstance(base, VirtualBase):
            return self._find_virtual(base, ids)
        entry = self.snapshot_of(base).entries.get(self.table_key)
        if entry is None or not len(ids):
            return absent_rows(len(ids))
        return self.find_in(open_entry(self.tables, entry), ids)

    def _find_virtual(self, base: VirtualBase, ids: pa.StringArray) -> Rows:
        one, other = self.find(base.one, ids), self.find(base.other, ids)
        differing = np.flatnonzero(~self.are_equal(one, other))
        if not len(differing):
            return one
        deeper, asked = base.find_base(), ids.take(pa.array(differing))
        under = absent_rows(len(asked)) if deeper is None else self.find(deeper, asked)
        first, second = one.take(differing), other.take(differing)
        first_kept, second_kept = self.are_equal(first, under), self.are_equal(second, under)
        numbers, row_ids = one.numbers.copy(), one.row_ids.copy()
        numbers[differing] = np.select(
            [first_kept, second_kept], [second.numbers, first.numbers], DISPUTED
        )
        row_ids[differing] = np.where(first_kept, second.row_ids, first.row_ids)
        return Rows(numbers, row_ids)

    def find_in(self, handle: TableHandle, ids: pa.StringArray) -> Rows:
        """The rows of one handle with these ids."""
        # Few ids are looked up, many are cheaper found in one pass.
        wanted = IsIn("id", ids) if len(ids) <= _IDS_PER_SCAN else None
        known = self.tables.reads.scan(handle, ["id"], wanted, with_row_id=True)
        at = pc.index_in(ids, value_set=known["id"].combine_chunks())
        return self.rows_in(handle, known["_rowid"].take(at))

    def are_equal(self, one: Rows, other: Rows) -> Flags:
        """Which rows, of the same id each, have the same content; disputed ones never do."""
        result: Flags = (one.numbers == other.numbers) & (one.numbers != DISPUTED)
        result &= (one.numbers == ABSENT) | (one.row_ids == other.row_ids)
        open_ = ~result & (one.numbers >= 0) & (other.numbers >= 0)
        for first, second in np.unique(
            np.stack([one.numbers[open_], other.numbers[open_]], axis=1), axis=0
        ):
            at = np.flatnonzero(open_ & (one.numbers == first) & (other.numbers == second))
            result[at] = equal_content(
                self.tables,
                self.handles[first],
                one.row_ids[at],
                self.handles[second],
                other.row_ids[at],
            )
        return result

    def columns(self, rows: Rows) -> Sequence[tuple[TableHandle, pa.ChunkedArray]]:
        """Per handle, the row ids of the rows that are in it, null elsewhere."""
        return [
            (
                handle,
                pa.chunked_array([pa.array(rows.row_ids, mask=rows.numbers != number)]),
            )
            for number, handle in enumerate(self.handles)
        ]
