"""Decoded columns: the values of a table in position order, and their ranks.

Ranks order values as the language does: null is 0, then 1, 2, ... along the sorted distinct
values (numbers by value, text by bytes, false before true). So equal ranks are equal values, and
grouping, ordering and text filters become arithmetic on small integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.index.arrays import AnyArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column as one Arrow array."""

    array: pa.Array

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """One column as NumPy numbers."""

    array: AnyArray

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """`codes[position]` is the rank of the value; `values[rank - 1]` is the value."""

    codes: IntArray
    values: pa.Array

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.values.nbytes)

    @property
    def count(self) -> int:
        """The ranks that can occur: null and each distinct value."""
        return len(self.values) + 1

    def decode(self, codes: IntArray) -> pa.Array:
        """The values that these ranks stand for."""
        return self.values.take(pa.array(codes - 1, mask=codes == 0))


def ranked(array: pa.Array) -> Ranks:
    """Rank every value of an array."""
    plain = comparable(array)
    encoded = plain.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank_of_code = np.empty(len(order) + 1, dtype=np.int32)
    rank_of_code[order] = np.arange(1, len(order) + 1, dtype=np.int32)
    rank_of_code[len(order)] = 0
    codes = encoded.indices.fill_null(len(order)).to_numpy()
    values = encoded.dictionary.take(pa.array(order))
    return Ranks(rank_of_code[codes], _as_type(values, array.type))


def comparable(array: pa.Array) -> pa.Array:
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
    if pa.types.is_list(array.type) or pa.types.is_fixed_size_list(array.type):
        return _list_texts(array)
    return array


def _as_type(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    if pa.types.is_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return values
    return values if values.type == data_type else values.cast(data_type)


def _list_texts(array: pa.Array) -> pa.Array:
    """A text per list, equal when the lists are. Lists have no order, so any will do."""
    texts = [None if item is None else repr(item) for item in array.to_pylist()]
    return pa.array(texts, pa.utf8())


def ordered_numbers(array: pa.Array) -> AnyArray:
    """Numbers that sort as the values do, nulls first."""
    if array.null_count == 0 and _is_plain_number(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return ranked(array).codes


def _is_plain_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type))


def numbers_to_sum(array: pa.Array) -> AnyArray:
    """The values of a numeric column as doubles, nulls as zero; zeros for any other column."""
    if not _is_plain_number(array.type):
        return np.zeros(len(array))
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)
