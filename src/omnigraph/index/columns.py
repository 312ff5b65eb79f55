"""Decoded columns: the values of a table in position order, and their ranks.

Ranks order values as the language does: null is 0, then 1, 2, ... along the sorted distinct
values (numbers by value, text by bytes, false before true). So equal ranks are equal values, and
grouping, ordering and text filters become arithmetic on small integers. Of five rows:

    >>> ranks = rank_values(pa.array(["Lin", "Ada", None, "Lin", "Sam"]))
    >>> ranks.codes.tolist(), ranks.values.to_pylist()
    ([2, 1, 0, 2, 3], ['Ada', 'Lin', 'Sam'])
    >>> postings = build_postings(ranks)                 # where each rank occurs
    >>> postings.positions.tolist(), postings.starts.tolist()
    ([2, 1, 0, 3, 4], [0, 1, 2, 4, 5])
    >>> postings.find(ranks.find_rank("Lin")).tolist()   # positions[2:4]
    [0, 3]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.nested import is_nested, rank_nested
from omnigraph.index.rooms import Room, append_array, fill_rooms, make_rooms

VALUES_LISTED = 1_024
"""Up to so many distinct values are also held in a Python dict, which is faster to look in."""
_BYTES_PER_LISTED = 128
_VALUES_SAMPLED = 1_000
_FEW_VALUES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column as one array, of Arrow or of NumPy; in `shared` rooms when it can grow."""

    array: Any
    shared: tuple[Room, ...] = ()

    @property
    def nbytes(self) -> int:
        """Without what is shared: of an array in rooms, which values are null."""
        if not self.shared:
            return int(self.array.nbytes)
        has_nulls = isinstance(self.array, pa.Array) and self.array.null_count
        return len(self.array) // 8 if has_nulls else 0

    def append(self, tail: pa.Array | AnyArray) -> Column:
        """The column with these values after its own."""
        if isinstance(self.array, np.ndarray):
            (room,) = self.shared or (Room.of(self.array),)
            room = room.append(len(self.array), np.asarray(tail))
            return Column(room.array[: len(self.array) + len(tail)], (room,))
        rooms = self.shared or make_rooms(self.array)
        grown = None if rooms is None else append_array(self.array, rooms, tail)
        return Column(pa.concat_arrays([self.array, tail])) if grown is None else Column(*grown)


def with_room(array: pa.Array) -> Column:
    """A column to which later versions will add."""
    rooms = make_rooms(array)
    if rooms is None:
        return Column(array)
    return Column(fill_rooms(array, rooms, None, len(array)), rooms)


@dataclass(frozen=True, slots=True, eq=False)
class RowIds:
    """The stable row id of every position; `order` sorts them, None when they are sorted."""

    ids: np.ndarray
    order: IntArray | None
    shared: tuple[Room, ...] = ()

    @property
    def nbytes(self) -> int:
        own = 0 if self.shared else self.ids.nbytes
        return int(own + (0 if self.order is None else self.order.nbytes))

    def append(self, tail: np.ndarray) -> RowIds:
        """The ids with these after them."""
        grown = Column(self.ids, self.shared).append(tail)
        is_sorted = self.order is None and _is_ascending(grown.array[max(len(self.ids) - 1, 0) :])
        # Stable: that is quick where nearly all are in order, as they are after an update.
        order = None if is_sorted else np.argsort(grown.array, kind="stable")
        return RowIds(grown.array, order, grown.shared)


def build_row_ids(ids: np.ndarray) -> RowIds:
    """Index rows by their id."""
    return RowIds(ids, None if _is_ascending(ids) else np.argsort(ids, kind="stable"))


def _is_ascending(ids: np.ndarray) -> bool:
    return bool(np.all(ids[:-1] < ids[1:]))


class Ranks:
    """`codes[position]` is the rank of the value; `values[rank - 1]` is the value."""

    __slots__ = ("_by_value", "codes", "shared", "values")

    def __init__(self, codes: IntArray, values: pa.Array, shared: tuple[Room, ...] = ()) -> None:
        self.codes = codes
        self.values = values
        self.shared = shared
        self._by_value: dict[str | int, int] | None = None

    @property
    def nbytes(self) -> int:
        listed = self.count * _BYTES_PER_LISTED if self.count <= VALUES_LISTED else 0
        return int((0 if self.shared else self.codes.nbytes) + self.values.nbytes + listed)

    @property
    def count(self) -> int:
        """The ranks that can occur: null and each distinct value."""
        return len(self.values) + 1

    def decode(self, codes: IntArray) -> pa.Array:
        """The values that these ranks stand for."""
        return self.values.take(pa.array(codes.astype(np.int64) - 1, mask=codes == 0))

    def find_rank(self, value: str | int) -> int | None:
        """The rank of a text or whole number, None when no position has it."""
        if self.count <= VALUES_LISTED:
            if self._by_value is None:
                values = self.values.to_pylist()
                self._by_value = dict(zip(values, range(1, len(values) + 1), strict=True))
            return self._by_value.get(value)
        if isinstance(value, str):
            return _bisect_rank(_Texts(self.values), value.encode(errors="surrogatepass"))
        return _bisect_rank(_Plain(self.values), value)

    def append(self, tail: pa.Array) -> Ranks | None:
        """The ranks of these rows and of more after them; None when one has a new value."""
        if tail.type != self.values.type or not _is_equal_as_stored(tail.type):
            return None
        if len(tail) and tail[0].is_valid and self.find_rank(tail[0].as_py()) is None:
            return None  # the usual case, a new key, without a pass over all values
        codes = self._find_ranks(tail)
        if codes is None:
            return None
        grown = Column(self.codes, self.shared).append(codes.astype(self.codes.dtype))
        return Ranks(grown.array, self.values, grown.shared)

    def has_all_values(self) -> bool:
        """Whether every value occurs; null, which is 0, need not."""
        return bool(np.all(np.bincount(self.codes, minlength=self.count)[1:]))

    def _find_ranks(self, tail: pa.Array) -> IntArray | None:
        """The ranks of some values, None when one of them has none."""
        if len(tail) <= _FEW_VALUES and _is_findable(tail.type):
            ranks = [0 if each is None else self.find_rank(each) for each in tail.to_pylist()]
            return None if None in ranks else np.array(ranks, dtype=np.int64)
        found = pc.index_in(tail, value_set=self.values)
        if found.null_count > tail.null_count:
            return None
        return np.where(tail.is_null(), 0, found.fill_null(0).to_numpy() + 1)


def _is_findable(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_integer(data_type))


def _bisect_rank(values: Sequence[Any], value: Any) -> int | None:
    index = bisect_left(values, value)
    return index + 1 if index < len(values) and values[index] == value else None


class _Texts(Sequence[bytes]):
    """Sorted texts as bytes, straight from the buffers: making strings of them takes longer."""

    def __init__(self, values: pa.Array) -> None:
        _, offsets, data = values.buffers()
        self._first = values.offset
        self._size = len(values)
        self._offsets = memoryview(offsets).cast("i")
        self._data = memoryview(data)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        at = self._first + index
        return bytes(self._data[self._offsets[at] : self._offsets[at + 1]])


class _Plain(Sequence[Any]):
    """Sorted values as Python compares them."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index].as_py()


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The positions of each rank, ascending: `positions[starts[rank]:starts[rank + 1]]`."""

    positions: IntArray
    starts: IntArray

    @property
    def nbytes(self) -> int:
        return int(self.positions.nbytes + self.starts.nbytes)

    def find(self, rank: int) -> IntArray:
        """The positions whose value has this rank."""
        return self.positions[self.starts[rank] : self.starts[rank + 1]]


def build_postings(ranks: Ranks) -> Postings:
    """List the positions of each rank."""
    starts = np.zeros(ranks.count + 1, dtype=np.int64)
    np.cumsum(np.bincount(ranks.codes, minlength=ranks.count), out=starts[1:])
    return Postings(np.argsort(ranks.codes, kind="stable"), starts)


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """The positions of each value of an array."""

    ranks: Ranks
    postings: Postings

    @property
    def nbytes(self) -> int:
        return self.ranks.nbytes + self.postings.nbytes

    def find(self, value: str | int) -> IntArray:
        """The positions of a text or whole number, ascending."""
        rank = self.ranks.find_rank(value)
        return np.empty(0, dtype=np.int64) if rank is None else self.postings.find(rank)


def build_lookup(array: pa.Array) -> Lookup:
    """Index every value of an array."""
    ranks = rank_values(array)
    return Lookup(ranks, build_postings(ranks))


def rank_values(array: pa.Array) -> Ranks:
    """Rank every value of an array."""
    plain = to_comparable(array)
    codes, values = (_by_sorting if _has_many_values(plain) else _by_hashing)(plain)
    return Ranks(codes, _as_type(values, array.type))


def _has_many_values(plain: pa.Array) -> bool:
    """Whether hardly any value seems to occur twice, so that hashing gains nothing."""
    if plain.null_count or pa.types.is_floating(plain.type):  # a NaN does not equal itself
        return False
    sample = plain.slice(0, _VALUES_SAMPLED)
    return len(sample) == _VALUES_SAMPLED == len(sample.unique())


def _by_hashing(plain: pa.Array) -> tuple[IntArray, pa.Array]:
    encoded = plain.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank_of_code = np.empty(len(order) + 1, dtype=_narrowest(len(order)))
    rank_of_code[order.to_numpy()] = np.arange(1, len(order) + 1)
    rank_of_code[len(order)] = 0
    codes = encoded.indices.fill_null(len(order)).to_numpy()
    return rank_of_code[codes], encoded.dictionary.take(order)


def _by_sorting(plain: pa.Array) -> tuple[IntArray, pa.Array]:
    order = pc.sort_indices(plain)
    ascending = plain.take(order)
    is_first = np.ones(len(plain), dtype=bool)
    differs = pc.not_equal(ascending.slice(1), ascending.slice(0, len(plain) - 1))
    is_first[1:] = differs.to_numpy(zero_copy_only=False)
    count = int(np.count_nonzero(is_first))
    codes = np.empty(len(plain), dtype=_narrowest(count))
    codes[order.to_numpy()] = np.cumsum(is_first)
    return codes, ascending if count == len(plain) else ascending.filter(pa.array(is_first))


def _narrowest(count: int) -> np.dtype[Any]:
    """The smallest numbers that hold so many ranks: nearly every filter is a pass over them."""
    return np.min_scalar_type(count + 1)


def to_comparable(array: pa.Array) -> pa.Array:
    """The same order and equality, in a type whose equality is by value."""
    if pa.types.is_floating(array.type):
        # Adding zero makes -0.0 and 0.0 one value.
        return pc.add(array, pa.scalar(0.0, array.type))
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32())
    if pa.types.is_date64(array.type):
        return array.cast(pa.int64())
    if pa.types.is_boolean(array.type):
        return array.cast(pa.uint8())
    if is_nested(array.type):
        return rank_nested(array, lambda part: rank_values(part).codes)
    return array


def _is_equal_as_stored(data_type: pa.DataType) -> bool:
    """Whether values are equal exactly when their stored forms are."""
    return bool(
        pa.types.is_string(data_type)
        or pa.types.is_integer(data_type)
        or pa.types.is_boolean(data_type)
        or pa.types.is_date(data_type)
    )


def _as_type(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    if is_nested(data_type):
        return values
    return values if values.type == data_type else values.cast(data_type)


def to_sort_keys(array: pa.Array) -> AnyArray:
    """Numbers that sort as the values do, nulls first."""
    if array.null_count == 0 and _is_plain_number(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return rank_values(array).codes


def _is_plain_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type))


def to_doubles(array: pa.Array) -> AnyArray:
    """The values of a numeric column as doubles, nulls as zero; zeros for any other column."""
    if not _is_plain_number(array.type):
        return np.zeros(len(array))
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)
