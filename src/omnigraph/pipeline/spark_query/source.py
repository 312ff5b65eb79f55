"""Source: a table at a pinned version as a frame, read and filtered by tasks.

Only the columns that are named leave the store, and only the rows that meet every predicate. A
task opens the version itself; what it is told travels with its code, so no task opens the graph.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator
from functools import partial
from operator import getitem
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import BoolArray
from omnigraph.pipeline.datasource import spark_batch, spark_schema
from omnigraph.pipeline.scan import Part, Pin, open_pinned
from omnigraph.pipeline.spark_query.columns import WEIGHT, to_struct
from omnigraph.pipeline.spark_runner import freeze_modules
from omnigraph.storage.predicates import And, Predicate
from omnigraph.types import repeat

BATCH_ROWS = 65_536
WIDE_BATCH_ROWS = 8_192
_IDS = ("id", "")
"""Of a binding, and of the ends of an edge, which are no property of a variable."""

Batches: TypeAlias = Iterator[pa.RecordBatch]


class BatchCheck(Protocol):
    """Decides which rows of a batch are kept, by some columns of the table."""

    def columns(self) -> list[str]: ...

    def holds(self, column: Callable[[str], pa.Array], rows: int) -> BoolArray: ...


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
    checked: tuple[BatchCheck, ...] = ()

    def batches(self, part: Part) -> Batches:
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
            batch_rows=WIDE_BATCH_ROWS if self._is_wide() else BATCH_ROWS,
            fragment_ids=part.fragment_ids,
            places=part.places,
        ):
            kept = self._check(batch)
            if kept.num_rows:
                yield pa.RecordBatch.from_arrays(
                    [kept.column(name) for name in names], schema=self.schema
                )

    def _is_wide(self) -> bool:
        """Whether texts or lists of any length are read, and not only ids."""
        return any(
            shown.partition(":")[2] not in _IDS and not pa.types.is_primitive(field.type)
            for (shown, field) in zip((name for _, name in self.columns), self.schema, strict=True)
        )

    def _check(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for check in self.checked:
            batch = batch.filter(pa.array(check.holds(batch.column, batch.num_rows)))
        return batch


def read_frame(spark: Any, read: TableRead, parts: list[Part]) -> DataFrame:
    """The rows of a table as a frame, one task for each part."""
    change = partial(spark_batch, wanted=spark_schema(read.schema))
    return map_parts(spark, read, parts, partial(map, change), read.schema)


def count_frame(spark: Any, read: TableRead, parts: list[Part]) -> DataFrame:
    """How often each value of the one column of a read occurs: counted by each task alone."""
    schema = read.schema.append(pa.field(WEIGHT, pa.int64()))
    return map_parts(spark, read, parts, partial(_count_values, schema), schema)


def _count_values(schema: pa.Schema, batches: Batches) -> Batches:
    rows = pa.Table.from_batches(batches, pa.schema(list(schema)[:1]))
    counted = rows.group_by(schema.names[0], use_threads=False).aggregate([([], "count_all")])
    yield from counted.rename_columns(schema.names).cast(schema).to_batches()


def map_parts(
    spark: Any,
    read: TableRead,
    parts: list[Part],
    change: Callable[[Batches], Batches],
    schema: pa.Schema,
) -> DataFrame:
    """What tasks make of the batches of each part of a table, as a frame of this schema."""
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
    change: Callable[[Batches], Batches],
    numbers: Batches,
) -> Batches:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from change(read.batches(parts[number]))
    freeze_modules()
