"""Value sets: the values of an `in`, prepared once and then looked up batch by batch.

Arrow builds the hash table of a set for every call. Over a scan whose batches are small, since its
rows are wide, that would cost the whole list once per batch.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.counters import record

PREPARED_MIN = 1_000
"""From so many values on: for fewer, Arrow's table is built in the time of a call or two."""

Mask: TypeAlias = npt.NDArray[np.bool_]


class ValueSet:
    """Which values of a column are among those of an `in` that is bound to its type."""

    def __init__(self, values: pa.Array) -> None:
        record(value_sets=1)
        self._texts: frozenset[str] = frozenset()
        self._numbers: npt.NDArray[np.generic] | None = None
        if pa.types.is_string(values.type):
            self._texts = frozenset(values.to_pylist())
        else:
            self._numbers = np.unique(_to_numbers(values))

    def find(self, column: pa.Array) -> pa.BooleanArray:
        """True for each value that is in the set, and null for null."""
        found = pa.array(self._look_up(column))
        return pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))

    def _look_up(self, column: pa.Array) -> Mask:
        if self._numbers is None:
            texts = column.to_pylist()
            return np.fromiter(map(self._texts.__contains__, texts), dtype=bool, count=len(texts))
        numbers = _to_numbers(column)
        places = np.searchsorted(self._numbers, numbers)
        nearest = self._numbers[np.minimum(places, len(self._numbers) - 1)]
        # NaN sorts behind every number, and is one value.
        both_nan = (nearest != nearest) & (numbers != numbers)
        same: Mask = (nearest == numbers) | both_nan
        return same


def _to_numbers(values: pa.Array) -> npt.NDArray[np.generic]:
    """Values by what makes them equal: dates and flags by their number, and null as any."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_date64(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    numbers: npt.NDArray[np.generic] = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return numbers
