"""List sizes: refuse a list of `collect` that is larger than the memory of what makes it.

Spark makes each list in one task, in the heap of Java, where a list that has no room ends the whole
process. So the rows are computed first and kept on the disks of the executors; tasks then sum how
large the members of each group are, and only after that a list is begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructType

from omnigraph.errors import ResourceLimitError
from omnigraph.index.query_memory import BYTES_VARIABLE, bytes_max
from omnigraph.pipeline.spark_query.run import SparkRun

SMALL_BYTES = 16 * 1024 * 1024
"""Lists of so many bytes in all fit anywhere, all groups of a task at the same time."""
_HEAP_SHARE = 8
"""A list is there as objects, as rows to send, as rows received, and as what workers read."""
_MEMBER_BYTES = 64
_VALUE_BYTES = 24
_FALLBACK = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"


def require_room_for_lists(
    run: SparkRun, frame: DataFrame, keys: Iterable[str], members: Iterable[Column]
) -> DataFrame:
    """The same rows, computed; their members are gathered by these keys.

    Raises:
        ResourceLimitError: A list would be larger than an executor can make.
    """
    kept = run.cut(frame)
    sizes = [measure_value(each, kept.select(each).schema[0].dataType) for each in members]
    size = sum(sizes, fn.lit(_MEMBER_BYTES).cast("long"))
    groups = kept.groupBy(*(fn.col(f"`{name}`") for name in keys)).agg(fn.sum(size).alias("size"))
    found = groups.agg(fn.max("size"), fn.sum("size")).first()
    largest, total = (int(each or 0) for each in found or (0, 0))
    limit = min(bytes_max(), measure_heap(run.spark) // _HEAP_SHARE)
    run.note(f"measured lists: {total} bytes, the largest {largest}")
    if largest > limit:
        raise ResourceLimitError(
            "the number of bytes of one list of `collect`",
            limit=limit,
            actual=largest,
            advice="collect fewer properties, group by more, or add a filter; the limit is an "
            f"eighth of the memory of Java (`spark.executor.memory`, on this machine "
            f"`spark.driver.memory`), and at most {BYTES_VARIABLE}",
        )
    if total > SMALL_BYTES:
        # One list at a time in each task, of groups in order, and not as many as come.
        run.spark.conf.set(_FALLBACK, "1")
    return kept


def measure_heap(spark: Any) -> int:
    """Bytes of the heap in which tasks of a session run."""
    context = spark.sparkContext
    if context.master.partition("[")[0] == "local":
        return int(context._jvm.java.lang.Runtime.getRuntime().maxMemory())
    memory = context.getConf().get("spark.executor.memory", "1g")
    return int(context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(memory))


def measure_value(column: Column, kind: DataType) -> Column:
    """About how many bytes a value is."""
    own = fn.lit(_VALUE_BYTES).cast("long")
    match kind:
        case StringType() | BinaryType():
            return own + fn.coalesce(fn.octet_length(column), fn.lit(0))
        case StructType():
            parts = (measure_value(column[each.name], each.dataType) for each in kind.fields)
            return sum(parts, own)
        case ArrayType():
            element = kind.elementType
            if isinstance(element, (StringType, BinaryType, StructType, ArrayType)):
                sizes = fn.transform(column, lambda each: measure_value(each, element))
                summed = fn.aggregate(sizes, fn.lit(0).cast("long"), lambda one, other: one + other)
            else:
                summed = fn.greatest(fn.size(column), fn.lit(0)).cast("long") * fn.lit(8)
            return own + fn.coalesce(summed, fn.lit(0).cast("long"))
        case _:
            return own
