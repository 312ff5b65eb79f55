"""Nested: lists and objects as whole numbers that are equal and ordered as their values are.

Lists compare element by element, the shorter first where one begins the other; objects compare
field by field. Null is smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Rank: TypeAlias = Callable[[pa.Array], Any]
"""What gives the ranks of single values: 0 for null, then 1, 2, … in their order."""


def is_nested(data_type: pa.DataType) -> bool:
    """Whether a value is made of several."""
    is_list = pa.types.is_list(data_type) or pa.types.is_fixed_size_list(data_type)
    return bool(is_list or pa.types.is_struct(data_type))


def rank_nested(array: pa.Array, rank: Rank) -> pa.Array:
    """A whole number for each value, null where it is; `rank` is for what it is made of."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_struct(array.type):
        columns = [rank(array.field(place)) for place in range(array.type.num_fields)]
        codes = _number(columns, len(array))
    else:
        codes = _rank_lists(array, rank)
    return pa.array(codes, mask=~valid)


def _rank_lists(array: pa.Array, rank: Rank) -> np.ndarray:
    """Element after element, among the lists that are equal so far and have one more."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    items = np.asarray(rank(array.flatten()), dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    codes = np.zeros(len(array), dtype=np.int64)
    for place in range(int(lengths.max(initial=0))):
        has_one = lengths > place
        here = np.zeros(len(array), dtype=np.int64)
        here[has_one] = items[starts[has_one] + place] + 1
        codes = _number([codes, here], len(array))
    return codes


def _number(columns: Sequence[np.ndarray], count: int) -> np.ndarray:
    """A number for each row: equal rows have one, and they are in the order of the columns."""
    if not columns or not count:
        return np.zeros(count, dtype=np.int64)
    order = np.lexsort(columns[::-1])
    differs = np.zeros(count, dtype=bool)
    for column in columns:
        ordered = np.asarray(column)[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    codes = np.empty(count, dtype=np.int64)
    codes[order] = np.cumsum(differs)
    return codes
