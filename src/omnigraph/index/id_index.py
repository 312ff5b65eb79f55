"""Id index: where the entities with a few ids stand, without a pass over all ids.

Ids are hashed, and hashes sorted; a hash that is found is compared with the id it stands for. Rows
that a version adds become a part of their own, and a part is merged with those before it that are
no longer than it, so that there are few parts, and each row is sorted anew only a few times.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import IntArray
from omnigraph.index.shifts import NO_SHIFT, Shift

_BASE = np.uint64(0x9E3779B97F4A7C15)
_ROWS_HASHED_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class IdPart:
    """Sorted hashes, and the slot of each."""

    hashes: np.ndarray
    slots: IntArray

    @property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes + self.slots.nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class IdIndex:
    """The parts of an index over the ids of the first `size` slots."""

    shared: tuple[IdPart, ...]
    size: int
    shift: Shift = NO_SHIFT

    @property
    def nbytes(self) -> int:
        """Without the parts: versions share them."""
        return int(self.shift.gone.nbytes)

    def remove(self, positions: IntArray) -> IdIndex:
        """The index without the rows at these positions."""
        return replace(self, shift=self.shift.remove(self.shift.to_slots(positions)))

    def append(self, tail: pa.Array) -> IdIndex:
        """The index with the ids of more rows."""
        parts = list(self.shared)
        added = _sort_part(_hash_texts(tail), np.arange(self.size, self.size + len(tail)))
        while parts and len(parts[-1].hashes) <= len(added.hashes):
            last = parts.pop()
            added = _sort_part(
                np.concatenate([last.hashes, added.hashes]),
                np.concatenate([last.slots, added.slots]),
            )
        return IdIndex((*parts, added), self.size + len(tail), self.shift)

    def find(self, ids: pa.Array, column: pa.Array) -> IntArray:
        """The positions of ids in the column that was indexed, -1 for one that is not there."""
        found = np.full(len(ids), -1, dtype=np.int64)
        wanted = _hash_texts(ids)
        for part in self.shared:
            starts = np.searchsorted(part.hashes, wanted, side="left")
            ends = np.searchsorted(part.hashes, wanted, side="right")
            while True:
                # Different ids may have one hash: then each of them is looked at.
                rows = np.flatnonzero((starts < ends) & (found < 0))
                if len(rows) == 0:
                    break
                slots = part.slots[starts[rows]]
                # A slot that is gone gives the position of another row, which has another id.
                at = np.minimum(self.shift.to_positions(slots), len(column) - 1)
                same = pc.equal(column.take(pa.array(at)), ids.take(pa.array(rows)))
                is_same = same.fill_null(False).to_numpy(zero_copy_only=False)
                found[rows[is_same]] = at[is_same]
                starts[rows] += 1
        return found


def build_id_index(ids: pa.Array) -> IdIndex:
    """Index every id of a column."""
    return IdIndex((_sort_part(_hash_texts(ids), np.arange(len(ids))),), len(ids))


def _sort_part(hashes: np.ndarray, slots: IntArray) -> IdPart:
    order = np.argsort(hashes, kind="stable")
    return IdPart(hashes[order], slots[order])


def _hash_texts(texts: pa.Array) -> np.ndarray:
    """A number for each text, equal when the texts are: a polynomial of its bytes, modulo 2^64."""
    parts = [
        _hash_some(texts.slice(first, _ROWS_HASHED_AT_ONCE))
        for first in range(0, len(texts), _ROWS_HASHED_AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _hash_some(texts: pa.Array) -> np.ndarray:
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4).astype(np.int64)
    first, last = int(ends[0]), int(ends[-1])
    if first == last:
        return np.zeros(len(texts), dtype=np.uint64)
    lengths = np.diff(ends)
    powers = np.full(int(lengths.max()), _BASE, dtype=np.uint64)
    np.multiply.accumulate(powers, out=powers)
    place = np.arange(last - first) - np.repeat(ends[:-1] - first, lengths)
    terms = np.frombuffer(data, np.uint8, last - first, first) + np.uint64(1)
    sums = np.zeros(last - first + 1, dtype=np.uint64)
    np.cumsum(terms * powers[place], out=sums[1:])
    hashes: np.ndarray = sums[ends[1:] - first] - sums[ends[:-1] - first]
    return hashes
