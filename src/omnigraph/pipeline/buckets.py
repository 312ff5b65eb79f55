"""Buckets: texts split by a hash of them, so that a check can look at one part of a large load.

Equal texts are always in one bucket. The hash looks at the length and at eight bytes from the
start, the middle and the end: a bad spread would make buckets uneven, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Bucket:
    """One of `count` buckets. Of one, it holds everything."""

    index: int = 0
    count: int = 1

    def of(self, table: pa.Table, column: str) -> pa.Table:
        """The rows whose text in `column` falls into this bucket. Null falls into the first."""
        if self.count == 1:
            return table
        numbers = bucket_numbers(table[column].combine_chunks(), self.count)
        return table.filter(pa.array(numbers == self.index))


def bucket_numbers(texts: pa.StringArray, count: int) -> npt.NDArray[np.int64]:
    """The bucket of each text."""
    filled = texts.fill_null("")
    offsets = np.frombuffer(filled.buffers()[1], dtype=np.int32)
    offsets = offsets[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
    data = np.frombuffer(filled.buffers()[2] or b"", dtype=np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    state = lengths.astype(np.uint64) * _SPREAD
    for anchor in (starts, starts + lengths // 2, np.maximum(starts, offsets[1:] - 8)):
        for place in range(8):
            inside = anchor + place < offsets[1:]
            byte = np.zeros(len(filled), dtype=np.uint64)
            byte[inside] = data[(anchor + place)[inside]]
            state = (state ^ byte) * _SPREAD
    return ((state >> np.uint64(33)) % np.uint64(count)).astype(np.int64)
