"""Shifts: slots to positions and back.

A row keeps its slot for good; its position is lower by the rows before it that are gone. Of
five slots, the second and the third are gone:

    >>> shift = Shift(np.array([1, 2]))
    >>> shift.to_positions(np.array([0, 3, 4])), shift.to_slots(np.array([0, 1, 2]))
    (array([0, 1, 2]), array([0, 3, 4]))
    >>> shift.drop(np.array([9, 0, 0, 8, 7])), shift.spread(np.array([9, 8, 7]))
    (array([9, 8, 7]), array([9, 0, 0, 8, 7]))

What is kept by slot stays as it is when a row goes; what is kept by position would have to move.
"""

from __future__ import annotations

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import AnyArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """The slots that are `gone`, ascending."""

    gone: IntArray

    @property
    def _places(self) -> IntArray:
        """The position before which each slot that is gone was."""
        return self.gone - np.arange(len(self.gone))

    def to_positions(self, slots: IntArray) -> IntArray:
        """The positions of slots, none of which is gone."""
        return slots - np.searchsorted(self.gone, slots) if len(self.gone) else slots

    def to_slots(self, positions: IntArray) -> IntArray:
        if len(self.gone) == 0:
            return positions
        return positions + np.searchsorted(self._places, positions, side="right")

    def drop(self, values: AnyArray) -> AnyArray:
        """The values of positions, from those of slots."""
        return np.delete(values, self.gone)

    def spread(self, values: AnyArray) -> AnyArray:
        """The values of slots, zero for those that are gone, from those of positions."""
        return np.insert(values, self._places, 0)

    def remove(self, slots: IntArray) -> Shift:
        return Shift(np.union1d(self.gone, slots)) if len(slots) else self


NO_SHIFT = Shift(np.empty(0, dtype=np.int64))
