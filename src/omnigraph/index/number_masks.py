"""Number masks: a comparison of a whole numeric column with one value, without Arrow's detours.

The value is first fitted to the column's type by the one module that knows how (2.7 on an integer
column is never truncated), so a plain NumPy comparison then gives the same rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.index.arrays import BoolArray
from omnigraph.storage.binding import bind
from omnigraph.storage.predicates import Compare, CompareOp, Known, Predicate

_COMPARISONS = {
    CompareOp.EQ: np.equal,
    CompareOp.NE: np.not_equal,
    CompareOp.LT: np.less,
    CompareOp.LE: np.less_equal,
    CompareOp.GT: np.greater,
    CompareOp.GE: np.greater_equal,
}


def number_mask(predicate: Predicate, array: pa.Array, schema: pa.Schema) -> BoolArray | None:
    """Where a comparison holds in a column without nulls; None when it is not one of numbers."""
    if not isinstance(predicate, Compare) or not _is_number(array.type):
        return None
    if pa.types.is_integer(array.type) and pa.types.is_integer(predicate.value.type):
        mask = _whole_number_mask(predicate, array)
        if mask is not None:
            return mask
    bound = bind(predicate, schema)
    match bound:
        case Known(_, truth):
            return np.full(len(array), truth is True)
        case Compare(_, op, value):
            numbers, ticks = array, value
            if pa.types.is_date(array.type):
                width = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
                numbers, ticks = array.view(width), value.cast(width)
            number = ticks.as_py()
            if number != number:
                return None
            column = numbers.to_numpy(zero_copy_only=True)
            return np.asarray(_COMPARISONS[op](column, column.dtype.type(number)))
    return None


def _whole_number_mask(predicate: Compare, array: pa.Array) -> BoolArray | None:
    """A whole number that the column's type can hold is compared as it is."""
    number = predicate.value.as_py()
    column = array.to_numpy(zero_copy_only=True)
    bounds = np.iinfo(column.dtype)
    if number is None or not bounds.min <= number <= bounds.max:
        return None
    return np.asarray(_COMPARISONS[predicate.op](column, column.dtype.type(number)))


def _is_number(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_date(data_type)
    )
