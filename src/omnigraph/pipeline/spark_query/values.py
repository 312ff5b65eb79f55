"""Values: a literal or parameter as a column that is the same in every row."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import Constant, Param
from omnigraph.pipeline.spark_query.columns import to_struct
from omnigraph.pipeline.spark_query.run import SparkRun


def to_literal(run: SparkRun, value: Constant | Param) -> Column:
    """The value in the type that its result column has on Spark."""
    return scalar_to_literal(run.local.values.to_column_type(value))


def scalar_to_literal(scalar: pa.Scalar) -> Column:
    """A value of the local engine as a column."""
    struct = to_struct(pa.schema([("value", scalar.type)])).fields[0].dataType
    if pa.types.is_date64(scalar.type) and scalar.is_valid:
        return fn.timestamp_millis(fn.lit(scalar.cast(pa.int64()).as_py()))
    if isinstance(scalar, (pa.ListScalar, pa.FixedSizeListScalar)) and scalar.is_valid:
        return fn.array(*[_item(item) for item in scalar.values]).cast(struct)
    return fn.lit(scalar.as_py()).cast(struct)


def _item(item: pa.Scalar) -> Column:

    if pa.types.is_date64(item.type) and item.is_valid:
        return fn.timestamp_millis(fn.lit(item.cast(pa.int64()).as_py()))
    return fn.lit(item.as_py())
