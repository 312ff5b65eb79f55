"""Removed rows: which rows of a version a later one has lost, by the files that name deleted rows.

Both versions say of every fragment which rows of its data files are deleted, so nothing is scanned
and the size of the table does not matter. Of a fragment with five rows, of which the second was
deleted before, the fourth is deleted now: it was the third one left.

    >>> before, now = np.array([1]), np.array([1, 3])
    >>> newly = np.setdiff1d(now, before)
    >>> (newly - np.searchsorted(before, newly)).tolist()
    [2]
    >>> to_offsets(np.array([0, 1, 2]), before).tolist()
    [0, 2, 3]
"""

from __future__ import annotations

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import IntArray
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.reads import Reads

_NONE: IntArray = np.empty(0, dtype=np.int64)
_BYTES_PER_FRAGMENT = 512


@dataclass(frozen=True, slots=True, eq=False)
class Fragments:
    """A version and the fragments it consists of."""

    handle: TableHandle
    fragments: tuple[Fragment, ...]

    @property
    def nbytes(self) -> int:
        return len(self.fragments) * _BYTES_PER_FRAGMENT


def find_removed(reads: Reads, before: Fragments, now: Fragments) -> IntArray | None:
    """Positions of `before` whose rows are gone or were moved; None when a file is no plain list.

    A row of a data file that `now` does not have counts as well: it is gone, or written again.
    """
    left = {each.key: each for each in now.fragments}
    first, removed = 0, [_NONE]
    for each in before.fragments:
        later = left.get(each.key)
        if later is None:
            removed.append(np.arange(first, first + each.rows))
        elif later.deletions != each.deletions:
            then = reads.list_deleted(before.handle, each)
            offsets = reads.list_deleted(now.handle, later)
            if then is None or offsets is None:
                return None
            offsets = np.setdiff1d(offsets, then, assume_unique=True)
            removed.append(first + offsets - np.searchsorted(then, offsets))
        first += each.rows
    return np.concatenate(removed)


def read_row_ids(reads: Reads, version: Fragments, positions: IntArray) -> np.ndarray | None:
    """The row ids of some rows, as their fragments record them; None where they cannot be read."""
    starts = np.cumsum([0, *(each.rows for each in version.fragments)])
    found = np.empty(len(positions), dtype=np.uint64)
    owners = np.searchsorted(starts, positions, side="right") - 1
    for number in np.unique(owners).tolist():
        fragment, is_here = version.fragments[number], owners == number
        deleted = reads.list_deleted(version.handle, fragment)
        if deleted is None:
            return None
        offsets = to_offsets(positions[is_here] - starts[number], deleted)
        ids = reads.read_row_ids(version.handle, fragment, offsets)
        if ids is None:
            return None
        found[is_here] = ids
    return found


def to_offsets(places: IntArray, deleted: IntArray) -> IntArray:
    """Where rows are in their data file that are at these places among those left of it."""
    return np.asarray(
        places + np.searchsorted(deleted - np.arange(len(deleted)), places, side="right")
    )
