"""Selection: a set of row positions of one table."""

from __future__ import annotations

import numpy as np

from omnigraph.index.arrays import BoolArray, IntArray


class Selection:
    """A set of positions below `size`, as a mask, as ascending positions, or everything."""

    __slots__ = ("_count", "_mask", "_positions", "size")

    def __init__(
        self, size: int, mask: BoolArray | None = None, positions: IntArray | None = None
    ) -> None:
        self.size = size
        self._mask = mask
        self._positions = positions
        self._count: int | None = None

    @classmethod
    def empty(cls, size: int) -> Selection:
        return cls(size, positions=np.empty(0, dtype=np.int64))

    @property
    def is_all(self) -> bool:
        return self._mask is None and self._positions is None

    @property
    def count(self) -> int:
        if self._positions is not None:
            return len(self._positions)
        if self._mask is None:
            return self.size
        if self._count is None:
            self._count = int(np.count_nonzero(self._mask))
        return self._count

    def mask(self) -> BoolArray:
        if self._mask is None:
            if self._positions is None:
                return np.ones(self.size, dtype=bool)
            self._mask = np.zeros(self.size, dtype=bool)
            self._mask[self._positions] = True
        return self._mask

    def positions(self) -> IntArray:
        if self._positions is None:
            if self._mask is None:
                return np.arange(self.size)
            self._positions = np.flatnonzero(self._mask)
        return self._positions

    def intersect(self, other: Selection) -> Selection:
        """The positions in both."""
        if other.is_all:
            return self
        if self.is_all:
            return other
        few, many = (self, other) if self._positions is not None else (other, self)
        if few._positions is not None:
            return Selection(self.size, positions=few._positions[many.mask()[few._positions]])
        return Selection(self.size, mask=self.mask() & other.mask())

    def without(self, positions: IntArray) -> Selection:
        """The positions but these."""
        mask = self.mask().copy()
        mask[positions] = False
        return Selection(self.size, mask=mask)

    def contains(self, positions: IntArray) -> BoolArray:
        """Whether each of these positions is in the set."""
        if self.is_all:
            return np.ones(len(positions), dtype=bool)
        return np.asarray(self.mask()[positions])
