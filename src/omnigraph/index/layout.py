"""Layout: in which fragments the rows of a version lie, and which rows of their files are deleted.

A position is the number of a row in a full scan; a row of a data file has an offset in it. What is
derived of a data file knows offsets, and a version turns them into positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.addressed import Files
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.tables import TableStorage


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The fragments of a version by their files, where each starts, and its deleted rows."""

    fragments: Mapping[Files, Fragment]
    starts: Mapping[Files, int]
    deleted: Mapping[Files, IntArray]
    _by_file: Mapping[str, IntArray] = field(repr=False)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.deleted.values()) + 256 * len(self.fragments)


def read_layout(tables: TableStorage, handle: TableHandle, known: Layout | None = None) -> Layout:
    """The layout of a version; deletion files that a `known` one has are not read again."""
    fragments = tables.reads.fragments(handle)
    rows = [each.rows for each in fragments]
    starts = dict(
        zip(
            [each.files for each in fragments],
            np.concatenate([[0], np.cumsum(rows)])[:-1].tolist(),
            strict=True,
        )
    )
    by_file: dict[str, AnyArray] = {}
    deleted: dict[Files, AnyArray] = {}
    for each in fragments:
        if each.deletions is not None:
            found = None if known is None else known._by_file.get(each.deletions)
            rows_deleted = tables.reads.read_deleted(handle, each) if found is None else found
            by_file[each.deletions] = deleted[each.files] = rows_deleted
    return Layout({each.files: each for each in fragments}, starts, deleted, by_file)
