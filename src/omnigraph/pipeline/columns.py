"""Columns: the key columns that checks look at, of loaded rows and of committed ones.

Loaded rows carry a row number, which orders them as the input does and leads to the record. Of
committed rows only those that matter are fetched: by index when few are asked for, by a scan of
the one column otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.manifest import TableEntry
from omnigraph.pipeline.model import LoadMode, StagedPart
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.projection import ROW_ADDRESS
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.unattached import read_unattached
from omnigraph.write.fork import open_pin

ROW_NUMBER = "#row_number"
ITEM_ROWS = 1 << 20
PROBE_IDS_MAX = 20_000
PROBE_SHARE = 20
"""Probe by value while the table has this many times more rows than are asked for."""

_SCAN_ROWS = 1 << 20
_PROBED = ("id", "src", "dst")
"""Columns that have an index, so that asking for values costs by the value."""
_ROW_BITS = 32

RowNumbers = npt.NDArray[np.int64]
OneOrMany = TypeVar("OneOrMany", int, RowNumbers)


def split_row_number(row_number: OneOrMany) -> tuple[OneOrMany, OneOrMany]:
    """The number of the staged part that holds each row, and the row in that part."""
    return row_number >> _ROW_BITS, row_number & ((1 << _ROW_BITS) - 1)


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What a check has to know: the staged parts in input order, and the pins to check against.

    An exchange reads keys of up to `item_rows` rows at a time, or of one part.
    """

    catalog: Catalog
    mode: LoadMode
    parts: tuple[StagedPart, ...]
    entries: Mapping[str, TableEntry]
    storage_options: Mapping[str, str]
    root: str
    item_rows: int = ITEM_ROWS

    def list_table_keys(self) -> list[str]:
        """The tables that the load has rows for."""
        return list(dict.fromkeys(staged_part.table_key for staged_part in self.parts))

    def list_parts(self, table_key: str) -> list[int]:
        """The numbers of the staged parts of a table."""
        return [number for number, each in enumerate(self.parts) if each.table_key == table_key]

    def is_overwritten(self, table_key: str) -> bool:
        """Whether the load replaces all rows of a table."""
        return self.mode is LoadMode.OVERWRITE and table_key in self.list_table_keys()

    def has_made_ids(self, table_key: str) -> bool:
        """Whether every id of the loaded rows was made by us, and so is new."""
        return all(each.has_made_ids for each in self.parts if each.table_key == table_key)

    def find_record(self, row_number: int) -> tuple[int, str, int]:
        """The record that a row was: its range, its table key, and its ordinal there."""
        number, row = split_row_number(row_number)
        part = self.parts[number]
        return part.range_index, part.table_key, part.ordinal(row)


@dataclass(slots=True)
class KeyColumns:
    """Reads key columns of a load and of the tables that it is checked against."""

    plan: CheckPlan
    tables: TableStorage

    def read_loaded(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Columns of the loaded rows, with their row numbers, in input order."""
        parts = list(self.read_parts(self.plan.list_parts(table_key), columns))
        if parts:
            return pa.concat_tables(parts)
        fields = [(name, pa.utf8()) for name in columns]
        return pa.schema([*fields, (ROW_NUMBER, pa.int64())]).empty_table()

    def read_parts(self, numbers: Iterable[int], columns: Sequence[str]) -> Iterator[pa.Table]:
        """The same of some staged parts."""
        for number in numbers:
            staged_part = self.plan.parts[number]
            if staged_part.rows is not None:
                parts = [staged_part.rows.select(list(columns))]
            else:
                options = self.plan.storage_options
                parts = [read_unattached(each, columns, options) for each in staged_part.fragments]
            row = number << _ROW_BITS
            for part in parts:
                row_numbers = np.arange(row, row + part.num_rows)
                row += part.num_rows
                yield part.append_column(ROW_NUMBER, pa.array(row_numbers))

    def read_committed(
        self, table_key: str, columns: Sequence[str], *, among: pa.Array | None, by: str
    ) -> pa.Table:
        """Committed rows with their addresses: all, or those whose `by` is `among` the values."""
        handle = self.open(table_key)
        names = list(dict.fromkeys([*columns, by]))
        empty = _schema_of(handle, names).empty_table()
        if handle.row_count == 0 or (among is not None and len(among) == 0):
            return empty
        if among is not None and by in _PROBED and _is_few(among, handle.row_count):
            found = self.tables.reads.scan_addresses(handle, names, IsIn(by, among))
            return pa.concat_tables([empty, *_shape(found, empty.schema)])
        chunks = self.scan_committed(table_key, names)
        if among is not None:
            chunks = (chunk.filter(pc.is_in(chunk[by], among)) for chunk in chunks)
        return pa.concat_tables([empty, *chunks])

    def scan_committed(
        self, table_key: str, columns: Sequence[str], fragments: Sequence[int] | None = None
    ) -> Iterator[pa.Table]:
        """Columns and addresses of all committed rows, or of some fragments, in table order."""
        handle = self.open(table_key)
        batches = self.tables.reads.scan_addresses(handle, columns, fragment_ids=fragments)
        return _chunks(batches, _schema_of(handle, columns))

    def open(self, table_key: str) -> TableHandle:
        """The table, where it is checked against."""
        return open_pin(self.tables, self.plan.entries[table_key])


_ADDRESS_FIELD = pa.field(ROW_ADDRESS, pa.uint64())


def _schema_of(handle: TableHandle, names: Sequence[str]) -> pa.Schema:
    fields = (handle.schema.field(name).remove_metadata() for name in names)
    return pa.schema([*fields, _ADDRESS_FIELD])


def _is_few(among: pa.Array, row_count: int) -> bool:
    return len(among) <= PROBE_IDS_MAX and len(among) * PROBE_SHARE <= row_count


def _shape(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    for batch in batches:
        columns = [batch.column(name) for name in schema.names]
        yield pa.Table.from_arrays(columns, schema=schema)


def _chunks(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches joined into larger tables: a membership test pays for its set once a table."""
    pending: list[pa.Table] = []
    rows = 0
    for part in _shape(batches, schema):
        pending.append(part)
        rows += part.num_rows
        if rows >= _SCAN_ROWS:
            yield pa.concat_tables(pending)
            pending, rows = [], 0
    if pending:
        yield pa.concat_tables(pending)
