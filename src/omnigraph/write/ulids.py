"""Ulids: generated ids, a batch at a time.

A ULID is 48 bits of time and 80 random bits in 26 characters that sort as they count. One batch
takes one instant and one random start and counts up from it: its ids rise with its rows, and the
79 random bits of the start keep the batches of other workers apart.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pyarrow as pa

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_LENGTH = 26
_COUNTED = 8  # characters, 40 bits, at the end of the id that differ within a batch


def new_ulids(count: int) -> pa.StringArray:
    """Return `count` fresh ULIDs in rising order."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    head = (milliseconds << 40) | (random >> 40)
    # Half of the range is left above the start: no batch has room to count past it.
    start = (random & ((1 << 40) - 1)) >> 1
    characters = np.empty((count, _LENGTH), dtype=np.uint8)
    for index in range(_LENGTH - _COUNTED):
        characters[:, index] = _ALPHABET[(head >> (5 * (_LENGTH - _COUNTED - 1 - index))) & 31]
    numbers = np.arange(start, start + count, dtype=np.uint64)
    for index in range(_COUNTED):
        digits = (numbers >> np.uint64(5 * (_COUNTED - 1 - index))) & np.uint64(31)
        characters[:, _LENGTH - _COUNTED + index] = _ALPHABET[digits]
    offsets = np.arange(0, (count + 1) * _LENGTH, _LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets), pa.py_buffer(characters.reshape(-1))
    )
