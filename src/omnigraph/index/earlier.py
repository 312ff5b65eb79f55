"""Earlier: what is kept of earlier versions of a table, for a later one to go on from.

A commit changes few rows, so most of what was decoded of the version before still holds. Rows of
data files that both versions have are where they were, but for those that were removed; all other
rows come after them. That is checked, not assumed: where it does not hold, or much has changed,
nothing is carried over and the version is read anew. The answers are the same either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.index.arrays import IntArray
from omnigraph.index.cache import RuntimeCache, Sized, TableId
from omnigraph.index.columns import Column
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.tables import TableStorage

CHANGED_SHARE = 8
"""Nothing is carried over when more than one row in so many was added or removed."""
_BYTES_PER_PIECE = 512
_NONE: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A version and the pieces it consists of."""

    handle: TableHandle
    pieces: tuple[Fragment, ...]

    @property
    def nbytes(self) -> int:
        return len(self.pieces) * _BYTES_PER_PIECE


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """From a version to a later one: `kept` rows are in both, the others of the later one follow.

    `removed` are positions of the earlier version, ascending. `added` are the pieces that are new.
    """

    kept: int
    removed: IntArray
    added: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        return int(self.removed.nbytes)

    def of_array(self, array: pa.Array) -> pa.Array:
        """The values of the rows that are kept."""
        if len(self.removed) == 0:
            return array
        mask = np.ones(len(array), dtype=bool)
        mask[self.removed] = False
        return array.filter(pa.array(mask))

    def of_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """The same of one number a row."""
        return np.delete(numbers, self.removed) if len(self.removed) else numbers

    def moved(self, positions: IntArray) -> IntArray:
        """Where rows of the earlier version stand now, -1 for one that is gone (or was not)."""
        if len(self.removed) == 0:
            return positions
        before = np.searchsorted(self.removed, positions)
        is_gone = self.removed[np.minimum(before, len(self.removed) - 1)] == positions
        return np.where(is_gone | (positions < 0), -1, positions - before)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Changes, or the knowledge that there are too many to use."""

    changes: Changes | None

    @property
    def nbytes(self) -> int:
        return 0 if self.changes is None else self.changes.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Something kept of an earlier version, and what changed since."""

    entry: Sized
    base: TableId
    changes: Changes


class Earlier:
    """The earlier versions of one table, seen from one version of it."""

    def __init__(
        self, table_id: TableId, handle: TableHandle, tables: TableStorage, cache: RuntimeCache
    ) -> None:
        self._id = table_id
        self._handle = handle
        self._tables = tables
        self._cache = cache

    def remember(self) -> None:
        """Let later versions go on from what is being derived of this one."""
        self._shape()

    def find(self, kind: str, *rest: str) -> Kept | None:
        """What is kept of this kind of an earlier version, if it can be carried over."""
        for key in self._cache.other_versions((kind, self._id, *rest)):
            assert isinstance(key, tuple)
            base = key[1]
            changes = self.changes_from(base)
            # Looking at an entry keeps it, so only where something can be done with it.
            entry = None if changes is None else self._cache.peek(key)
            if entry is not None and changes is not None:
                return Kept(entry, base, changes)
        return None

    def changes_from(self, base: TableId) -> Changes | None:
        """What changed since a version; None when that is not known, or is much."""
        if base == self._id:
            return Changes(self._handle.row_count, _NONE)
        if base.version > self._id.version:
            return None
        key = ("changes", base, self._id)
        return self._cache.get(key, lambda: _Found(self._compared(base))).changes

    def tail(self, since: TableId, changes: Changes, name: str) -> pa.Array:
        """The values of a column in the rows that are new since a version."""
        key = ("tail", since, self._id, name)
        return self._cache.get(key, lambda: Column(self._scanned(changes.added, name))).array

    def tail_row_ids(self, changes: Changes) -> np.ndarray:
        """The row ids of the rows that are new."""
        rows = self._tables.reads.scan(
            self._handle, [], with_row_id=True, fragment_ids=list(changes.added)
        )
        return np.asarray(rows.column(ROW_ID).to_numpy())

    def _shape(self) -> Shape:
        def build() -> Shape:
            return Shape(self._handle, self._tables.reads.fragments(self._handle))

        return self._cache.get(("shape", self._id), build)

    def _scanned(self, pieces: tuple[int, ...], name: str) -> pa.Array:
        rows = self._tables.reads.scan(self._handle, [name], fragment_ids=list(pieces))
        return rows.column(name).combine_chunks()

    def _compared(self, base: TableId) -> Changes | None:
        before = self._cache.peek(("shape", base))
        if not isinstance(before, Shape):
            return None
        changes = _only_added(before.pieces, self._shape().pieces)
        if changes is None:
            return None
        size = before.handle.row_count
        lost = size - changes.kept
        if (self._handle.row_count - changes.kept + lost) * CHANGED_SHARE > size:
            return None
        if lost == 0:
            return changes
        removed = self._removed(before.handle, base, changes)
        return Changes(changes.kept, removed, changes.added) if len(removed) == lost else None

    def _removed(self, before: TableHandle, base: TableId, changes: Changes) -> IntArray:
        """Positions of rows that are gone, or were written again and stand among the new ones."""
        gone = self._tables.ancestry.find_deleted(self._handle, before)
        if gone is None:
            return _NONE
        ids = self._base_row_ids(before, base)
        order = None if bool(np.all(ids[:-1] < ids[1:])) else np.argsort(ids)
        wanted = np.concatenate([gone, self.tail_row_ids(changes)])
        at = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
        at = at if order is None else order[at]
        return np.unique(at[ids[at] == wanted])

    def _base_row_ids(self, before: TableHandle, base: TableId) -> np.ndarray:
        kept: Any = self._cache.peek(("row ids", base))
        if kept is not None:
            return np.asarray(kept.ids)
        rows = self._tables.reads.scan(before, [], with_row_id=True)
        return np.asarray(rows.column(ROW_ID).to_numpy())


def _only_added(before: tuple[Fragment, ...], now: tuple[Fragment, ...]) -> Changes | None:
    """Which pieces are new, if they all come after those that were there; removed is left open."""
    places = {piece.key: place for place, piece in enumerate(before)}
    found = [places.get(piece.key) for piece in now]
    count = next((place for place, each in enumerate(found) if each is None), len(found))
    known = [each for each in found if each is not None]
    if len(known) != count or known != sorted(known):
        return None
    kept = sum(piece.rows for piece in now[:count])
    return Changes(kept, _NONE, tuple(piece.fragment_id for piece in now[count:]))


def carried_column(kept: Kept, tail: Callable[[], pa.Array]) -> Column:
    """A column of an earlier version, brought up to date."""
    assert isinstance(kept.entry, Column)
    staying = kept.changes.of_array(kept.entry.array)
    if not kept.changes.added:
        return Column(staying)
    return Column(pa.concat_arrays([staying, tail()]))
