"""Columns: how bindings are named in a frame, and how values travel to Spark and back.

p:id        the node or edge that `$p` is bound to
p:age       a property of it
*weight     how many matches a row stands for
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from omnigraph.pipeline.datasource import spark_batch, spark_schema

WEIGHT = "*weight"
FROM, TO = "*from", "*to"


def id_of(variable: str) -> str:
    """The column with the id that a variable is bound to."""
    return property_of(variable, "id")


def property_of(variable: str, name: str) -> str:
    """The column with a property of a variable."""
    return f"{variable}:{name}"


def variable_of(column: str) -> str:
    """The variable that a column belongs to."""
    return column.partition(":")[0]


def name_by_content(kind: str, expression: object) -> str:
    """The column of what an expression makes: equal expressions have one."""
    return f"*{kind} {sha256(repr(expression).encode()).hexdigest()[:16]}"


def to_struct(schema: pa.Schema) -> StructType:
    """The Spark schema for these Arrow columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    struct: StructType = from_arrow_schema(spark_schema(schema))
    return struct


def to_frame(spark: Any, table: pa.Table) -> DataFrame:
    """A table of the local engine as a frame."""
    wanted = spark_schema(table.schema)
    batches = [spark_batch(batch, wanted) for batch in table.to_batches()]
    frame: DataFrame = spark.createDataFrame(pa.Table.from_batches(batches, wanted))
    return frame


def to_local(column: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> Any:
    """A column from Spark in the type that the local engine has for it."""
    if isinstance(column, pa.ChunkedArray):
        chunks = [to_local(chunk, wanted) for chunk in column.chunks]
        return pa.chunked_array(chunks, wanted)
    if column.type == wanted:
        return column
    if pa.types.is_date64(wanted):
        # A cast to a date would cut the time of day off.
        ticks = pc.cast(column, pa.timestamp("ms", tz="UTC")).view(pa.int64())
        return ticks.view(pa.date64())
    if pa.types.is_struct(wanted):
        fields = [to_local(column.field(n), field.type) for n, field in enumerate(wanted)]
        return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=_mask(column))
    if pa.types.is_list(wanted):
        values = to_local(column.values, wanted.value_type)
        plain = pa.ListArray.from_arrays(column.offsets, values, mask=_mask(column))
        return plain.cast(wanted)
    return pc.cast(column, wanted)


def _mask(column: pa.Array) -> pa.BooleanArray | None:
    return column.is_null() if column.null_count else None
