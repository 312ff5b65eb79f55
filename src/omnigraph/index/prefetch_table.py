"""Prefetch of one table: its columns, row ids, words and vectors that queries use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.index.cache import RuntimeCache, Sized
from omnigraph.index.carry_over import Carriable
from omnigraph.index.columns import Column, RowIds
from omnigraph.index.id_index import IdIndex
from omnigraph.index.keys import FullTextKey, IdIndexKey, Key, NumbersKey, RowIdsKey, VectorsKey
from omnigraph.index.table_view import TableView
from omnigraph.index.vector_parts import read_vectors
from omnigraph.storage.tables import TableStorage


@dataclass(frozen=True, slots=True)
class TablePrefetch:
    """Derives what is in use of earlier versions, before a query has to wait for it.

    `language_of` says which language the text of a column is in. Unless `all_of_it` is wanted,
    what cannot be carried over is left to the query.
    """

    view: TableView
    tables: TableStorage
    cache: RuntimeCache
    language_of: Callable[[str], str]
    all_of_it: bool

    def is_in_use(self) -> bool:
        """Whether queries use something that is derived of this table alone."""
        table = self.view.id
        of_table: list[Key] = [RowIdsKey(table), IdIndexKey(table), *self.view.column_keys.values()]
        return any(map(self.cache.is_in_use, chain(of_table, self._texts(), self._vectors())))

    def run(self) -> None:
        """Derive all of it."""
        view = self.view
        needs_row_ids = self._is_due(RowIdsKey(view.id), RowIds)
        needs_ids = self._is_due(IdIndexKey(view.id), IdIndex)
        for name, key in view.column_keys.items():
            if not view.is_too_wide(name) and self._is_due(key, Column):
                view.column(name)
                view.lookup.prefetch(name, all_of_it=self.all_of_it)
            if self._is_due(NumbersKey(view.id, name), Column):
                view.numbers(name)
        if needs_row_ids:
            view.row_ids()
        if needs_ids:
            view.id_index()
        for text in self._texts():
            if self.cache.is_in_use(text):
                view.full_text(text.name, text.language).prefetch()
        for vectors in self._vectors():
            if self.cache.is_in_use(vectors):
                read_vectors(self.tables, view.handle, vectors.name, self.cache)

    def _is_due(self, key: Carriable, kind: type[Sized]) -> bool:
        if not self.cache.is_in_use(key):
            return False
        return self.all_of_it or self.view.previous.find(key, kind) is not None

    def _texts(self) -> Iterator[FullTextKey]:
        for name, each in self.view.types.items():
            if pa.types.is_string(each):
                yield FullTextKey(self.view.id, name, self.language_of(name))

    def _vectors(self) -> Iterator[VectorsKey]:
        for name, each in self.view.types.items():
            if pa.types.is_fixed_size_list(each):
                yield VectorsKey(self.view.id, name)
