"""Buckets: texts split by a hash of them, so that a task can look at one part of a large load.

Equal texts are always in one bucket. The hash looks at the length and at eight bytes from the
start, the middle and the end: a bad spread would make buckets uneven, never wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def bucket_numbers(texts: pa.StringArray, count: int) -> npt.NDArray[np.int64]:
    """The bucket of each text."""
    filled = texts.fill_null("")
    offsets = np.frombuffer(filled.buffers()[1], dtype=np.int32)
    offsets = offsets[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    words = _words(filled.buffers()[2], int(offsets[-1]) if len(offsets) else 0)
    # A text of fewer than eight bytes is one word, from which the bytes behind it are cut off.
    spare = (8 * np.maximum(8 - lengths, 0)).astype(np.uint64)
    is_empty = lengths == 0
    state = lengths.astype(np.uint64) * _SPREAD
    for anchor in (starts, starts + np.maximum(lengths - 8, 0) // 2, np.maximum(starts, ends - 8)):
        word = words[anchor] << spare
        word[is_empty] = 0
        state = (state ^ word) * _SPREAD
        state ^= state >> np.uint64(29)
    return ((state >> np.uint64(33)) % np.uint64(count)).astype(np.int64)


def _words(buffer: pa.Buffer | None, size: int) -> npt.NDArray[np.uint64]:
    """The eight bytes from each place on, low byte first; zeros follow the last byte."""
    padded = np.zeros(size + 8, dtype=np.uint8)
    padded[:size] = np.frombuffer(buffer or b"", dtype=np.uint8)[:size]
    return np.ndarray((size + 1,), dtype="<u8", buffer=padded, strides=(1,))
