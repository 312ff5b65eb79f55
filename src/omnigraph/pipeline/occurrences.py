"""Occurrences: where each key is in a column, so that rows with equal keys travel as one.

A key that half of all rows have is one row per task in an exchange, not millions in one bucket.
Blocks of occurrences are merged in any order.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass

Numbers = npt.NDArray[np.int64]

NO_ROW = np.iinfo(np.int64).max
KEY, FIRST = "key", "first"
_SECOND, _LAST, _COUNT = "second", "last", "count"


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Each key once: its first, second and last row, and how many rows have it.

    `second` is `NO_ROW` where there is none.
    """

    keys: pa.StringArray = field(repr=False)
    first: Numbers
    second: Numbers
    last: Numbers
    count: Numbers

    @classmethod
    def of(cls, keys: pa.StringArray, rows: Numbers) -> Occurrences:
        """The occurrences in a column; null is no key."""
        if keys.null_count:
            is_key = keys.is_valid()
            keys, rows = keys.filter(is_key), rows[is_key.to_numpy(zero_copy_only=False)]
        return cls.of_distinct(keys, rows)._merge()

    @classmethod
    def of_distinct(cls, keys: pa.StringArray, rows: Numbers) -> Occurrences:
        """Keys that are known to differ."""
        none = np.full(len(keys), NO_ROW)
        return cls(keys, rows, none, rows, np.ones(len(keys), np.int64))

    @classmethod
    def read(cls, table: pa.Table | None) -> Occurrences:
        """The occurrences in all blocks of a bucket, merged; no table, no keys."""
        if table is None:
            return cls.of_distinct(pa.array([], pa.utf8()), np.empty(0, np.int64))
        first = table[FIRST].to_numpy()
        found = cls(
            to_array(table[KEY]),
            first,
            _numbers(table, _SECOND, np.full(len(first), NO_ROW)),
            _numbers(table, _LAST, first),
            _numbers(table, _COUNT, np.ones(len(first), np.int64)),
        )
        return found._merge()

    def to_table(self) -> pa.Table:
        """The form in which they travel: short when no key repeats."""
        columns = {KEY: self.keys, FIRST: self.first}
        if len(self.keys) and int(self.count.max()) > 1:
            columns |= {_SECOND: self.second, _LAST: self.last, _COUNT: self.count}
        return pa.table(columns)

    def select(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Occurrences:
        """Some of the keys, by position or by mask."""
        at = np.flatnonzero(places) if places.dtype == np.bool_ else places
        numbers = (self.first, self.second, self.last, self.count)
        return Occurrences(self.keys.take(pa.array(at)), *(each[at] for each in numbers))

    def _merge(self) -> Occurrences:
        encoded = pc.dictionary_encode(self.keys)
        size = len(encoded.dictionary)
        if size == len(self.keys):
            return self
        codes = encoded.indices.to_numpy()
        first, second = np.full(size, NO_ROW), np.full(size, NO_ROW)
        last, count = np.full(size, -1), np.zeros(size, np.int64)
        np.minimum.at(first, codes, self.first)
        np.maximum.at(last, codes, self.last)
        np.add.at(count, codes, self.count)
        is_first = self.first == first[codes]
        np.minimum.at(second, codes, np.where(is_first, self.second, self.first))
        return Occurrences(encoded.dictionary, first, second, last, count)


def to_array(column: pa.ChunkedArray) -> pa.StringArray:
    """A column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _numbers(table: pa.Table, name: str, default: Numbers) -> Numbers:
    """A column of numbers; `default` where it, or a block, does not have it."""
    if name not in table.column_names:
        return default
    column = table[name]
    is_there = column.is_valid().to_numpy()
    return np.where(is_there, column.fill_null(0).to_numpy(), default)
