"""Frames: DataFrames as the input of a load.

pandas, polars and Arrow frames are in this process already and are cut into slices. A load on Spark
reads large slices from files, since what is sent to tasks goes through the memory of Java. The
partitions of a Spark DataFrame are written by its executors, once, as files that the tasks of the
load read: a plan may give other rows when it runs again, files do not.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.catalog import Catalog, EntityType, arrow_schema
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError, with_suggestion
from omnigraph.pipeline.engine import SparkUse
from omnigraph.pipeline.input_files import open_raw
from omnigraph.pipeline.model import FrameRange, ParquetRange, Range
from omnigraph.pipeline.ranges import Input
from omnigraph.pipeline.spool import Spool, is_parquet
from omnigraph.storage.scratch import DIRECTORY as SCRATCH
from omnigraph.storage.scratch import FRAMES_PREFIX, open_scratch
from omnigraph.storage.tables import TableStorage
from omnigraph.ulids import new_ulid


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """A frame that is already written, one file per partition, in order."""

    paths: tuple[str, ...]


_NOT_ARROW = (pa.ArrowException, OverflowError, TypeError, ValueError)


def fresh_spool(graph_uri: str, storage_options: Mapping[str, str]) -> Spool:
    """Where executors write partitions without a load around them."""
    return Spool(f"{graph_uri}/{SCRATCH}/{FRAMES_PREFIX}{new_ulid()}", storage_options)


@dataclass(frozen=True, slots=True)
class Frames:
    """DataFrames by table key, of types of the catalog."""

    by_key: Mapping[str, Any]
    catalog: Catalog

    @property
    def spark(self) -> SparkUse | None:
        """The session of the first Spark DataFrame among them, if there is one."""
        for frame in self.by_key.values():
            if is_spark(frame):
                return SparkUse(frame.sparkSession)
        return None

    def to_input(self, part_bytes: int, spool: Spool | None, options: Mapping[str, str]) -> Input:
        """Ranges over all frames. With a spool, Spark DataFrames and large frames go there."""
        ranges: list[Range] = []
        size = 0
        for key, frame in self.by_key.items():
            if isinstance(frame, ParquetParts) or is_spark(frame):
                paths = frame.paths if isinstance(frame, ParquetParts) else _spool(frame, spool)
                ranges += _number_rows(key, paths, options)
                size = part_bytes + 1
                continue
            table = to_arrow(frame, self.catalog.entity(key))
            size += table.nbytes
            slices = _slices(key, table, part_bytes)
            is_large = table.nbytes > part_bytes
            ranges += slices if spool is None or not is_large else _spool_slices(slices, spool)
        return Input(ranges, size <= part_bytes, options)


@contextmanager
def spool_frames(
    frames: Frames, tables: TableStorage, part_bytes: int, *, for_spark: bool
) -> Iterator[Input]:
    """The frames as input; what was written of them is removed afterwards."""
    options = tables.storage_options
    if not for_spark:
        yield frames.to_input(part_bytes, None, options)
        return
    scratch = open_scratch(tables, options)
    try:
        spool = Spool(f"{scratch.uri}/frames", options)
        yield frames.to_input(part_bytes, spool, options)
    finally:
        scratch.close()


def table_key(catalog: Catalog, name: str, *, kind: str | None = None) -> str:
    """The table of a type named in a call: a node type, an edge type, or a table key.

    Raises:
        BadRequestError: There is no such type.
    """
    if not isinstance(name, str):
        raise BadRequestError(f"the name of a type is {name!r:.60}, expected a string")
    found = catalog.by_table_key(name)
    if found is None and kind != "edge":
        found = catalog.node(name)
    if found is None and kind != "node":
        found = catalog.edge(name)
    if found is not None:
        return found.table_key
    known = [*catalog.nodes, *catalog.edges]
    raise BadRequestError(with_suggestion(f"unknown type '{name}'", name, known))


def is_spark(frame: object) -> bool:
    return type(frame).__module__.startswith("pyspark.")


def to_arrow(frame: Any, entity: EntityType) -> pa.Table:
    """An in-process frame of a type as an Arrow table.

    Raises:
        BadRequestError: It is none that we know.
    """
    match type(frame).__module__.partition(".")[0], type(frame).__name__:
        case "pyarrow", "Table":
            table = frame
        case "pyarrow", "RecordBatch":
            table = pa.Table.from_batches([frame])
        case "pandas", "DataFrame":
            _require_distinct(frame.columns)
            table = _with_integers(_from_pandas(frame), entity)
        case "polars", "DataFrame":
            table = frame.to_arrow()
        case "polars", "LazyFrame":
            table = frame.collect().to_arrow()
        case _:
            raise BadRequestError(
                f"a {type(frame).__name__} is not a DataFrame — give a Spark, pandas, polars or "
                "Arrow one"
            )
    _require_distinct(table.column_names)
    return table


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except _NOT_ARROW as error:
        raise _unreadable(frame) from error


def _unreadable(frame: Any) -> BadRequestError:
    """Which column of a pandas frame no Arrow column can hold."""
    for name, column in frame.items():
        try:
            pa.array(column)
            str(name).encode()
        except _NOT_ARROW:
            return BadRequestError(
                f"column '{name}' of the DataFrame has values of several types, or of one that "
                "cannot be stored — give it one type; nothing was written"
            )
    return BadRequestError("the DataFrame cannot be read as columns — nothing was written")


def _require_distinct(columns: Iterable[Any]) -> None:
    seen: set[Any] = set()
    for name in columns:
        if name in seen:
            raise BadRequestError(
                f"the DataFrame has more than one column '{name}' — nothing was written"
            )
        seen.add(name)


def _with_integers(table: pa.Table, entity: EntityType) -> pa.Table:
    """Make integers of what pandas made floats because values are missing."""
    schema = arrow_schema(entity)
    for index, name in enumerate(table.column_names):
        column = table[name]
        known = schema.get_field_index(name)
        if known < 0 or not pa.types.is_integer(schema.field(known).type):
            continue
        if pa.types.is_floating(column.type) and column.null_count:
            # A number with a fraction stays as it is, to be refused with its row.
            with suppress(pa.ArrowInvalid):
                table = table.set_column(index, name, column.cast(pa.int64()))
    return table


def _slices(key: str, table: pa.Table, part_bytes: int) -> Iterator[FrameRange]:
    count = max(1, -(-table.nbytes // part_bytes))
    rows = max(1, -(-table.num_rows // count))
    for start in range(0, table.num_rows, rows):
        yield FrameRange(key, start + 1, table.slice(start, rows).combine_chunks())


def _number_rows(
    key: str, paths: Iterable[str], options: Mapping[str, str]
) -> Iterator[ParquetRange]:
    """The files of a frame, its rows counted through all of them."""
    first = 1
    for path in paths:
        yield ParquetRange(key, path, first)
        with open_raw(path, options) as file:
            first += pq.read_metadata(file).num_rows


def _spool_slices(slices: Iterable[FrameRange], spool: Spool) -> Iterator[Range]:
    """Write slices to files; those with a type that Parquet does not have stay as they are."""
    spool.make()
    for number, each in enumerate(slices):
        path = None
        if is_parquet(each.rows.schema):
            path = spool.write(each.rows.to_batches(), number)
        yield each if path is None else ParquetRange(each.table_key, path, each.first)


def _spool(frame: Any, spool: Spool | None) -> list[str]:
    """Have the executors write the partitions of a Spark DataFrame; the files in order."""
    assert spool is not None, "a Spark DataFrame is loaded by its session"
    spool.make()

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = partition_number()
        path, failure = None, None
        try:
            path = spool.write(batches, number)
        except OmnigraphError as error:
            # As a value: a raised one would be retried and lose its type.
            failure = pickle.dumps(error)
        row = {"number": number, "path": path, "failure": failure}
        yield pa.RecordBatch.from_pylist([row], schema=_WRITTEN)

    rows = frame.mapInArrow(write, "number long, path string, failure binary")
    parts = sorted(rows.collect(), key=lambda row: row["number"])
    for part in parts:
        if part["failure"]:
            raise pickle.loads(part["failure"])
    return [part["path"] for part in parts if part["path"]]


_WRITTEN = pa.schema(
    [
        ("number", pa.int64()),
        ("path", pa.utf8()),
        ("failure", pa.binary()),
    ]
)


def partition_number() -> int:
    """Which partition the task of this worker is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0
