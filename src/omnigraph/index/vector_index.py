"""Vector index: the vectors of a column in some data files, kept in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.index.addressed import Addressed, Files, make_addresses, split_addresses
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.parts import Choice
from omnigraph.index.sealed_file import Section
from omnigraph.index.text_words import pack_words
from omnigraph.storage.vectors import square_distances, within

_F32_STEP = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, eq=False)
class VectorIndex(Addressed):
    """The vectors of one column; rows without one, or with a hole in it, are absent.

    Documents are in the order of their addresses, as they were read: to sort them by id would take
    longer than the first search. `squares` are the squared lengths of the vectors.
    """

    vectors: AnyArray
    squares: AnyArray

    @property
    def nbytes(self) -> int:
        arrays = (self.ids, self.addresses, self.by_address, self.vectors, self.squares)
        return sum(int(each.nbytes) for each in arrays)

    def nearest(
        self, vector: AnyArray, documents: IntArray | None, limit: int | None
    ) -> tuple[IntArray, AnyArray]:
        """The nearest of these documents, or of all, in no order, and their distances.

        All that are as near as the last one are among them.
        """
        found = np.arange(len(self)) if documents is None else documents
        if limit is not None and 0 < limit < len(found):
            found = found[self._can_be_near(vector, documents, limit)]
        distances = square_distances(self.vectors[found], vector)
        near = np.flatnonzero(within(distances, limit))
        return found[near], distances[near]

    def _can_be_near(self, vector: AnyArray, documents: IntArray | None, limit: int) -> AnyArray:
        """Which may be among the nearest: all but those that one product proves are not.

        |v - q|² = |v|² - 2 v·q + |q|², which is off by less than `slack`. It need not be exact:
        the distances of the few documents that are left are computed one by one.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            # By rows, like the distances: a matrix product would wait for threads of its own.
            product = np.einsum("ij,j->i", self.vectors, vector)
            chosen = slice(None) if documents is None else documents
            squares = self.squares[chosen].astype(np.float64) + float(vector @ vector)
            about = squares - 2.0 * product[chosen]
            slack = (self.vectors.shape[1] + 16) * _F32_STEP * 2.0 * squares
            most = np.partition(np.nan_to_num(about + slack, nan=np.inf), limit - 1)[limit - 1]
            # What cannot be told, because it overflowed, may be near.
            return np.asarray(~(about - slack > most))


def build_vector_index(
    ids: pa.ChunkedArray, components: AnyArray, addresses: AnyArray, fragments: Sequence[Files]
) -> VectorIndex:
    """Index the rows whose vector is whole."""
    index = _assemble(ids, components, addresses, fragments)
    known = ~np.isnan(index.squares)  # one hole in a vector is a hole in the sum of its squares
    if known.all():
        return index
    return _assemble(ids.filter(pa.array(known)), components[known], addresses[known], fragments)


def merge_vector_indexes(choices: Sequence[Choice[VectorIndex]]) -> VectorIndex:
    """One index of the chosen fragments of several."""
    fragments = [
        each for choice in choices for each in choice.index.fragments if each in choice.chosen
    ]
    number = {each: place for place, each in enumerate(fragments)}
    ids, vectors, addresses = [], [], []
    for choice in choices:
        moved = np.array([number.get(each, -1) for each in choice.index.fragments])
        old, rows = split_addresses(choice.index.addresses.all())
        kept = np.flatnonzero(moved[old] >= 0)
        ids.append(choice.index.ids.take(kept))
        vectors.append(choice.index.vectors[kept])
        addresses.append(make_addresses(moved[old[kept]], rows[kept]))
    return _assemble(
        pa.chunked_array(ids, pa.large_utf8()),
        np.concatenate(vectors),
        np.concatenate(addresses),
        fragments,
    )


def _assemble(
    ids: pa.ChunkedArray, vectors: AnyArray, addresses: AnyArray, fragments: Sequence[Files]
) -> VectorIndex:
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
    return VectorIndex(
        tuple(fragments),
        pack_words(ids),
        Section(addresses),
        Section(np.arange(len(addresses))),
        vectors,
        squares,
    )
