"""Sorting: indices in the order of several keys, looking at later keys only where earlier ones tie.

A key gives numbers that sort as its values do, null first. With a limit, the first key alone
usually rules out nearly every row, and the others are read for the few that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.views import View, ranks_at
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.columns import to_sort_keys

_GROUPS = 1_024


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One key. `numbers` gives those of some rows, or of all rows with None."""

    numbers: Callable[[IntArray | None], AnyArray]
    descending: bool = False

    def ascending_numbers(self, indices: IntArray | None) -> AnyArray:
        """Numbers that sort in the direction of the key."""
        numbers = self.numbers(indices)
        if not self.descending:
            return numbers
        # Inverting the bits reverses whole numbers without overflow; a negation would not.
        return -numbers if numbers.dtype.kind == "f" else ~numbers


def property_column(
    view: View,
    name: str,
    positions: IntArray,
    *,
    among: IntArray | None = None,
    descending: bool = False,
) -> SortColumn:
    """Sort by a property of the entities at these positions, or at those indices `among` them."""

    def numbers(indices: IntArray | None) -> AnyArray:
        if among is not None:
            indices = among if indices is None else among[indices]
        wanted = positions if indices is None else positions[indices]
        ranks = ranks_at(view, name, wanted)
        if ranks is not None:
            return ranks.codes
        return to_sort_keys(view.values([name], wanted)[name])

    return SortColumn(numbers, descending)


def array_column(numbers: AnyArray, *, descending: bool = False) -> SortColumn:
    """Sort by numbers at hand."""
    return SortColumn(lambda indices: numbers if indices is None else numbers[indices], descending)


def sort_indices(columns: Sequence[SortColumn], count: int, limit: int | None) -> IntArray:
    """The indices 0..count-1 in order; with a limit only the first ones and what ties with them."""
    indices: IntArray | None = None
    if limit is not None and limit < count:
        if limit == 0:
            return np.empty(0, dtype=np.int64)
        indices = first_and_ties(columns[0].ascending_numbers(None), limit)
    keys: list[AnyArray] = []
    order = np.arange(count if indices is None else len(indices))
    for column in columns:
        if len(order) < 2:
            break
        keys.append(column.ascending_numbers(indices))
        order = np.lexsort(keys[::-1])
        if not _has_ties(keys, order):
            break
    return order if indices is None else indices[order]


def _has_ties(keys: list[AnyArray], order: IntArray) -> bool:
    is_tied = np.ones(len(order) - 1, dtype=bool)
    for numbers in keys:
        ordered = numbers[order]
        is_tied &= ordered[1:] == ordered[:-1]
    return bool(is_tied.any())


def first_and_ties(numbers: AnyArray, limit: int) -> IntArray:
    """The indices of the `limit` smallest numbers, and of those that equal the last of them."""
    indices = _under_a_bound(numbers, limit)
    among = numbers if indices is None else numbers[indices]
    last = np.partition(among, limit - 1)[limit - 1]
    found = np.flatnonzero(among <= last)
    return found if indices is None else indices[found]


def _under_a_bound(numbers: AnyArray, limit: int) -> IntArray | None:
    """Few indices that hold the `limit` smallest numbers for certain; None when all may.

    Each of many groups has a least number of its own, so no more than `limit` of these can lie
    below the number in question: one fast pass instead of a selection among them all.
    """
    if limit * 16 > _GROUPS or len(numbers) < _GROUPS * 4:
        return None
    depth = len(numbers) // _GROUPS
    least = np.fmin.reduce(numbers[: depth * _GROUPS].reshape(depth, _GROUPS), axis=0)
    bound = np.partition(least, limit - 1)[limit - 1]
    # Nothing is less than NaN, or equal to it.
    return None if bound != bound else np.flatnonzero(numbers <= bound)
