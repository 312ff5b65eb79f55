"""Arrays: the NumPy arrays that hold positions, masks and weights."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

IntArray: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.signedinteger]]"
BoolArray: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"
AnyArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def to_arrow(numbers: IntArray) -> pa.Array:
    """The same numbers as Arrow has them. `pa.array` loads `numpy.ma` first, to ask for masks."""
    whole = np.ascontiguousarray(numbers)
    type_ = pa.from_numpy_dtype(whole.dtype)
    return pa.Array.from_buffers(type_, len(whole), [None, pa.py_buffer(whole)])


def sort_distinct(numbers: IntArray) -> IntArray:
    """Each number once, ascending. `np.unique` hashes instead, which is slow for large arrays."""
    if len(numbers) == 0 or np.all(numbers[1:] > numbers[:-1]):
        return numbers
    ordered = np.sort(numbers)
    is_first = np.empty(len(ordered), dtype=bool)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def expand_runs(starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Return (run, entry) for every entry of the runs `starts[i]:ends[i]`."""
    if len(starts) == 1:
        first, last = int(starts[0]), int(ends[0])
        return np.zeros(last - first, dtype=np.int64), np.arange(first, last)
    counts = ends - starts
    rows = np.repeat(np.arange(len(counts)), counts)
    # Count all entries from 0, and shift those of each run to where the run starts.
    shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return rows, shift + np.arange(len(rows))
