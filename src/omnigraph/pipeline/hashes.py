"""Hashes of texts: 64 bits each, to find the few texts of a column that may be equal.

Every byte counts. Texts with different hashes differ; those with equal ones are candidates, and are
compared before anything is said of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.pipeline.buckets import read_words

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_STEP_TEXTS = 1 << 18


def find_repeated(texts: pa.StringArray) -> npt.NDArray[np.int64]:
    """The places of texts that may occur more than once, ascending."""
    hashes = hash_texts(texts)
    ordered = np.sort(hashes)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(hashes, repeated)) if len(repeated) else np.empty(0, np.int64)


def hash_texts(texts: pa.StringArray) -> npt.NDArray[np.uint64]:
    """A hash of each text; equal texts have equal ones."""
    # A part at a time: what is in the cache of the processor is hashed twice as fast.
    parts = [_hash(texts.slice(at, _STEP_TEXTS)) for at in range(0, len(texts), _STEP_TEXTS)]
    return np.concatenate([np.empty(0, np.uint64), *parts])


def combine_hashes(
    first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """A hash of each pair, in this order."""
    return _mix(first ^ _mix(second + _FACTOR))


def _hash(texts: pa.StringArray) -> npt.NDArray[np.uint64]:
    starts, lengths, words = read_words(texts)
    state = _mix(lengths.astype(np.uint64) + np.uint64(1))
    longer = np.arange(len(starts))
    for at in range(0, int(lengths.max(initial=0)), 8):
        if lengths[longer].min() <= at:
            longer = longer[lengths[longer] > at]
        left = np.minimum(lengths[longer] - at, 8)
        # The bytes behind the text are cut off.
        word = words[starts[longer] + at] << (8 * (8 - left)).astype(np.uint64)
        state[longer] = _mix(state[longer] ^ word)
    return state


def _mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread each bit over all: each step can be undone, so no two states become one."""
    state = (state ^ (state >> np.uint64(32))) * _FACTOR
    state = (state ^ (state >> np.uint64(29))) * _FACTOR
    return state ^ (state >> np.uint64(32))
