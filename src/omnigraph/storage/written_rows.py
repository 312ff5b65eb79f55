"""Written rows: the rows of small data files, as this process wrote them.

A data file never changes and no other file has its name, so what was written to it is what a scan
of it reads. The first query after a commit of a few rows needs no scan to learn them, which would
take longer than the query itself.

Blobs are left out, and so are files that Lance wrote in the order of a join.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.lru import Lru
from omnigraph.storage.blobs import blob_columns
from omnigraph.storage.fragments import file_names
from omnigraph.storage.handles import Fragment, TableHandle

ROWS_MAX = 1_024
BYTES_MAX = 64 * 1024
"""Rows that take more are read again: a scan costs little beside what is then done with them."""
FILES_MAX = 256


class WrittenRows:
    """The rows of the data files that the writes of one graph have made last. Thread-safe."""

    def __init__(self) -> None:
        self._by_files = Lru[tuple[str, ...], pa.Table](FILES_MAX)

    def remember(self, fragments: Sequence[FragmentMetadata], rows: pa.Table) -> None:
        """Keep rows that were just written in this order, when they make one small fragment."""
        if len(fragments) != 1 or not rows.num_rows == fragments[0].physical_rows <= ROWS_MAX:
            return
        kept = rows.drop_columns(blob_columns(rows.schema))
        if kept.nbytes <= BYTES_MAX:
            self._by_files.put(file_names(fragments[0]), kept.combine_chunks())

    def find(
        self, handle: TableHandle, columns: Sequence[str], fragments: Sequence[Fragment]
    ) -> pa.Table | None:
        """All rows in the data files of some fragments; None unless all of them are known."""
        if handle.shown is not None:
            return None  # its columns may have other names or types than they were written in
        found = [self._by_files.get(each.files) for each in fragments]
        known = [each for each in found if each is not None]
        if not known or len(known) < len(found):
            return None
        if any(name not in each.column_names for each in known for name in columns):
            return None
        return pa.concat_tables([each.select(list(columns)) for each in known])
