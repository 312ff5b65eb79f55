"""Ancestry: what changed between a version of a table and one that came from it.

Lance stamps every row with the version that created it and the one that last changed it, and a
fork goes on counting where it left. Rows only ever change by moving to a new data file, and a row
keeps its row id for as long as it lives. So, from an older version to a newer one of the same
line of descent, only data files that the older one does not have can hold touched rows, and what
is gone are the row ids that are missing. Neither costs a look at the rows that stayed.

None of this holds across a change of columns; `field_ids` tells whether there was one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.base_paths import RelocatedDataset
from omnigraph.storage.counters import record
from omnigraph.storage.fragments import file_names
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.projection import IN_TURN, ROW_ADDRESS, ROW_ID
from omnigraph.storage.reads import CREATED, UPDATED, Reads
from omnigraph.storage.row_addresses import to_numbers
from omnigraph.storage.row_ids import RowIds

_BATCH_ROWS = 1 << 14
_NO_ROWS: RowIds = np.empty(0, dtype=np.uint64)
TOUCHED = pa.schema(
    [
        ("id", pa.utf8()),
        (CREATED, pa.uint64()),
        (ROW_ID, pa.uint64()),
        (ROW_ADDRESS, pa.uint64()),
    ]
)


class Ancestry:
    """Compares a version of a table with an ancestor of it. Thread-safe."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def field_ids(self, handle: TableHandle) -> tuple[tuple[str, int], ...]:
        """Name and identity of every column: a column dropped and made again has another one."""
        with lance_errors("reading the columns of a table", handle.location, handle.version):
            fields = handle._dataset.lance_schema.fields()
        return tuple((field.name(), field.id()) for field in fields)

    def find_touched(self, handle: TableHandle, ancestor: TableHandle) -> pa.Table:
        """The rows made or changed after `ancestor`, in the columns of `TOUCHED`."""
        touched = pa.concat_tables(
            [TOUCHED.empty_table(), *self.stream_touched(handle, ancestor)]
        ).combine_chunks()
        self._reads.addresses.put_rows(handle, touched)
        return touched

    def stream_touched(self, handle: TableHandle, ancestor: TableHandle) -> Iterator[pa.Table]:
        """The same, in the order of the files and a bounded number of rows at a time."""
        known = {file_names(fragment) for fragment in ancestor._dataset.get_fragments()}
        rows = 0
        with lance_errors("reading a table", handle.location, handle.version):
            fragments = handle._dataset.get_fragments()
            new = [each for each in fragments if file_names(each) not in known]
            if not new:
                return
            batches = handle._dataset.scanner(
                columns=["id", CREATED, UPDATED],
                with_row_id=True,
                with_row_address=True,
                fragments=new,
                batch_size=_BATCH_ROWS,
                **IN_TURN,
            ).to_reader()
        while True:
            with lance_errors("reading a table", handle.location, handle.version):
                batch = next(batches, None)
            if batch is None:
                break
            rows += batch.num_rows
            # Not filtered by Lance: a row that compaction moved is in a new file, yet untouched.
            touched = batch.filter(pc.greater(batch[UPDATED], ancestor.version))
            yield pa.Table.from_batches([touched]).select(TOUCHED.names).cast(TOUCHED)
        record(scans=1, rows_scanned=rows)

    def find_changes(
        self, handle: TableHandle, ancestor: TableHandle, new: Sequence[int], columns: Sequence[str]
    ) -> tuple[pa.Table, pa.Table] | None:
        """The rows made or changed after `ancestor`, and the rows changed or deleted as they were.

        `new` are the fragments whose data files `ancestor` does not have. None when Lance cannot
        tell which rows were deleted.
        """
        found = self._find_replaced(handle, ancestor, new, columns)
        if found is None:
            return None
        come, gone = found
        before = self._reads.take_rows(ancestor, gone.tolist(), columns)
        return come.select(list(columns)), before

    def _find_replaced(
        self, handle: TableHandle, ancestor: TableHandle, new: Sequence[int], columns: Sequence[str]
    ) -> tuple[pa.Table, RowIds] | None:
        """The same, with row ids; of the rows changed or deleted only their row ids."""
        touched, changed = self._scan_touched(handle, ancestor, new, columns)
        count = ancestor.row_count + touched.num_rows - len(changed) - handle.row_count
        if count == 0:
            return touched, changed
        deleted = self.find_deleted(handle, ancestor)
        if deleted is None or len(deleted) != count:
            return None
        return touched, np.concatenate([changed, deleted])

    def _scan_touched(
        self,
        handle: TableHandle,
        ancestor: TableHandle,
        fragment_ids: Sequence[int],
        columns: Sequence[str],
    ) -> tuple[pa.Table, RowIds]:
        """The touched rows in these fragments, and the row ids of those that `ancestor` has."""
        if not fragment_ids:
            rows = handle.schema.empty_table().select(list(columns))
            return rows.append_column(ROW_ID, pa.array([], pa.uint64())), _NO_ROWS
        with lance_errors("reading a table", handle.location, handle.version):
            every = handle._dataset.get_fragments()
            fragments = [each for each in every if each.fragment_id in fragment_ids]
            rows = handle._dataset.scanner(
                columns=[*columns, CREATED, UPDATED], with_row_id=True, fragments=fragments
            ).to_table()
        record(scans=1, rows_scanned=rows.num_rows)
        rows = rows.filter(pc.greater(rows[UPDATED], ancestor.version))
        is_changed = pc.less_equal(rows[CREATED], ancestor.version)
        return rows.select([*columns, ROW_ID]), to_numbers(rows[ROW_ID].filter(is_changed))

    def find_gone(self, handle: TableHandle, ancestor: TableHandle, count: int) -> RowIds:
        """The row ids of `ancestor`, `count` of them, that are not there any more."""
        if count == 0:
            return _NO_ROWS
        gone = self.find_deleted(handle, ancestor)
        if gone is None or len(gone) != count:
            before, now = self._row_ids(ancestor), self._row_ids(handle)
            gone = np.setdiff1d(before, now, assume_unique=True)
        return gone

    def find_deleted(self, handle: TableHandle, ancestor: TableHandle) -> RowIds | None:
        """Row ids deleted since `ancestor`, as Lance reports them from the two manifests.

        None when Lance cannot tell. A caller that knows how many there are compares the count.
        """
        if isinstance(handle._dataset, RelocatedDataset):
            return None  # Lance would open the ancestor with the base paths of its file
        try:
            delta = handle._dataset.delta(compared_against=ancestor.version)
            return to_numbers(delta.get_deleted_row_ids().read_all()[ROW_ID])
        except (OSError, ValueError, RuntimeError):
            # A fork has no versions of its own from before it was made.
            return None

    def _row_ids(self, handle: TableHandle) -> RowIds:
        """The row id of every row; reads no data file."""
        return to_numbers(self._reads.scan(handle, [], with_row_id=True)[ROW_ID])
