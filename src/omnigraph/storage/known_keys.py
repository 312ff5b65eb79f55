"""Known keys: which keys are in the small fragments of a table, so that new rows need no join.

An upsert of rows that are all new is an append, which costs a fraction of a merge. To prove that
they are new, every fragment of the version has to be asked. Most of them are small ones that this
process has written itself: their keys are kept in memory, by the data file that holds them, which
never changes. Larger fragments are asked through their index, or scanned.

A key that was deleted still counts as there: the answer "not new" costs a merge and no more.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata

from omnigraph.lru import Lru
from omnigraph.storage.fragments import file_names
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.reads import Reads

ROWS_MAX = 1_024
"""Keys of larger fragments are not kept."""
FRAGMENTS_MAX = 512


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

    def are_new(self, handle: TableHandle, column: str, keys: pa.ChunkedArray) -> bool:
        """Whether no row of a version has one of these keys."""
        known, large = self._split(handle, column, keys.type)
        if pc.any(pc.is_in(known, value_set=keys)).as_py():
            return False
        wanted = IsIn(column, keys.combine_chunks())
        there = self._reads.scan(handle, [column], wanted, limit=1, fragment_ids=large)
        return int(there.num_rows) == 0

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
        found = self._reads.fragments(handle)
        small = [each for each in found if each.physical_rows <= ROWS_MAX]
        large = [each.fragment_id for each in found if each.physical_rows > ROWS_MAX]
        return pa.chunked_array(self._read_keys(handle, column, small), type_), large

    def _read_keys(
        self, handle: TableHandle, column: str, small: Sequence[Fragment]
    ) -> list[pa.Array]:
        """The keys of small fragments: those that are not known are read in one scan, and kept."""
        kept = [self._by_file.get(each.files[0]) for each in small]
        known = [keys for keys in kept if keys is not None]
        if len(known) == len(small):
            return known
        unknown = [each for each, keys in zip(small, kept, strict=True) if keys is None]
        # Deleted rows too: what this version does not show any more, another branch may.
        rows, start = self._reads.scan_physical(handle, [column], unknown), 0
        for each in unknown:
            keys = rows[column].slice(start, each.physical_rows).combine_chunks()
            start += each.physical_rows
            self._by_file.put(each.files[0], keys)
            known.append(keys)
        return known
