"""Addressed rows: what is derived of data files, row by row, and where each row lies.

It holds every row of its data files that has the property, deleted or not. It therefore never
changes, and every version and branch that has those files can use it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import AnyArray
from omnigraph.index.sealed_file import Section
from omnigraph.index.text_words import Words

_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)

Files: TypeAlias = tuple[str, ...]
"""The data files of a fragment: the same files hold the same rows, but for deleted ones."""


@dataclass(frozen=True, eq=False)
class Addressed:
    """Documents: rows that have a property, by number.

    A document's address is the fragment it is in, as a number in `fragments`, and its row there.
    `by_address` are the documents in that order.
    """

    fragments: tuple[Files, ...]
    ids: Words
    addresses: Section
    by_address: Section

    def __len__(self) -> int:
        return len(self.addresses)

    def find_documents(self, addresses: AnyArray) -> AnyArray:
        """The documents at these addresses; rows that are none are left out."""
        if len(self) == 0:
            return np.zeros(0, dtype=np.int64)
        known, order = self.addresses.all(), self.by_address.all()
        places = np.searchsorted(known, addresses, sorter=order)
        found: AnyArray = order[np.minimum(places, len(order) - 1)]
        return np.compress(known[found] == addresses, found)

    def documents_of_fragment(self, number: int) -> AnyArray:
        """All documents of one of its fragments."""
        known, order = self.addresses.all(), self.by_address.all()
        ends = np.array([number, number + 1], dtype=np.uint64) << _HIGH
        first, last = np.searchsorted(known, ends, sorter=order)
        return order[first:last]


def make_addresses(fragments: int | AnyArray, rows: AnyArray) -> AnyArray:
    """The addresses of rows of a fragment, or of one fragment each, known by their numbers."""
    return np.asarray(rows, dtype=np.uint64) | np.asarray(fragments, dtype=np.uint64) << _HIGH


def split_addresses(addresses: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The fragment of each address, by its number, and the row in it."""
    return (addresses >> _HIGH).astype(np.int64), (addresses & _LOW).astype(np.int64)
