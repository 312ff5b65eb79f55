"""Columns: the key columns that checks look at, of loaded rows and of committed ones.

Loaded rows carry a row number, which orders them as the input does and leads to the record. Of
committed rows only those that matter are fetched: by index when few are asked for, by a scan of
the one column otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.manifest import TableEntry
from omnigraph.pipeline.buckets import Bucket
from omnigraph.pipeline.model import LoadMode, StagedPart
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.projection import ROW_ADDRESS
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.unattached import read_unattached
from omnigraph.write.fork import open_pin
from omnigraph.write.integrity import UniqueGroup, tuple_keys

ROW_NUMBER = "#row_number"
PROBE_IDS_MAX = 20_000
PROBE_SHARE = 20
"""Probe by value while the table has this many times more rows than are asked for."""

_SCAN_ROWS = 1 << 20
_PROBED = ("id", "src", "dst")
"""Columns that have an index, so that asking for values costs by the value."""
_ROW_BITS = 32

RowNumbers = npt.NDArray[np.int64]


def split_row_number(row_number: int) -> tuple[int, int]:
    """The number of the staged part that holds a row, and the row in that part."""
    return row_number >> _ROW_BITS, row_number & ((1 << _ROW_BITS) - 1)


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What a check has to know: the staged parts in input order, and the pins to check against."""

    catalog: Catalog
    mode: LoadMode
    parts: tuple[StagedPart, ...]
    entries: Mapping[str, TableEntry]
    storage_options: Mapping[str, str]
    root: str

    def list_table_keys(self) -> list[str]:
        """The tables that the load has rows for."""
        return list(dict.fromkeys(staged_part.table_key for staged_part in self.parts))

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
    """Reads key columns for one bucket of a check."""

    plan: CheckPlan
    tables: TableStorage
    bucket: Bucket = field(default_factory=Bucket)

    def read_loaded(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Columns of the loaded rows in this bucket, with their row numbers, in input order."""
        parts = [self._select(table_key, columns, part) for part in self._parts(table_key, columns)]
        if parts:
            return pa.concat_tables(parts)
        fields = [(name, pa.utf8()) for name in columns]
        return pa.schema([*fields, (ROW_NUMBER, pa.int64())]).empty_table()

    def _select(self, table_key: str, columns: Sequence[str], part: pa.Table) -> pa.Table:
        """The rows of this bucket: rows with equal values are always in one bucket."""
        if self.bucket.count == 1 or part.num_rows == 0:
            return part
        entity = self.plan.catalog.entity(table_key)
        keys = tuple_keys(entity, UniqueGroup(entity.name, tuple(columns)), part)
        return self.bucket.select(part, pa.chunked_array([keys]))

    def _parts(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        for number, staged_part in enumerate(self.plan.parts):
            if staged_part.table_key != table_key:
                continue
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
        """Committed rows with their addresses: those whose `by` is `among` the given values.

        Without values, those of this bucket.
        """
        handle = open_pin(self.tables, self.plan.entries[table_key])
        names = list(dict.fromkeys([*columns, by]))
        empty = pa.schema(
            [*(handle.schema.field(name).remove_metadata() for name in names), _ADDRESS_FIELD]
        ).empty_table()
        if handle.row_count == 0 or (among is not None and len(among) == 0):
            return empty
        if among is not None and by in _PROBED and _is_few(among, handle.row_count):
            found = self.tables.reads.scan_addresses(handle, names, IsIn(by, among))
            return pa.concat_tables([empty, *_shape(found, empty.schema)])
        kept = [empty]
        for chunk in _chunks(self.tables.reads.scan_addresses(handle, names), empty.schema):
            if among is None:
                kept.append(self.bucket.select(chunk, chunk[by]))
            else:
                kept.append(chunk.filter(pc.is_in(chunk[by], among)))
        return pa.concat_tables(kept)


_ADDRESS_FIELD = pa.field(ROW_ADDRESS, pa.uint64())


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
