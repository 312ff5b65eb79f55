"""Members: the values of an `in`, prepared once per execution and met one block of rows at a time.

A block may have a few hundred rows and the list a million values: what is done for the list is not
done again for each block.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.index.arrays import BoolArray
from omnigraph.storage.value_sets import PREPARED_MIN, ValueSet


class Members:
    """A list without nulls: which values of a column are in it. Numbers compare by value."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self._sets: dict[pa.DataType, ValueSet | None] = {}

    def contain(self, column: pa.Array) -> BoolArray:
        """Whether each value equals a member; null does not."""
        if pa.types.is_string(column.type) and len(self._values) < PREPARED_MIN:
            found = pc.is_in(column, value_set=self._values)
            return np.asarray(found.to_numpy(zero_copy_only=False))
        if column.type not in self._sets:
            values = _fit(self._values, column.type)
            self._sets[column.type] = ValueSet(values) if len(values) else None
        known = self._sets[column.type]
        if known is None:
            return np.zeros(len(column), dtype=bool)
        return np.asarray(known.find(column).fill_null(False).to_numpy(zero_copy_only=False))


def make_members(wanted: pa.Scalar, *, is_narrow: bool) -> Members | None:
    """The members of a list, floats at 32 bits if `is_narrow`; None for null."""
    if not wanted.is_valid:
        return None
    return Members(narrow(wanted.values) if is_narrow else wanted.values)


def narrow(values: pa.Array) -> pa.Array:
    """Floats of 64 bits at 32, anything else as it is."""
    is_wide = pa.types.is_float64(values.type)
    return values.cast(pa.float32(), safe=False) if is_wide else values


def _fit(values: pa.Array, column: pa.DataType) -> pa.Array:
    """Those of the values that a column of this type can hold: as it holds them, if they are not
    numbers of its kind already."""
    if _kind(values.type) == _kind(column):
        return values
    numbers = [each for each in values.to_pylist() if each == each]
    if pa.types.is_floating(column):
        return pa.array([each for each in numbers if float(each) == each], column)
    limits = np.iinfo(column.to_pandas_dtype())
    whole = [each for each in numbers if limits.min <= each <= limits.max and each == int(each)]
    return pa.array([int(each) for each in whole], column)


def _kind(data_type: pa.DataType) -> str:
    is_number = pa.types.is_integer(data_type) or pa.types.is_floating(data_type)
    return np.dtype(data_type.to_pandas_dtype()).kind if is_number else str(data_type)
