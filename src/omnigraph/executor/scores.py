"""Scores: what a stage sorted its rows by, read by position as a table is."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The values of the first key of a stage, one for each row it kept."""

    array: pa.Array

    @property
    def size(self) -> int:
        return len(self.array)

    def values(self, names: Sequence[str], positions: IntArray) -> dict[str, pa.Array]:
        """The scores at these positions, which may repeat."""
        return dict.fromkeys(names, self.array.take(pa.array(positions)))
