"""Row search: the row of one id in many versions of a table, without reading any of them twice.

Lance stamps a row with the version that created it and the one that last changed it, and a row
keeps its row id while it lives. So a row that is found once is followed by its row id: where that
can lie is what fragments record (`row_ids.py`). Where it is not there yet, or no longer, an older
version may still show a row of the same id: its index is asked, which knows the rows that are not
deleted in that version. The ids of data files without an index are read once, and so are those that
were asked for in as many versions as a read costs; from then on only whether the row is deleted is
looked up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.storage.counters import record
from omnigraph.storage.filters import at_addresses
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.predicates import Compare, CompareOp
from omnigraph.storage.projection import ROW_ADDRESS, ROW_ID
from omnigraph.storage.reads import CREATED, UPDATED, Reads
from omnigraph.storage.row_addresses import locate_rows

ROWS_PER_LOOKUP = 16_384
"""So many ids are read in the time that an index takes to find one."""
_STAMPS = [CREATED, UPDATED]


@dataclass(frozen=True, slots=True)
class RowStamp:
    """A row: its id in the table, and the versions that created it and last changed it.

    `address` is where it lies in the version that it was found in.
    """

    row_id: int
    address: int
    created: int
    updated: int


class RowSearch:
    """Finds one entity in versions of tables. For one operation; not thread-safe."""

    def __init__(self, reads: Reads, entity_id: str) -> None:
        self._reads = reads
        self._entity_id = entity_id
        self._positions: dict[tuple[str, ...], list[int]] = {}
        self._asked = Counter[tuple[str, ...]]()

    def find(self, handle: TableHandle) -> RowStamp | None:
        """Look the row up by its id, by an index if there is one."""
        return self._read_stamp(handle, self._find_live(handle))

    def follow(self, handle: TableHandle, row: RowStamp) -> RowStamp | None:
        """The same row in another version, found by its row id."""
        found = locate_rows(handle, np.array([row.row_id], dtype=np.uint64))
        return self._read_stamp(handle, [each for _, here in found for each in here.tolist()])

    def search(self, handle: TableHandle) -> RowStamp | None:
        """Find the row, by an index or in the ids of data files, which are read once."""
        indexed = self._reads.list_indexed_fragments(handle, "id")
        asked, addresses = [], []
        for fragment in self._reads.fragments(handle):
            if fragment.fragment_id in indexed and self._is_index_cheaper(fragment):
                asked.append(fragment.fragment_id)
            else:
                addresses += self._find_addresses(handle, fragment)
        return self._read_stamp(handle, addresses + self._find_live(handle, asked))

    def _is_index_cheaper(self, fragment: Fragment) -> bool:
        """Whether asking once more costs less, with what was asked before, than to read the ids."""
        if fragment.files in self._positions:
            return False
        self._asked[fragment.files] += 1
        return fragment.physical_rows > ROWS_PER_LOOKUP * self._asked[fragment.files]

    def _find_live(
        self, handle: TableHandle, fragment_ids: Sequence[int] | None = None
    ) -> list[int]:
        """Where the id is, in some fragments or in all of them."""
        same = Compare("id", CompareOp.EQ, pa.scalar(self._entity_id))
        batches = self._reads.scan_stream(
            handle, ["id"], same, with_row_address=True, limit=1, fragment_ids=fragment_ids
        )
        return [address for each in batches for address in each.column(ROW_ADDRESS).to_pylist()]

    def _find_addresses(self, handle: TableHandle, fragment: Fragment) -> list[int]:
        """Where the id is in the data files of a fragment, in deleted rows too."""
        if fragment.files not in self._positions:
            ids = self._reads.scan_physical(handle, ["id"], [fragment])["id"]
            found = pc.indices_nonzero(pc.equal(ids, self._entity_id))
            self._positions[fragment.files] = found.to_pylist()
        return [(fragment.fragment_id << 32) + each for each in self._positions[fragment.files]]

    def _read_stamp(self, handle: TableHandle, addresses: Sequence[int]) -> RowStamp | None:
        """The row at one of these addresses that is not deleted; None without any."""
        if not addresses:
            return None
        with lance_errors("fetching rows", handle.location, handle.version):
            rows = handle._dataset.scanner(
                columns=_STAMPS,
                with_row_id=True,
                with_row_address=True,
                filter=at_addresses(addresses),
            ).to_table()
        record(rows_taken=rows.num_rows)
        for row in rows.to_pylist():
            return RowStamp(row[ROW_ID], row[ROW_ADDRESS], row[CREATED], row[UPDATED])
        return None
