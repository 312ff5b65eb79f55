"""Carry over: go on from what is cached of an earlier version of a table instead of reading anew.

A commit changes few rows, so most of what was decoded of the version before still holds. Rows of
fragments that both versions have keep their order, but for those that were removed; all other rows
follow them. That is checked, not assumed: where it does not hold, or much has changed, nothing is
carried over and the version is read anew. The answers are the same either way.

Of five rows the second was deleted, and two rows were appended:

    >>> import numpy as np
    >>> delta = RowDelta(kept=4, removed=np.array([1]), added=(7,))
    >>> ages = np.array([30, 31, 32, 33, 34])
    >>> np.concatenate([delta.keep_numbers(ages), [50, 51]])     # one number per row, now
    array([30, 32, 33, 34, 50, 51])
    >>> delta.remap(np.array([0, 1, 4]))                         # where rows 0, 1 and 4 are now
    array([ 0, -1,  3])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import IntArray
from omnigraph.index.cache import RuntimeCache, Sized
from omnigraph.index.columns import Column, RowIds, build_row_ids
from omnigraph.index.keys import (
    ColumnKey,
    DeltaKey,
    FragmentsKey,
    RanksKey,
    RowIdsKey,
    TableId,
    TailKey,
)
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.tables import TableStorage

CHANGED_SHARE = 8
"""Nothing is carried over when more than one row in so many was added or removed."""
_BYTES_PER_FRAGMENT = 512
_NONE: IntArray = np.empty(0, dtype=np.int64)
_T = TypeVar("_T", bound=Sized)


@dataclass(frozen=True, slots=True, eq=False)
class _Fragments:
    """A version and the fragments it consists of."""

    handle: TableHandle
    fragments: tuple[Fragment, ...]

    @property
    def nbytes(self) -> int:
        return len(self.fragments) * _BYTES_PER_FRAGMENT


@dataclass(frozen=True, slots=True, eq=False)
class RowDelta:
    """From a version to a later one: `kept` rows are in both, the others of the later one follow.

    `removed` are positions of the earlier version, ascending. `added` are the new fragments.
    """

    kept: int
    removed: IntArray
    added: tuple[int, ...] = ()

    def keep_values(self, array: pa.Array) -> pa.Array:
        """The values of the kept rows."""
        if len(self.removed) == 0:
            return array
        mask = np.ones(len(array), dtype=bool)
        mask[self.removed] = False
        return array.filter(pa.array(mask))

    def keep_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers of the kept rows, one per row."""
        return np.delete(numbers, self.removed) if len(self.removed) else numbers

    def remap(self, positions: IntArray) -> IntArray:
        """Positions of the earlier version as positions of the later one, -1 for a removed row.

        A position of -1, which is no row, stays -1.
        """
        if len(self.removed) == 0:
            return positions
        before = np.searchsorted(self.removed, positions)
        is_gone = self.removed[np.minimum(before, len(self.removed) - 1)] == positions
        return np.where(is_gone | (positions < 0), -1, positions - before)


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """The delta, or None when too much changed to use it."""

    delta: RowDelta | None

    @property
    def nbytes(self) -> int:
        return 0 if self.delta is None else int(self.delta.removed.nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class Carried(Generic[_T]):
    """An entry of the earlier version `base`, and what changed since."""

    entry: _T
    base: TableId
    delta: RowDelta


@dataclass(frozen=True, slots=True, eq=False)
class PreviousVersion:
    """The earlier versions of one table, seen from one version of it."""

    _id: TableId
    _handle: TableHandle
    _tables: TableStorage
    _cache: RuntimeCache

    def remember(self) -> None:
        """Let later versions go on from what is being derived of this one."""
        self._fragments()

    def find(self, key: ColumnKey | RanksKey | RowIdsKey, kind: type[_T]) -> Carried[_T] | None:
        """The entry of this kind at an earlier version, if it can be carried over."""
        for each in self._cache.other_versions(key):
            delta = self.delta_since(each.table)
            # Looking at an entry marks it as used, so only where it can be carried over.
            entry = None if delta is None else self._cache.peek(each)
            if isinstance(entry, kind) and delta is not None:
                return Carried(entry, each.table, delta)
        return None

    def delta_since(self, base: TableId) -> RowDelta | None:
        """What changed since a version; None when that is not known, or is much."""
        if base == self._id:
            return RowDelta(self._handle.row_count, _NONE)
        if base.version > self._id.version:
            return None
        key = DeltaKey(self._id, base)
        return self._cache.get(key, lambda: _Comparison(self._compute_delta(base))).delta

    def tail(self, base: TableId, delta: RowDelta, name: str) -> pa.Array:
        """The values of a column in the rows added since a version."""

        def read() -> Column:
            rows = self._tables.reads.scan(self._handle, [name], fragment_ids=list(delta.added))
            return Column(rows.column(name).combine_chunks())

        return self._cache.get(TailKey(self._id, base, name), read).array

    def tail_row_ids(self, delta: RowDelta) -> np.ndarray:
        """The row ids of the added rows."""
        rows = self._tables.reads.scan(
            self._handle, [], with_row_id=True, fragment_ids=list(delta.added)
        )
        return np.asarray(rows.column(ROW_ID).to_numpy())

    def _fragments(self) -> _Fragments:
        def build() -> _Fragments:
            return _Fragments(self._handle, self._tables.reads.fragments(self._handle))

        return self._cache.get(FragmentsKey(self._id), build)

    def _compute_delta(self, base: TableId) -> RowDelta | None:
        before = self._cache.peek(FragmentsKey(base))
        if not isinstance(before, _Fragments):
            return None
        delta = _compare_fragments(before.fragments, self._fragments().fragments)
        if delta is None:
            return None
        size = before.handle.row_count
        lost = size - delta.kept
        if (self._handle.row_count - delta.kept + lost) * CHANGED_SHARE > size:
            return None
        if lost == 0:
            return delta
        removed = self._find_removed(before.handle, base, delta)
        return RowDelta(delta.kept, removed, delta.added) if len(removed) == lost else None

    def _find_removed(self, before: TableHandle, base: TableId, delta: RowDelta) -> IntArray:
        """Positions of rows that are gone, or were written again and are among the added ones."""
        gone = self._tables.ancestry.find_deleted(self._handle, before)
        if gone is None:
            return _NONE
        known = self._base_row_ids(before, base)
        ids, order = known.ids, known.order
        wanted = np.concatenate([gone, self.tail_row_ids(delta)])
        at = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
        at = at if order is None else order[at]
        return np.unique(at[ids[at] == wanted])

    def _base_row_ids(self, before: TableHandle, base: TableId) -> RowIds:
        cached = self._cache.peek(RowIdsKey(base))
        if isinstance(cached, RowIds):
            return cached
        rows = self._tables.reads.scan(before, [], with_row_id=True)
        return build_row_ids(rows.column(ROW_ID).to_numpy())


def _compare_fragments(before: tuple[Fragment, ...], now: tuple[Fragment, ...]) -> RowDelta | None:
    """Which fragments are new, if all of them follow the known ones; removed rows are left open."""
    indices = {fragment.key: index for index, fragment in enumerate(before)}
    found = [indices.get(fragment.key) for fragment in now]
    count = next((index for index, each in enumerate(found) if each is None), len(found))
    known = [each for each in found if each is not None]
    if len(known) != count or known != sorted(known):
        return None
    kept = sum(fragment.rows for fragment in now[:count])
    return RowDelta(kept, _NONE, tuple(fragment.fragment_id for fragment in now[count:]))


def carry_column(carried: Carried[Column], tail: Callable[[], pa.Array]) -> Column:
    """A column of an earlier version, brought up to date."""
    kept = carried.delta.keep_values(carried.entry.array)
    if not carried.delta.added:
        return Column(kept)
    return Column(pa.concat_arrays([kept, tail()]))
