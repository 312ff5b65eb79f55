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

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError
from omnigraph.index.arrays import IntArray
from omnigraph.index.cache import RuntimeCache, Sized
from omnigraph.index.columns import Column, Ranks, RowIds, build_row_ids
from omnigraph.index.keys import (
    ColumnKey,
    DeltaKey,
    FragmentsKey,
    IdIndexKey,
    NumbersKey,
    RanksKey,
    RowIdsKey,
    TableId,
    TailKey,
)
from omnigraph.index.removed_rows import Fragments, find_removed, read_row_ids
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.tables import TableStorage

CHANGED_SHARE = 8
"""Nothing is carried over when more than one row in so many was added or removed."""
_TAIL_ROWS_SHARED = 1_024
"""So few added rows are read with every column in use, when one of their columns is wanted."""
_NONE: IntArray = np.empty(0, dtype=np.int64)
_T = TypeVar("_T", bound=Sized)
_A = TypeVar("_A")
Carriable: TypeAlias = ColumnKey | NumbersKey | RanksKey | RowIdsKey | IdIndexKey


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
class RowChanges:
    """The rows that came with a version, and those that went; a changed row is in both."""

    come: pa.Table
    gone: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class _Tail:
    """Columns of the added rows, and their row ids."""

    columns: dict[str, pa.Array]
    row_ids: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(sum(each.nbytes for each in self.columns.values()) + self.row_ids.nbytes)


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

    def find(self, key: Carriable, kind: type[_T]) -> Carried[_T] | None:
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

    def changes_since(self, base: TableId, names: Sequence[str]) -> RowChanges | None:
        """What came and went since a version, wherever it stands; None if unknown, or much."""
        if base == self._id:
            return RowChanges(*[self._no_rows(names)] * 2)
        delta = self.delta_since(base)
        if delta is not None and len(delta.removed) == 0:
            return RowChanges(self._read_added(delta, names), self._no_rows(names))
        find = self._tables.ancestry.find_changes
        found = self._ask_ancestry(base, lambda now, then, new: find(now, then, new, names))
        return None if found is None else RowChanges(*found)

    def _read_added(self, delta: RowDelta, names: Sequence[str]) -> pa.Table:
        """Columns of the added rows, and their row ids."""
        if not delta.added:
            return self._no_rows(names)
        fragments = self._find_fragments(delta.added)
        return self._tables.reads.scan_fragments(self._handle, names, fragments)

    def _no_rows(self, names: Sequence[str]) -> pa.Table:
        return self._handle.schema.empty_table().select(names)

    def _ask_ancestry(
        self, base: TableId, find: Callable[[TableHandle, TableHandle, list[int]], _A | None]
    ) -> _A | None:
        """Ask what changed since a version; None when that is not known, or is much."""
        before = self._cache.peek(FragmentsKey(base))
        if base.version > self._id.version or not isinstance(before, Fragments):
            return None
        known = {each.key for each in before.fragments}
        new = [each for each in self._fragments().fragments if each.key not in known]
        rows_max = before.handle.row_count // CHANGED_SHARE
        is_much = abs(self._handle.row_count - before.handle.row_count) > rows_max
        if is_much or sum(each.rows for each in new) > rows_max:
            return None
        try:
            return find(self._handle, before.handle, [each.fragment_id for each in new])
        except OmnigraphError:
            return None  # the files of the earlier version may have been cleaned up

    def tail(self, base: TableId, delta: RowDelta, name: str) -> pa.Array:
        """The values of a column in the rows added since a version."""
        if not self._is_long(delta):
            found = self._short_tail(base, delta).columns.get(name)
            if found is not None:
                return found
        key = TailKey(self._id, base, name)
        return self._cache.get(key, lambda: self._read_tail(delta, [name])).columns[name]

    def tail_row_ids(self, base: TableId, delta: RowDelta) -> np.ndarray:
        """The row ids of the added rows."""
        if self._is_long(delta):
            return self._read_tail(delta, []).row_ids
        return self._short_tail(base, delta).row_ids

    def _is_long(self, delta: RowDelta) -> bool:
        return self._handle.row_count - delta.kept > _TAIL_ROWS_SHARED

    def _short_tail(self, base: TableId, delta: RowDelta) -> _Tail:
        """Every column of the added rows that is in use: a scan costs more than a few rows."""
        names = [
            each
            for each in self._handle.schema.names
            if self._cache.is_in_use(ColumnKey(self._id, each))
        ]
        return self._cache.get(TailKey(self._id, base), lambda: self._read_tail(delta, names))

    def _read_tail(self, delta: RowDelta, names: Sequence[str]) -> _Tail:
        rows = self._read_added(delta, names)
        columns = {each: rows.column(each).combine_chunks() for each in names}
        return _Tail(columns, np.asarray(rows.column(ROW_ID).to_numpy()))

    def _find_fragments(self, ids: Sequence[int]) -> list[Fragment]:
        by_id = {each.fragment_id: each for each in self._fragments().fragments}
        return [by_id[each] for each in ids]

    def find_again(self, base: TableId, delta: RowDelta) -> IntArray | None:
        """Which of the added rows each removed row is now, by its id; -1 for none.

        None when the rows that were removed cannot be read any more.
        """
        before = self._cache.peek(FragmentsKey(base))
        if not isinstance(before, Fragments):
            return None
        removed = self._removed_row_ids(before, base, delta)
        added = self.tail_row_ids(base, delta) if delta.added else removed[:0]
        order = np.argsort(added)
        at = np.searchsorted(added, removed, sorter=order)
        again = np.append(order, -1)[at]
        # A row that was changed has the same row id. One that was deleted may have come back.
        again[np.append(added, removed[:1])[again] != removed] = -1
        rows = np.flatnonzero(again < 0)
        if len(rows) == 0 or len(rows) + len(added) == len(removed):
            return again
        try:
            deleted = self._tables.reads.take_rows(before.handle, removed[rows].tolist(), ["id"])
        except OmnigraphError:
            return None  # the files of the earlier version may have been cleaned up
        ids = deleted.column("id").combine_chunks()
        found = pc.index_in(ids, value_set=self.tail(base, delta, "id"))
        again[rows] = found.fill_null(-1).to_numpy()
        return again

    def _removed_row_ids(self, before: Fragments, base: TableId, delta: RowDelta) -> np.ndarray:
        known = self._cache.peek(RowIdsKey(base))
        if not isinstance(known, RowIds):
            recorded = read_row_ids(self._tables.reads, before, delta.removed)
            if recorded is not None:
                return recorded
            known = self._base_row_ids(before.handle, base)
        return np.asarray(known.ids[delta.removed])

    def _fragments(self) -> Fragments:
        def build() -> Fragments:
            return Fragments(self._handle, self._tables.reads.fragments(self._handle))

        return self._cache.get(FragmentsKey(self._id), build)

    def _compute_delta(self, base: TableId) -> RowDelta | None:
        before = self._cache.peek(FragmentsKey(base))
        if not isinstance(before, Fragments):
            return None
        delta = _compare_fragments(before.fragments, self._fragments().fragments)
        if delta is None:
            return None
        size = before.handle.row_count
        if size == 0:
            return None  # without a file nothing tells whether a column of a name is the same one
        lost = size - delta.kept
        if (self._handle.row_count - delta.kept + lost) * CHANGED_SHARE > size:
            return None
        if lost == 0:
            return delta
        removed = find_removed(self._tables.reads, before, self._fragments())
        if removed is None:
            removed = self._find_removed(before.handle, base, delta)
        if len(removed) != lost:
            return None
        return RowDelta(delta.kept, removed, delta.added)

    def _find_removed(self, before: TableHandle, base: TableId, delta: RowDelta) -> IntArray:
        """Positions of rows that are gone, or were written again and are among the added ones."""
        gone = self._tables.ancestry.find_deleted(self._handle, before)
        if gone is None:
            return _NONE
        known = self._base_row_ids(before, base)
        ids, order = known.ids, known.order
        wanted = np.concatenate([gone, self.tail_row_ids(base, delta)])
        at = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
        at = at if order is None else order[at]
        return np.unique(at[ids[at] == wanted])

    def _base_row_ids(self, before: TableHandle, base: TableId) -> RowIds:
        def read() -> RowIds:
            rows = self._tables.reads.scan(before, [], with_row_id=True)
            return build_row_ids(rows.column(ROW_ID).to_numpy())

        return self._cache.get(RowIdsKey(base), read)


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
    delta = carried.delta
    kept = carried.entry
    if len(delta.removed):
        kept = Column(delta.keep_values(kept.array))
    return kept.append(tail()) if delta.added else kept


def carry_row_ids(carried: Carried[RowIds], tail: Callable[[], np.ndarray]) -> RowIds:
    """The row ids of an earlier version, brought up to date."""
    delta = carried.delta
    kept = carried.entry
    if len(delta.removed):
        kept = build_row_ids(delta.keep_numbers(kept.ids))
    return kept.append(tail()) if delta.added else kept


def carry_ranks(carried: Carried[Ranks], tail: Callable[[], pa.Array]) -> Ranks | None:
    """The ranks of an earlier version, brought up to date.

    None when a value is new, or occurs no more: then all of them are ranked anew.
    """
    delta = carried.delta
    kept: Ranks | None = carried.entry
    if len(delta.removed):
        kept = Ranks(delta.keep_numbers(carried.entry.codes), carried.entry.values)
    if kept is not None and delta.added:
        kept = kept.append(tail())
    return kept if kept is None or len(delta.removed) == 0 or kept.has_all_values() else None
