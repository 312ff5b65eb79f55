"""Known keys: which keys are in the small fragments of a table, so that an upsert needs no join.

An upsert is an append of rows whose keys are new, and takes the place of those whose keys are
there. To tell which is which, every fragment of the version has to be asked. Most of them are
small ones that this process has written itself: their keys are kept in memory, by the data file
that holds them, which never changes. Larger fragments are asked through their index, or scanned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata

from omnigraph.dataclass import dataclass
from omnigraph.lru import Lru
from omnigraph.storage.fragments import file_names
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.projection import ROW_ADDRESS, ROW_ID
from omnigraph.storage.reads import Reads
from omnigraph.storage.row_addresses import to_numbers
from omnigraph.storage.row_ids import RowIds

Places = npt.NDArray[np.int64]

ROWS_MAX = 1_024
"""Keys of larger fragments are not kept."""
FRAGMENTS_MAX = 512
_NO_ROW_IDS: RowIds = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows of a version by their keys: which of the keys, and the row id and address of each."""

    which: Places
    row_ids: RowIds
    addresses: RowIds

    @classmethod
    def concat(cls, parts: Sequence[KeyedRows]) -> KeyedRows:
        """All of them, in the order of their row ids."""
        which = np.concatenate([np.empty(0, dtype=np.int64), *(each.which for each in parts)])
        row_ids = np.concatenate([_NO_ROW_IDS, *(each.row_ids for each in parts)])
        addresses = np.concatenate([_NO_ROW_IDS, *(each.addresses for each in parts)])
        order = np.argsort(row_ids)
        return cls(which[order], row_ids[order], addresses[order])


class KnownKeys:
    """The keys of small fragments of the tables of one graph. Thread-safe."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._by_file = Lru[str, pa.Array](FRAGMENTS_MAX)
        """By the first data file of a fragment, which no other one has."""

    def remember(self, fragments: Sequence[FragmentMetadata], keys: pa.ChunkedArray) -> None:
        """Keep the keys of rows that were just written, when they make one small fragment."""
        if len(fragments) == 1 and len(keys) == fragments[0].physical_rows <= ROWS_MAX:
            self._by_file.put(file_names(fragments[0])[0], keys.combine_chunks())

    def locate(self, handle: TableHandle, column: str, keys: pa.Array) -> KeyedRows | None:
        """The rows of a version that have one of these keys, which are different ones.

        None when several rows have a key, or Lance keeps row ids in a form that is not known here.
        """
        small, large = self._list_fragments(handle)
        found = self._locate_in_small(handle, column, keys, small)
        if found is None:
            return None
        batches = self._reads.scan_stream(
            handle,
            [column],
            IsIn(column, keys),
            with_row_id=True,
            with_row_address=True,
            fragment_ids=large,
        )
        for each in batches:
            which = pc.index_in(each.column(column), value_set=keys)
            row_ids, addresses = (each.column(name) for name in (ROW_ID, ROW_ADDRESS))
            found.append(KeyedRows(_to_places(which), to_numbers(row_ids), to_numbers(addresses)))
        rows = KeyedRows.concat(found)
        return rows if len(set(rows.which.tolist())) == len(rows.which) else None

    def _locate_in_small(
        self, handle: TableHandle, column: str, keys: pa.Array, small: Sequence[Fragment]
    ) -> list[KeyedRows] | None:
        known = pa.chunked_array(self._read_keys(handle, column, small), keys.type)
        places = _to_places(pc.indices_nonzero(pc.is_in(known, value_set=keys)))
        which = _to_places(pc.index_in(known.take(pa.array(places)), value_set=keys))
        found, start = list[KeyedRows](), 0
        for fragment in small if len(places) else ():
            low, high = np.searchsorted(places, [start, start + fragment.physical_rows])
            if low < high:
                here = self._find_live(handle, fragment, places[low:high] - start, which[low:high])
                if here is None:
                    return None
                found.append(here)
            start += fragment.physical_rows
        return found

    def _find_live(
        self, handle: TableHandle, fragment: Fragment, offsets: Places, which: Places
    ) -> KeyedRows | None:
        """Those of some rows of a fragment that are not deleted."""
        is_live = np.ones(fragment.physical_rows, dtype=bool)
        is_live[self._reads.read_deleted(handle, fragment)] = False
        offsets, which = offsets[is_live[offsets]], which[is_live[offsets]]
        row_ids = self._reads.read_row_ids(handle, fragment, offsets)
        if row_ids is None:
            return None
        addresses = offsets.astype(np.uint64) + np.uint64(fragment.fragment_id << 32)
        return KeyedRows(which, row_ids, addresses)

    def find(self, handle: TableHandle, column: str, keys: pa.Array) -> pa.Array:
        """Those of some keys that rows of a version have, or had until they were deleted."""
        known, large = self._split(handle, column, keys.type)
        there = self._reads.scan(handle, [column], IsIn(column, keys), fragment_ids=large)
        taken = pa.chunked_array([*known.chunks, *there[column].chunks], keys.type)
        return keys.filter(pc.is_in(keys, value_set=taken))

    def _split(
        self, handle: TableHandle, column: str, type_: pa.DataType
    ) -> tuple[pa.ChunkedArray, list[int]]:
        """The keys of all small fragments, and the ids of the large ones."""
        small, large = self._list_fragments(handle)
        return pa.chunked_array(self._read_keys(handle, column, small), type_), large

    def _list_fragments(self, handle: TableHandle) -> tuple[list[Fragment], list[int]]:
        """The small fragments, and the ids of the large ones."""
        found = self._reads.fragments(handle)
        small = [each for each in found if each.physical_rows <= ROWS_MAX]
        return small, [each.fragment_id for each in found if each.physical_rows > ROWS_MAX]

    def _read_keys(
        self, handle: TableHandle, column: str, small: Sequence[Fragment]
    ) -> list[pa.Array]:
        """The keys of small fragments: those that are not known are read in one scan, and kept."""
        known = {each.files[0]: self._by_file.get(each.files[0]) for each in small}
        unknown = [each for each in small if known[each.files[0]] is None]
        if not unknown:
            return list(known.values())
        # Deleted rows too: what this version does not show any more, another branch may.
        rows, start = self._reads.scan_physical(handle, [column], unknown), 0
        for each in unknown:
            keys = rows[column].slice(start, each.physical_rows).combine_chunks()
            start += each.physical_rows
            self._by_file.put(each.files[0], keys)
            known[each.files[0]] = keys
        return list(known.values())


def _to_places(found: pa.Array) -> Places:
    return np.asarray(found.to_numpy(), dtype=np.int64)
