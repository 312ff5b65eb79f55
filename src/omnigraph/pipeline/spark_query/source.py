"""Source: a table at a pinned version as a frame, read and filtered by tasks.

Only the columns that are named leave the store, and only the rows that meet every predicate. A
task opens the version itself; what it is told travels with its code, so no task opens the graph.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator
from functools import partial
from operator import getitem
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.datasource import spark_batch, spark_schema
from omnigraph.pipeline.scan import Part, Pin, open_pinned
from omnigraph.pipeline.spark_query.checks import Check
from omnigraph.pipeline.spark_query.columns import to_struct
from omnigraph.pipeline.spark_runner import freeze_modules
from omnigraph.storage.predicates import And, Predicate
from omnigraph.types import repeat

BATCH_ROWS = 65_536


def _pickle_exactly(scalar: pa.Scalar) -> tuple[Any, ...]:
    return getitem, (repeat(scalar, 1), 0)


# Arrow pickles a scalar as a Python value, and a Date64 as one without its time of day.
for _kind in (pa.Date64Scalar, pa.ListScalar):
    copyreg.pickle(_kind, _pickle_exactly)


@dataclass(frozen=True, slots=True)
class TableRead:
    """What tasks read of one version: `columns` by name, each under the name it has in rows."""

    pin: Pin
    columns: tuple[tuple[str, str], ...]
    schema: pa.Schema
    pushed: tuple[Predicate, ...] = ()
    checked: tuple[Check, ...] = ()

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        """The rows of one part that meet every predicate, under the names they have in rows."""
        tables, handle = open_pinned(self.pin)
        names = [name for name, _ in self.columns]
        read = [*names, *(name for check in self.checked for name in check.columns())]
        predicate = And(self.pushed) if self.pushed else None
        for batch in tables.reads.scan_stream(
            handle,
            list(dict.fromkeys(read)),
            predicate,
            include_blobs=True,
            batch_rows=BATCH_ROWS,
            fragment_ids=part.fragment_ids,
            places=part.places,
        ):
            kept = self._check(batch)
            if kept.num_rows:
                yield pa.RecordBatch.from_arrays(
                    [kept.column(name) for name in names], schema=self.schema
                )

    def _check(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for check in self.checked:
            batch = batch.filter(pa.array(check.holds(batch.column, batch.num_rows)))
        return batch


def read_frame(spark: Any, read: TableRead, parts: list[Part]) -> DataFrame:
    """The rows of a table as a frame, one task for each part."""
    wanted = spark_schema(read.schema)
    return map_parts(spark, read, parts, partial(spark_batch, wanted=wanted), read.schema)


def map_parts(
    spark: Any,
    read: TableRead,
    parts: list[Part],
    change: Callable[[pa.RecordBatch], pa.RecordBatch],
    schema: pa.Schema,
) -> DataFrame:
    """What tasks make of each batch of a table, as a frame of this schema."""
    frame: DataFrame
    struct = to_struct(schema)
    if not parts:
        frame = spark.createDataFrame([], struct)
        return frame
    numbers = spark.range(0, len(parts), 1, len(parts))
    frame = numbers.mapInArrow(partial(read_parts, read, tuple(parts), change), struct)
    return frame


def read_parts(
    read: TableRead,
    parts: tuple[Part, ...],
    change: Callable[[pa.RecordBatch], pa.RecordBatch],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from map(change, read.batches(parts[number]))
    freeze_modules()
