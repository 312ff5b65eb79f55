"""Sorting: places in the order of several keys, looking at later keys only where earlier ones tie.

A key gives numbers that sort as its values do, null first. With a limit, the first key alone
usually rules out nearly every place, and the others are read for the few that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.index import TableView
from omnigraph.index.columns import AnyArray, IntArray, ordered_numbers


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One key. `numbers` is asked for some places, or for all of them with None."""

    numbers: Callable[[IntArray | None], AnyArray]
    descending: bool = False

    def ascending_numbers(self, places: IntArray | None) -> AnyArray:
        """Numbers that sort in the direction of the key."""
        numbers = self.numbers(places)
        if not self.descending:
            return numbers
        # Inverting the bits reverses whole numbers without overflow; a negation would not.
        return -numbers if numbers.dtype.kind == "f" else ~numbers


def property_column(
    view: TableView, name: str, positions: IntArray, *, descending: bool = False
) -> SortColumn:
    """Sort by a property of the entities at these positions."""

    def numbers(places: IntArray | None) -> AnyArray:
        wanted = positions if places is None else positions[places]
        if view.has_ranks(name) or len(wanted) * 4 >= view.size:
            return view.ranks(name).codes[wanted]
        return ordered_numbers(view.values([name], wanted)[name])

    return SortColumn(numbers, descending)


def array_column(numbers: AnyArray, *, descending: bool = False) -> SortColumn:
    """Sort by numbers at hand."""
    return SortColumn(lambda places: numbers if places is None else numbers[places], descending)


def sorted_places(columns: Sequence[SortColumn], count: int, limit: int | None) -> IntArray:
    """The places 0..count-1 in order; with a limit only the first ones and what ties with them."""
    places: IntArray | None = None
    if limit is not None and limit < count:
        if limit == 0:
            return np.empty(0, dtype=np.int64)
        places = _first_and_ties(columns[0].ascending_numbers(None), limit)
    keys = [column.ascending_numbers(places) for column in columns]
    order = np.lexsort(keys[::-1])
    return order if places is None else places[order]


def _first_and_ties(numbers: AnyArray, limit: int) -> IntArray:
    last = np.partition(numbers, limit - 1)[limit - 1]
    return np.flatnonzero(numbers <= last)
