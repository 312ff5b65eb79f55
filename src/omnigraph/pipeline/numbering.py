"""Numbering: the number of each id, found by its hash, in tasks that do not hold the ids.

Hashes are sorted, and a table of their first bits says where to look: each look-up reads two or
three places, however many ids there are. Ids that share a hash are few, and are told apart as text.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.hashes import hash_texts

NO_NUMBER = -1
_LAST = np.iinfo(np.uint64).max


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """`starts` has, for every value of the first bits, the first place with them in `hashes`.

    A last hash, which is the greatest there can be, ends every search.
    """

    hashes: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    shift: int
    shared: pa.Array
    shared_numbers: npt.NDArray[np.int32]

    def find(self, texts: pa.StringArray) -> npt.NDArray[np.int32]:
        """The number of each text, -1 where it is no id."""
        wanted = hash_texts(texts)
        at = self.starts[(wanted >> np.uint64(self.shift)).astype(np.int64)]
        ahead = np.flatnonzero(self.hashes[at] < wanted)
        while len(ahead):
            at[ahead] += 1
            ahead = ahead[self.hashes[at[ahead]] < wanted[ahead]]
        found = np.where(self.hashes[at] == wanted, self.numbers[at], np.int32(NO_NUMBER))
        if len(self.shared):
            places = pc.index_in(texts, value_set=self.shared)
            is_shared = places.is_valid().to_numpy(zero_copy_only=False)
            found[is_shared] = self.shared_numbers[places.drop_null().to_numpy()]
        return found


def number_ids(ids: pa.StringArray) -> Numbering:
    """Number distinct ids by their places."""
    hashes = hash_texts(ids)
    order = np.argsort(hashes)
    ordered = hashes[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    shared = np.unique(order[np.concatenate([same, same + 1])])
    # About one id for each value of the bits; a hash has at least one bit that is not among them.
    bits = min(max(len(ids).bit_length(), 1), 30)
    shift = 64 - bits
    sizes = np.bincount((ordered >> np.uint64(shift)).astype(np.int64), minlength=1 << bits)
    return Numbering(
        np.append(ordered, _LAST),
        np.append(order, NO_NUMBER).astype(np.int32),
        (np.cumsum(sizes) - sizes).astype(np.int32),
        shift,
        ids.take(pa.array(shared)),
        shared.astype(np.int32),
    )
