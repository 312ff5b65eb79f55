"""Parts: what is derived of data files, put together to one version of a table.

A version is a list of data files that never change, and of rows of them that are deleted. It is
searched in parts, each made of some data files, without the rows that the version does not have.
Parts are shared by versions and branches. Small ones are merged, so that each is at least eight
times the one after it and there are few of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.addressed import Addressed, Files, make_addresses, split_addresses
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray
from omnigraph.index.layout import Layout

PART_RATIO = 8
"""How many times as many documents a part has as the one after it, at least."""
A = TypeVar("A", bound=Addressed)


@dataclass(frozen=True, eq=False)
class Part(Generic[A]):
    """An index, and which of its documents a version has.

    `chosen` are its fragments that count here, `starts` the positions at which they start. `gone`
    are the addresses of deleted rows, ascending, of which `gone_before` are in the fragments before
    each one. `dead` are the documents that the version does not have.
    """

    index: A
    chosen: frozenset[Files]
    starts: IntArray
    gone: AnyArray
    gone_before: IntArray
    dead: IntArray

    @property
    def rows(self) -> int:
        return len(self.index) - len(self.dead)

    @cached_property
    def is_live(self) -> BoolArray | None:
        """Whether the version has each document; None when it has all of them."""
        if len(self.dead) == 0:
            return None
        is_live = np.ones(len(self.index), dtype=bool)
        is_live[self.dead] = False
        return is_live

    @property
    def nbytes(self) -> int:
        mask = len(self.index) if len(self.dead) else 0
        return int(self.gone.nbytes + self.dead.nbytes + mask)

    def keep_live(self, documents: IntArray) -> IntArray:
        """Those of these documents that the version has."""
        return documents if self.is_live is None else documents[self.is_live[documents]]

    def positions(self, documents: IntArray) -> IntArray:
        """The positions of documents that the version has."""
        addresses = self.index.addresses.at(documents)
        fragments, rows = split_addresses(addresses)
        before = np.searchsorted(self.gone, addresses) - self.gone_before[fragments]
        return np.asarray(self.starts[fragments] + rows - before)


@dataclass(frozen=True, slots=True, eq=False)
class Choice(Generic[A]):
    """An index, and the fragments of it that are used."""

    index: A
    chosen: frozenset[Files]

    @property
    def size(self) -> int:
        if len(self.chosen) == len(self.index.fragments):
            return len(self.index)
        return sum(
            len(self.index.documents_of_fragment(number))
            for number, each in enumerate(self.index.fragments)
            if each in self.chosen
        )


def choose_whole(index: A) -> Choice[A]:
    return Choice(index, frozenset(index.fragments))


def cover(layout: Layout, indexes: Iterable[A]) -> tuple[list[Choice[A]], list[Files]]:
    """Indexes that have fragments of the version, the largest first, and the fragments left over.

    One of which the version has lost the greater part is not worth searching.
    """
    missing = dict.fromkeys(layout.fragments)
    chosen = []
    for index in sorted(indexes, key=len, reverse=True):
        useful = [each for each in index.fragments if each in missing]
        rows = sum(layout.fragments[each].physical_rows for each in useful)
        if useful and 2 * rows >= len(index):
            chosen.append(Choice(index, frozenset(useful)))
            for each in useful:
                del missing[each]
    return chosen, list(missing)


def merge_small(
    parts: Iterable[Choice[A]],
    merge: Callable[[Sequence[Choice[A]]], A | None],
    *,
    unmerged_from: int = sys.maxsize,
) -> list[Choice[A]]:
    """The parts, the largest first, with small ones merged.

    `merge` gets neighbours that are too close in size, and may decline. Parts of `unmerged_from`
    documents and more stay as they are.
    """
    merged = sorted(parts, key=lambda part: part.size, reverse=True)
    while (place := _find_pair(merged, unmerged_from)) is not None:
        made = merge(merged[place : place + 2])
        if made is None:
            break
        merged[place : place + 2] = [choose_whole(made)]
        merged.sort(key=lambda part: part.size, reverse=True)
    return merged


def _find_pair(parts: Sequence[Choice[A]], unmerged_from: int) -> int | None:
    """The last two neighbours of which the second is too large to stand beside the first."""
    for place in range(len(parts) - 2, -1, -1):
        first, second = parts[place].size, parts[place + 1].size
        if second * PART_RATIO > first and first < unmerged_from:
            return place
    return None


def place_part(choice: Choice[A], layout: Layout) -> Part[A]:
    """What a version has of the chosen fragments of an index."""
    index, chosen = choice.index, choice.chosen
    none = np.zeros(0, dtype=np.uint64)
    gone = [
        make_addresses(number, layout.deleted.get(files, none)) if files in chosen else none
        for number, files in enumerate(index.fragments)
    ]
    addresses = np.concatenate([none, *gone])
    unchosen = [
        index.documents_of_fragment(number)
        for number, files in enumerate(index.fragments)
        if files not in chosen
    ]
    deleted = index.find_documents(addresses) if len(addresses) else none.astype(np.int64)
    return Part(
        index,
        chosen,
        np.array([layout.starts.get(files, 0) for files in index.fragments], dtype=np.int64),
        addresses,
        np.cumsum([0, *map(len, gone)])[:-1],
        np.concatenate([deleted, *unchosen]),
    )
