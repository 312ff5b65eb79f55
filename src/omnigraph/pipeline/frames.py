"""Frames: DataFrames as the input of a load.

pandas, polars and Arrow frames are in this process already and are cut into slices. The partitions
of a Spark DataFrame are written by its executors, once, as files that the tasks of the load read:
a plan may give other rows when it runs again, files do not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.catalog import Catalog
from omnigraph.errors import BadRequestError, did_you_mean
from omnigraph.pipeline.model import FrameRange, ParquetRange, Range
from omnigraph.pipeline.ranges import Input
from omnigraph.storage.scratch import DIRECTORY as SCRATCH
from omnigraph.storage.scratch import FRAMES_PREFIX, open_scratch
from omnigraph.storage.tables import TableStorage

_ROWS_PER_GROUP = 100_000


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """A frame that is written already, one file a partition, in order."""

    paths: tuple[str, ...]


def frames_directory(graph_uri: str) -> str:
    """A fresh directory for partitions that executors write without a load around them."""
    return f"{graph_uri}/{SCRATCH}/{FRAMES_PREFIX}{uuid4().hex}"


@dataclass(frozen=True, slots=True)
class Frames:
    """DataFrames by table key."""

    by_key: Mapping[str, Any]

    @property
    def spark(self) -> Any:
        """The session of the first Spark DataFrame among them, if there is one."""
        for frame in self.by_key.values():
            if is_spark(frame):
                return frame.sparkSession
        return None

    def to_input(self, part_bytes: int, directory: str) -> Input:
        """Ranges over all frames. Spark DataFrames are written below `directory` first."""
        ranges: list[Range] = []
        size = 0
        for key, frame in self.by_key.items():
            if isinstance(frame, ParquetParts) or is_spark(frame):
                paths = (
                    frame.paths if isinstance(frame, ParquetParts) else _spooled(frame, directory)
                )
                ranges += [ParquetRange(key, path) for path in paths]
                size = part_bytes + 1
                continue
            table = to_arrow(frame)
            size += table.nbytes
            ranges += _slices(key, table, part_bytes)
        return Input(ranges, is_small=size <= part_bytes)


@contextmanager
def spooled(frames: Frames, tables: TableStorage, part_bytes: int) -> Iterator[Input]:
    """The frames as input; what executors wrote of them is removed afterwards."""
    if frames.spark is None:
        yield frames.to_input(part_bytes, "")
        return
    scratch = open_scratch(tables, tables.storage_options)
    try:
        yield frames.to_input(part_bytes, f"{scratch.uri}/frames")
    finally:
        scratch.close()


def table_key(catalog: Catalog, name: str, *, kind: str | None = None) -> str:
    """The table of a type named in a call: a node type, an edge type, or a table key.

    Raises:
        BadRequestError: There is no such type.
    """
    found = catalog.by_table_key(name)
    if found is None and kind != "edge":
        found = catalog.node(name)
    if found is None and kind != "node":
        found = catalog.edge(name)
    if found is not None:
        return found.table_key
    hint = did_you_mean(name, [*catalog.nodes, *catalog.edges])
    raise BadRequestError(f"unknown type '{name}'" + (f" — {hint}" if hint else ""))


def is_spark(frame: object) -> bool:
    return type(frame).__module__.startswith("pyspark.")


def to_arrow(frame: Any) -> pa.Table:
    """An in-process frame as an Arrow table.

    Raises:
        BadRequestError: It is none that we know.
    """
    match type(frame).__module__.partition(".")[0]:
        case "pyarrow":
            if isinstance(frame, pa.Table):
                return frame
            if isinstance(frame, pa.RecordBatch):
                return pa.Table.from_batches([frame])
        case "pandas":
            return pa.Table.from_pandas(frame, preserve_index=False)
        case "polars":
            table: pa.Table = frame.to_arrow()
            return table
        case _:
            pass
    raise BadRequestError(
        f"a {type(frame).__name__} is not a DataFrame — give a Spark, pandas, polars or Arrow one"
    )


def _slices(key: str, table: pa.Table, part_bytes: int) -> Iterator[Range]:
    count = max(1, -(-table.nbytes // part_bytes))
    rows = max(1, -(-table.num_rows // count))
    for start in range(0, table.num_rows, rows):
        yield FrameRange(key, start + 1, table.slice(start, rows).combine_chunks())


def _spooled(frame: Any, directory: str) -> list[str]:
    """Have the executors write the partitions of a Spark DataFrame; the files in order."""
    os.makedirs(directory, exist_ok=True)

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        path = write_batches(batches, directory, number)
        yield pa.RecordBatch.from_pydict({"number": [number], "path": [path]})

    rows = frame.mapInArrow(write, "number long, path string").collect()
    return [row["path"] for row in sorted(rows, key=lambda row: row["number"]) if row["path"]]


def write_batches(batches: Iterable[pa.RecordBatch], directory: str, number: int) -> str | None:
    """Write the batches of one partition to one file, whole or not at all; None for no rows."""
    path = os.path.join(directory, f"{number:06d}-{uuid4().hex}.parquet")
    writer: pq.ParquetWriter | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if writer is None:
            writer = pq.ParquetWriter(f"{path}.partial", batch.schema)
        writer.write_batch(batch, row_group_size=_ROWS_PER_GROUP)
    if writer is None:
        return None
    writer.close()
    os.replace(f"{path}.partial", path)
    return path
