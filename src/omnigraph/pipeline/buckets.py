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
    starts, lengths, words = read_words(texts)
    ends = starts + lengths
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


def read_words(
    texts: pa.StringArray,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Where each text starts, its length in bytes, and the eight bytes from each place on."""
    filled = texts.fill_null("")
    ends = np.frombuffer(filled.buffers()[1], dtype=np.int32)
    offsets = ends[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    words = _words(filled.buffers()[2], first, last)
    return offsets[:-1] - first, np.diff(offsets), words


def _words(buffer: pa.Buffer | None, first: int, last: int) -> npt.NDArray[np.uint64]:
    """The eight bytes from each place on, low byte first; zeros follow the last byte."""
    size = last - first
    padded = np.zeros(size + 8, dtype=np.uint8)
    padded[:size] = np.frombuffer(buffer or b"", dtype=np.uint8)[first:last]
    return np.ndarray((size + 1,), dtype="<u8", buffer=padded, strides=(1,))
