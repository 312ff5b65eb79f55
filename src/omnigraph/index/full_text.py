"""Full text: the text indexes that together cover one version of a table.

A version is a list of data files that never change, and of rows of them that are deleted. Words are
counted once per data file; a version is searched in parts, each an index of some data files without
the documents that the version does not have. Parts come from other versions and branches that are
cached, from files beside the graph, or else are made of the rows. Small ones are merged, so that
each is at least eight times the one after it and there are few of them. The numbers of relevance
are sums over the parts: an answer is the same whatever the parts are.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray
from omnigraph.index.layout import Layout
from omnigraph.index.text_files import TextColumn
from omnigraph.index.text_index import Files, TextIndex, make_addresses, split_addresses


@dataclass(frozen=True, eq=False)
class TextPart:
    """An index, and which of its documents a version has.

    `chosen` are its fragments that count here, `starts` the positions at which they start. `gone`
    are the addresses of deleted rows, ascending, of which `gone_before` are in the fragments before
    each one. `dead` are the documents that the version does not have.
    """

    index: TextIndex
    chosen: frozenset[Files]
    starts: IntArray
    gone: AnyArray
    gone_before: IntArray
    dead: IntArray

    @property
    def rows(self) -> int:
        return len(self.index) - len(self.dead)

    @cached_property
    def length(self) -> int:
        """How many tokens the documents have."""
        return self.index.total_length - int(self.index.lengths.at(self.dead).sum())

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

    def counts_of_stem(self, stem: str) -> tuple[IntArray, AnyArray]:
        """The documents that have the stem, each once, and how often they have it."""
        documents, counts = self.index.counts_of_stem(stem)
        if self.is_live is None:
            return documents, counts
        live = self.is_live[documents]
        return documents[live], counts[live]

    def positions(self, documents: IntArray) -> IntArray:
        """The positions of documents that the version has."""
        addresses = self.index.addresses.at(documents)
        fragments, rows = split_addresses(addresses)
        before = np.searchsorted(self.gone, addresses) - self.gone_before[fragments]
        return np.asarray(self.starts[fragments] + rows - before)


@dataclass(frozen=True, slots=True, eq=False)
class FullText:
    """The parts of one version, the largest first."""

    parts: tuple[TextPart, ...]
    layout: Layout
    column: TextColumn

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def mean_length(self) -> float:
        return sum(part.length for part in self.parts) / max(self.rows, 1)

    @property
    def nbytes(self) -> int:
        return self.layout.nbytes + sum(part.nbytes for part in self.parts)

    @property
    def shared(self) -> tuple[TextIndex, ...]:
        """What other versions have too; see `Sized`."""
        return tuple(part.index for part in self.parts)


def make_part(index: TextIndex, chosen: frozenset[Files], layout: Layout) -> TextPart:
    """The documents of some fragments of an index that a version has."""
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
    return TextPart(
        index,
        chosen,
        np.array([layout.starts.get(files, 0) for files in index.fragments], dtype=np.int64),
        addresses,
        np.cumsum([0, *map(len, gone)])[:-1],
        np.concatenate([deleted, *unchosen]),
    )
