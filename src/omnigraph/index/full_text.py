"""Full text: the text indexes that together cover one version of a table.

A commit changes few rows, so a version is searched in parts: the text index of an earlier version
without the documents that went since, and small ones of the rows that came. Parts are immutable and
shared by versions; each is at least eight times the one after it, so there are few of them, and a
row is counted anew only when the part it is in is joined with the next larger one. The numbers of
relevance are sums over the parts: an answer is the same whatever the parts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.carry_over import PreviousVersion
from omnigraph.index.keys import FullTextKey, TableId
from omnigraph.index.notes import note
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text_index import TextIndex, build_text_index, text_columns

PART_RATIO = 8
"""How many times as many documents a part has as the one after it, at least."""


@dataclass(eq=False)
class TextPart:
    """An index, and which of its documents the version still has; None for all of them."""

    index: TextIndex
    is_live: BoolArray | None = None

    @cached_property
    def rows(self) -> int:
        size = len(self.index.row_ids)
        return size if self.is_live is None else int(np.count_nonzero(self.is_live))

    @cached_property
    def length(self) -> int:
        """How many tokens the documents have."""
        lengths = self.index.lengths
        return int((lengths if self.is_live is None else lengths[self.is_live]).sum())

    @property
    def row_ids(self) -> np.ndarray:
        row_ids = self.index.row_ids
        return row_ids if self.is_live is None else row_ids[self.is_live]

    def keep_live(self, documents: IntArray) -> IntArray:
        """Those of these documents that the version has."""
        return documents if self.is_live is None else documents[self.is_live[documents]]

    def counts_of_stem(self, stem: str) -> tuple[IntArray, np.ndarray]:
        """The documents that have the stem, each once, and how often they have it."""
        documents, counts = self.index.counts_of_stem(stem)
        if self.is_live is None:
            return documents, counts
        live = self.is_live[documents]
        return documents[live], counts[live]

    def without(self, row_ids: np.ndarray) -> TextPart:
        """The part after some rows went, of which it may have none."""
        gone = self.index.find_documents(row_ids)
        if len(gone) == 0:
            return self
        is_live = np.ones(len(self.index.row_ids), bool) if self.is_live is None else self.is_live
        is_live = is_live.copy()
        is_live[gone] = False
        return TextPart(self.index, is_live)


@dataclass(frozen=True, slots=True, eq=False)
class FullText:
    """The parts of one version, the largest first."""

    parts: tuple[TextPart, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def mean_length(self) -> float:
        return sum(part.length for part in self.parts) / max(self.rows, 1)

    @property
    def nbytes(self) -> int:
        return sum(
            part.index.nbytes + (0 if part.is_live is None else part.is_live.nbytes)
            for part in self.parts
        )


def read_full_text(
    tables: TableStorage, handle: TableHandle, column: str, cache: RuntimeCache | None
) -> FullText:
    """The full text of a column, from that of an earlier version where one is cached."""
    if cache is None:
        return _build(tables, handle, column)
    table = TableId(*handle.identity)
    key = FullTextKey(table, column)

    def build() -> FullText:
        previous = PreviousVersion(table, handle, tables, cache)
        found = _carry_over(tables, handle, key, previous, cache)
        previous.remember()
        return found or _build(tables, handle, column)

    return cache.get(key, build)


def _build(tables: TableStorage, handle: TableHandle, column: str) -> FullText:
    return FullText((TextPart(tables.search.build_text_index(handle, column)),))


def _carry_over(
    tables: TableStorage,
    handle: TableHandle,
    key: FullTextKey,
    previous: PreviousVersion,
    cache: RuntimeCache,
) -> FullText | None:
    for each in cache.other_versions(key):
        found = previous.replaced_since(each.table, text_columns(key.name))
        entry = None if found is None else cache.peek(each)
        if found is None or not isinstance(entry, FullText):
            continue
        come, gone = found
        come = come.filter(pc.is_valid(come.column(key.name)))
        note(f"carried the text of {key.name} over from version {each.table.version}", len(come))
        parts = [part.without(gone) for part in entry.parts]
        if come.num_rows:
            parts.append(TextPart(build_text_index(come, key.name)))
        return _join_small(tables, handle, key.name, parts)
    return None


def _join_small(
    tables: TableStorage, handle: TableHandle, column: str, parts: Sequence[TextPart]
) -> FullText | None:
    """The parts, with small ones joined; None when all of them should be one."""
    joined = [part for part in parts if part.rows]
    while len(joined) > 1 and joined[-1].rows * PART_RATIO > joined[-2].rows:
        if len(joined) == 2:
            return None
        row_ids = np.concatenate([joined.pop().row_ids, joined.pop().row_ids])
        joined.append(TextPart(tables.search.index_texts_of(handle, column, row_ids)))
    return FullText(tuple(joined)) if joined else None
