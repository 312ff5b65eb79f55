"""Text parts: find, make and merge the indexes that cover a text column of one version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.index.addressed import make_addresses
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.full_text import FullText
from omnigraph.index.keys import FullTextKey, TableId
from omnigraph.index.layout import Layout, read_layout
from omnigraph.index.merge_texts import merge_text_indexes
from omnigraph.index.notes import note
from omnigraph.index.parts import Choice, choose_whole, cover, merge_small, place_part
from omnigraph.index.sealed_file import Damaged
from omnigraph.index.text_files import TextColumn, TextFiles
from omnigraph.index.text_index import ADDRESS, TextIndex, build_text_index
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.projection import column_type
from omnigraph.storage.tables import TableStorage

PART_ROWS_MAX = 1 << 19
"""Rows whose words are counted at once, and documents from which on a part is not merged."""
MERGED_AT_ONCE_MAX = 1 << 14
"""Documents that are merged while a query waits; more are merged in the background."""
SAVED_ROWS_MIN = 512
"""Rows whose words are counted as quickly as a file is found."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, eq=False)
class TextReader:
    """The full text of one column of one version, in one language."""

    tables: TableStorage
    handle: TableHandle
    name: str
    language: str
    cache: RuntimeCache

    def ask(self, question: Callable[[FullText], _T]) -> _T:
        """Ask the full text; once more, of the rows alone, if a file of it is damaged."""
        key = self._key()
        try:
            return question(self.cache.get(key, lambda: self._build(key)))
        except Damaged as error:
            note(f"derived the text of {self.name} anew: a file was damaged")
            self.cache.forget_slot(key)
            if self._files is not None:
                self._files.remove(error)
            return question(self.cache.get(key, self._build_anew))

    def prefetch(self) -> None:
        """Have the full text ready for the next question."""
        key = self._key()
        self.cache.get(key, lambda: self._build(key))

    def _key(self) -> FullTextKey:
        return FullTextKey(TableId(*self.handle.identity), self.name, self.language)

    @property
    def _files(self) -> TextFiles | None:
        return None if self.cache.derived is None else self.cache.derived.texts

    def _column(self) -> TextColumn:
        number = dict(self.tables.ancestry.field_ids(self.handle)).get(self.name, -1)
        table = "-".join(self.handle.location.uri.rsplit("/", 2)[-2:])
        return TextColumn(table, number, self.language)

    def _build(self, key: FullTextKey) -> FullText:
        if not pa.types.is_string(column_type(self.handle, self.name)):
            raise BadRequestError(f"'{self.name}' is not a String column: it has no text to search")
        column = self._column()
        cached = [
            found
            for each in self.cache.other_versions(key)
            if isinstance(found := self.cache.peek(each), FullText) and found.column == column
        ]
        layout = read_layout(self.tables, self.handle, cached[0].layout if cached else None)
        if self.name in self.handle.absent:
            return FullText((), layout, column)
        known = list({id(each): each for found in cached for each in found.shared}.values())
        if self._files is not None:
            known += self._files.list_merged(column)
        chosen, missing = cover(layout, known)
        if sum(layout.fragments[each].physical_rows for each in missing) >= SAVED_ROWS_MIN:
            chosen, missing = cover(layout, [*known, *self._map_files(column, layout, known)])
        made = self._make_parts(column, [layout.fragments[each] for each in missing])
        return self._assemble(column, layout, [*chosen, *made])

    def _build_anew(self) -> FullText:
        """Use no file and nothing that is cached."""
        column = self._column()
        layout = read_layout(self.tables, self.handle)
        made = self._make_parts(column, list(layout.fragments.values()))
        return self._assemble(column, layout, list(made))

    def _assemble(
        self, column: TextColumn, layout: Layout, choices: list[Choice[TextIndex]]
    ) -> FullText:
        merged = merge_small(choices, partial(self._merge, column), unmerged_from=PART_ROWS_MAX)
        return FullText(tuple(place_part(each, layout) for each in merged), layout, column)

    def _map_files(
        self, column: TextColumn, layout: Layout, known: Sequence[TextIndex]
    ) -> list[TextIndex]:
        """The indexes on disk that this version has data files of."""
        if self._files is None:
            return []
        held = {each.fragments for each in known}
        found = [
            self._files.load(path)
            for path, covered in self._files.find(column).items()
            if covered not in held and not layout.fragments.keys().isdisjoint(covered)
        ]
        mapped = [each for each in found if each is not None]
        note(f"mapped the text of {self.name}", sum(map(len, mapped)))
        return mapped

    def _make_parts(
        self, column: TextColumn, fragments: Sequence[Fragment]
    ) -> Iterator[Choice[TextIndex]]:
        """Count the words of fragments, of as many at once as memory allows."""
        for group in _group(fragments):
            index = self._count_words(group)
            self._save(column, index)
            yield choose_whole(index)

    def _count_words(self, fragments: Sequence[Fragment]) -> TextIndex:
        names = list(dict.fromkeys(["id", self.name]))
        rows = self.tables.reads.scan_physical(self.handle, names, fragments)
        addresses = [
            make_addresses(number, np.arange(each.physical_rows))
            for number, each in enumerate(fragments)
        ]
        rows = rows.append_column(ADDRESS, pa.array(np.concatenate(addresses)))
        rows = rows.filter(pc.is_valid(rows.column(self.name)))
        note(f"counted the words of {self.name}", rows.num_rows)
        return build_text_index(rows, self.name, [each.files for each in fragments], self.language)

    # Merging

    def _merge(self, column: TextColumn, pair: Sequence[Choice[TextIndex]]) -> TextIndex | None:
        """Merge small indexes at once; have others merged later."""
        indexes = [each.index for each in pair]
        if sum(each.size for each in pair) > MERGED_AT_ONCE_MAX:
            if self._files is not None:
                self._files.merge_later(column, partial(_merge, pair), indexes)
            return None
        made = _merge(pair)
        self._save(column, made, indexes)
        return made

    def _save(
        self, column: TextColumn, index: TextIndex, replaced: Sequence[TextIndex] = ()
    ) -> None:
        if self._files is not None and len(index) >= SAVED_ROWS_MIN:
            self._files.save_later(column, index, replaced)


def _merge(choices: Iterable[Choice[TextIndex]]) -> TextIndex:
    return merge_text_indexes([(each.index, each.chosen) for each in choices])


def _group(fragments: Iterable[Fragment]) -> Iterator[list[Fragment]]:
    """The fragments in groups of bounded size."""
    group: list[Fragment] = []
    rows = 0
    for each in fragments:
        if group and rows + each.physical_rows > PART_ROWS_MAX:
            yield group
            group, rows = [], 0
        group.append(each)
        rows += each.physical_rows
    if group:
        yield group
