"""Columns: the key columns that checks look at, of loaded rows and of committed ones.

Loaded rows carry a place, which orders them as the input does and leads back to the record. Of
committed rows only those that matter are fetched: by index when few are asked for, by a scan of
the one column otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Catalog, EntityType
from omnigraph.manifest import TableEntry
from omnigraph.pipeline.buckets import Bucket
from omnigraph.pipeline.model import LoadMode, Piece
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.loose import ADDRESS, read_loose
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin

PLACE = "#place"
PROBE_IDS_MAX = 20_000
PROBE_SHARE = 20
"""Probe by value while the table has this many times more rows than are asked for."""

_SCAN_ROWS = 1 << 20
_PROBED = ("id", "src", "dst")
"""Columns that have an index, so that asking for values costs by the value."""
_ROW_BITS = 32

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What a check has to know: the loaded pieces in input order, and the pins to check against."""

    catalog: Catalog
    mode: LoadMode
    pieces: tuple[Piece, ...]
    entries: Mapping[str, TableEntry]
    storage_options: Mapping[str, str]
    root: str

    def loaded_keys(self) -> list[str]:
        """The tables that the load has rows for."""
        return list(dict.fromkeys(piece.table_key for piece in self.pieces))

    def entity(self, table_key: str) -> EntityType:
        found = self.catalog.by_table_key(table_key)
        assert found is not None, table_key
        return found

    def has_made_ids(self, table_key: str) -> bool:
        """Whether every id of the loaded rows was made by us, and so is new."""
        return all(each.has_made_ids for each in self.pieces if each.table_key == table_key)

    def piece_of(self, place: int) -> tuple[Piece, int]:
        """The piece, and the row in it, that a place stands for."""
        return self.pieces[place >> _ROW_BITS], place & ((1 << _ROW_BITS) - 1)


@dataclass(slots=True)
class KeyColumns:
    """Reads key columns for one bucket of a check. `gone` are places of rows that lost."""

    plan: CheckPlan
    tables: TableStorage
    bucket: Bucket = field(default_factory=Bucket)
    gone: Mapping[str, Places] = field(default_factory=dict)

    def loaded(self, table_key: str, columns: Sequence[str], by: str) -> pa.Table:
        """Columns of the loaded rows in this bucket, with their places, in input order."""
        names = list(dict.fromkeys([*columns, by]))
        entity_rows = [
            self.bucket.of(part, by) for part in self._parts(table_key, names) if part.num_rows
        ]
        if entity_rows:
            table = pa.concat_tables(entity_rows)
        else:
            fields = [(name, pa.utf8()) for name in names]
            table = pa.schema([*fields, (PLACE, pa.int64())]).empty_table()
        gone = self.gone.get(table_key)
        if gone is not None and len(gone):
            table = table.filter(pc.invert(pc.is_in(table[PLACE], pa.array(gone))))
        return table

    def _parts(self, table_key: str, columns: list[str]) -> Iterator[pa.Table]:
        for number, piece in enumerate(self.plan.pieces):
            if piece.table_key != table_key:
                continue
            if piece.rows is not None:
                parts = [piece.rows.select(columns)]
            else:
                options = self.plan.storage_options
                parts = [read_loose(each, columns, options) for each in piece.fragments]
            row = number << _ROW_BITS
            for part in parts:
                places = np.arange(row, row + part.num_rows)
                row += part.num_rows
                yield part.append_column(PLACE, pa.array(places))

    def open(self, table_key: str) -> TableHandle:
        return open_pin(self.tables, self.plan.entries[table_key])

    def committed(
        self, table_key: str, columns: Sequence[str], *, among: pa.Array | None, by: str
    ) -> pa.Table:
        """Committed rows of this bucket whose `by` is `among` the given, with their addresses."""
        handle = self.open(table_key)
        names = list(dict.fromkeys([*columns, by]))
        empty = pa.schema(
            [*(handle.schema.field(name).remove_metadata() for name in names), _ADDRESS_FIELD]
        ).empty_table()
        if handle.row_count == 0 or (among is not None and len(among) == 0):
            return empty
        if among is not None and by in _PROBED and _is_few(among, handle.row_count):
            found = self.tables.scan_addresses(handle, names, IsIn(by, among))
            return pa.concat_tables([empty, *_shaped(found, empty.schema)])
        kept = [empty]
        for chunk in _chunks(self.tables.scan_addresses(handle, names), empty.schema):
            part = self.bucket.of(chunk, by)
            kept.append(part if among is None else part.filter(pc.is_in(part[by], among)))
        return pa.concat_tables(kept)


_ADDRESS_FIELD = pa.field(ADDRESS, pa.uint64())


def _is_few(among: pa.Array, row_count: int) -> bool:
    return len(among) <= PROBE_IDS_MAX and len(among) * PROBE_SHARE <= row_count


def _shaped(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    for batch in batches:
        columns = [batch.column(name) for name in schema.names]
        yield pa.Table.from_arrays(columns, schema=schema)


def _chunks(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches joined into larger tables: a membership test pays for its set once a table."""
    pending: list[pa.Table] = []
    rows = 0
    for part in _shaped(batches, schema):
        pending.append(part)
        rows += part.num_rows
        if rows >= _SCAN_ROWS:
            yield pa.concat_tables(pending)
            pending, rows = [], 0
    if pending:
        yield pa.concat_tables(pending)
