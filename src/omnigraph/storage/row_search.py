"""Row search: the row of one id in many versions of a table, without reading any of them twice.

Lance stamps a row with the version that created it and the one that last changed it, and a row
keeps its row id while it lives. So a row that is found once is followed by its row id. Where it is
not there yet, or no longer, it may still lie in a data file that an older version shows: the ids of
each data file are read once, and from then on only whether it is deleted is looked up.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.storage.counters import record
from omnigraph.storage.filters import at_addresses
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.predicates import Compare, CompareOp
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.reads import CREATED, UPDATED, Reads

_STAMPS = [CREATED, UPDATED]


@dataclass(frozen=True, slots=True)
class RowStamp:
    """A row: its id in the table, and the versions that created it and last changed it."""

    row_id: int
    created: int
    updated: int


class RowSearch:
    """Finds one entity in versions of tables. For one operation; not thread-safe."""

    def __init__(self, reads: Reads, entity_id: str) -> None:
        self._reads = reads
        self._entity_id = entity_id
        self._positions: dict[tuple[str, ...], list[int]] = {}

    def find(self, handle: TableHandle) -> RowStamp | None:
        """Look the row up by its id, by an index if there is one."""
        same = Compare("id", CompareOp.EQ, pa.scalar(self._entity_id))
        rows = self._reads.scan(handle, ["id"], same, with_row_id=True, limit=1)
        return self._read_stamp(handle, rows[ROW_ID][0].as_py()) if rows.num_rows else None

    def follow(self, handle: TableHandle, row: RowStamp) -> RowStamp | None:
        """The same row in another version, found by its row id."""
        return self._read_stamp(handle, row.row_id)

    def search(self, handle: TableHandle) -> RowStamp | None:
        """Find the row, reading only data files that were not read before."""
        found = [self._find_addresses(handle, each) for each in self._reads.fragments(handle)]
        addresses = [address for each in found for address in each]
        if not addresses:
            return None
        with lance_errors("fetching rows", handle.location, handle.version):
            rows = handle._dataset.scanner(
                columns=_STAMPS, with_row_id=True, filter=at_addresses(addresses)
            ).to_table()
        return _to_stamp(rows)

    def _find_addresses(self, handle: TableHandle, fragment: Fragment) -> list[int]:
        """Where the id is in the data files of a fragment, in deleted rows too."""
        if fragment.files not in self._positions:
            ids = self._reads.scan_physical(handle, ["id"], [fragment])["id"]
            found = pc.indices_nonzero(pc.equal(ids, self._entity_id))
            self._positions[fragment.files] = found.to_pylist()
        return [(fragment.fragment_id << 32) + each for each in self._positions[fragment.files]]

    def _read_stamp(self, handle: TableHandle, row_id: int) -> RowStamp | None:
        with lance_errors("fetching rows", handle.location, handle.version):
            rows = handle._dataset._take_rows([row_id], columns=_STAMPS)
        return _to_stamp(rows.append_column(ROW_ID, pa.array([row_id] * rows.num_rows)))


def _to_stamp(rows: pa.Table) -> RowStamp | None:
    """The one row that was found, None without any."""
    record(rows_taken=rows.num_rows)
    for row in rows.to_pylist():
        return RowStamp(row[ROW_ID], row[CREATED], row[UPDATED])
    return None
