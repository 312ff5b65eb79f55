"""Result size: refuse a result that is too large for Java, while tasks make it.

What a task gives is in the heap of Java as a whole before anything counts it: as batches, as the
answer of the task, and as that to send. So the task counts, and stops when it is too much.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.errors import ResourceLimitError
from omnigraph.pipeline.spark_query.list_sizes import measure_heap

_COPIES = 3


def bounded_result(frame: DataFrame) -> DataFrame:
    """The same frame, in which no task makes more bytes than there is room for."""
    spark = frame.sparkSession
    cores = max(1, spark.sparkContext.defaultParallelism)
    limit = measure_heap(spark) // (_COPIES * cores)
    return frame.mapInArrow(partial(_count, limit), frame.schema)


def _count(limit: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > limit:
            raise ResourceLimitError(
                "the number of bytes that one task adds to the result",
                limit=limit,
                actual=size,
                advice="use `.to_spark()` and write the rows from there, or add a limit; the limit "
                "is a third of the memory of Java (`spark.driver.memory`), shared by its tasks",
            )
        yield batch
