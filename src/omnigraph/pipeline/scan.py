"""Scan: the rows of one type at a pinned snapshot, in whatever form a program likes them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.manifest import Snapshot
from omnigraph.pipeline.engine import SparkUse
from omnigraph.storage.handles import ShownColumns, TableHandle
from omnigraph.storage.location import TableLocation, graph_root
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PART_ROWS = 250_000
"""Rows that one task reads: enough to pay for the task, few enough to keep every core busy."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One version of one table, by name."""

    root: str
    storage_options: tuple[tuple[str, str], ...]
    location: TableLocation
    version: int
    shown: ShownColumns | None = None


def pin_handle(tables: TableStorage, handle: TableHandle) -> Pin:
    """What another process needs to open the same version."""
    options = tuple(sorted(tables.storage_options.items()))
    return Pin(str(tables.root), options, handle.location, handle.version, handle.shown)


def open_pinned(pin: Pin) -> tuple[TableStorage, TableHandle]:
    """Open a pinned version in whatever process this is."""
    tables = TableStorage(graph_root(pin.root), dict(pin.storage_options))
    return tables, tables.open_at(pin.location, pin.version, shown=pin.shown)


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one version that one task reads: of some fragments all, or of one some places."""

    fragment_ids: tuple[int, ...]
    places: range | None = None


def cut_parts(tables: TableStorage, handle: TableHandle, rows: int = PART_ROWS) -> list[Part]:
    """Cut a version into parts of about so many rows: small fragments join, large ones split."""
    parts: list[Part] = []
    joined: list[int] = []
    room = rows
    for each in tables.reads.fragments(handle):
        if each.rows > 2 * rows:
            count = -(-each.rows // rows)
            edges = [each.rows * at // count for at in range(count + 1)]
            parts += [Part((each.fragment_id,), range(*ends)) for ends in pairwise(edges)]
            continue
        if joined and each.rows > room:
            parts.append(Part(tuple(joined)))
            joined, room = [], rows
        joined.append(each.fragment_id)
        room -= each.rows
    return [*parts, Part(tuple(joined))] if joined else parts


def require_columns(names: Iterable[str], schema: pa.Schema) -> None:
    """Refuse the first name that is no column.

    Raises:
        BadRequestError: There is such a name.
    """
    for name in names:
        if name not in schema.names:
            raise BadRequestError(f"there is no column '{name}' — the table has {schema.names}")


@dataclass(frozen=True, slots=True)
class TableScan:
    """One table at one version. Immutable: it gives the same rows for ever."""

    table_key: str
    manifest_version: int
    branch: str
    columns: tuple[str, ...] | None = None
    _tables: TableStorage = field(repr=False, kw_only=True)
    _handle: TableHandle = field(repr=False, kw_only=True)
    _spark: SparkUse = field(repr=False, kw_only=True, compare=False)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        names = self.columns if self.columns is not None else self._handle.schema.names
        return pa.schema([self._handle.schema.field(name).remove_metadata() for name in names])

    def select(self, columns: Sequence[str]) -> TableScan:
        """The same rows with some of the columns."""
        require_columns(columns, self._handle.schema)
        return replace(self, columns=tuple(columns))

    def pin(self) -> Pin:
        """What another process needs to read the same rows."""
        return pin_handle(self._tables, self._handle)

    def count_rows(self) -> int:
        return self._handle.row_count

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in table order, in bounded memory."""
        return self._tables.reads.scan_stream(self._handle, self.schema.names, include_blobs=True)

    def to_arrow(self) -> pa.Table:
        return self._tables.reads.scan(self._handle, self.schema.names, include_blobs=True)

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        polars = importlib.import_module("polars")
        return polars.from_arrow(self.to_arrow())

    def to_spark(self, spark: Any = None) -> DataFrame:
        """A Spark DataFrame that reads the same version in parallel."""
        from omnigraph.pipeline.spark_query.source import TableRead, read_frame

        used = spark if spark is not None else self._spark.open()
        columns = tuple((name, name) for name in self.schema.names)
        parts = cut_parts(self._tables, self._handle)
        return read_frame(used, TableRead(self.pin(), columns, self.schema), parts)


def scan_at(
    tables: TableStorage,
    snapshot: Snapshot,
    key: str,
    columns: Sequence[str] | None,
    spark: SparkUse,
) -> TableScan:
    """The table of a key at a snapshot.

    Raises:
        BadRequestError: The snapshot has no such table, or the table no such column.
    """
    entry = snapshot.entries.get(key)
    if entry is None:
        raise BadRequestError(
            f"there is no table '{key}' at manifest version {snapshot.manifest_version}"
        )
    scan = TableScan(
        key,
        snapshot.manifest_version,
        snapshot.branch,
        _tables=tables,
        _handle=open_pin(tables, entry),
        _spark=spark,
    )
    return scan if columns is None else scan.select(columns)
