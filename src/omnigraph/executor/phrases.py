"""Phrases: texts that have the words of a query one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.storage.tokens import Form

_HIGH = np.uint64(32)


def find_phrase(
    find_places: Callable[[str], tuple[AnyArray, AnyArray]], phrase: Sequence[tuple[Form, int]]
) -> IntArray:
    """The documents, ascending, that have the phrase.

    `find_places` gives the document and the place of every token with a stem. A stop word in the
    middle of a phrase stands for any one word; at its ends it stands for nothing.
    """
    if not phrase:
        return np.zeros(0, dtype=np.int64)
    first = phrase[0][1]
    starts = [_find_starts(*find_places(form.stem), place - first) for form, place in phrase]
    starts.sort(key=len)
    found = starts[0]
    for each in starts[1:]:
        found = np.intersect1d(found, each, assume_unique=True)
    return np.unique(found >> _HIGH).astype(np.int64)


def _find_starts(documents: AnyArray, places: AnyArray, offset: int) -> AnyArray:
    """Where the phrase would have to start for a token to be in its place: document and place."""
    can_be = places >= offset
    starts = (places[can_be] - offset).astype(np.uint64)
    return documents[can_be].astype(np.uint64) << _HIGH | starts
