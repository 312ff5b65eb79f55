"""Arrays: the NumPy arrays that hold positions, masks and weights."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

IntArray: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.signedinteger]]"
BoolArray: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"
AnyArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def sort_distinct(numbers: IntArray) -> IntArray:
    """Each number once, ascending. `np.unique` hashes instead, which is slow for large arrays."""
    if len(numbers) == 0:
        return numbers
    ordered = np.sort(numbers)
    is_first = np.empty(len(ordered), dtype=bool)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]
