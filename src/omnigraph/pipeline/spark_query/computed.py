"""Computed: expressions as columns of a frame, by the functions of the local engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.errors import ResourceLimitError
from omnigraph.executor.evaluate import evaluate
from omnigraph.executor.filters import BYTES_PER_PART, NoColumns
from omnigraph.index.query_memory import BYTES_HELD, little_room
from omnigraph.ir.expressions import (
    Arithmetic,
    Call,
    Case,
    Computed,
    Minus,
    Null,
    Projected,
    SortKey,
    Truth,
)
from omnigraph.ir.variables import expression_refs
from omnigraph.pipeline.datasource import spark_batch, spark_schema
from omnigraph.pipeline.spark_query.checks import BatchColumns, Filled, fill_values
from omnigraph.pipeline.spark_query.columns import name_by_content, property_of, to_local, to_struct
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.pipeline.spark_query.values import scalar_to_literal

COMPUTED = (Null, Arithmetic, Minus, Call, Case, Truth)


def computed_column(expression: Computed) -> str:
    """The column of a frame that holds an expression."""
    return name_by_content("value", expression)


def with_computed(
    run: SparkRun, frame: DataFrame, expressions: Sequence[Projected | SortKey]
) -> DataFrame:
    """The frame with a column for each of the expressions that is computed and not there yet."""
    wanted: dict[str, Computed] = {}
    for each in expressions:
        if not isinstance(each, COMPUTED) or computed_column(each) in frame.columns:
            continue
        if any(expression_refs(each)):
            wanted[computed_column(each)] = each
        else:
            frame = frame.withColumn(computed_column(each), _to_constant(run, each))
    if not wanted:
        return frame
    added = pa.schema([(name, each.type.arrow_type()) for name, each in wanted.items()])
    types = {}
    for each in wanted.values():
        for ref in expression_refs(each):
            types[property_of(ref.variable, ref.property)] = ref.type.arrow_type()
    filled = fill_values(tuple(wanted.values()), run.local.values, by_variable=True)
    placeholders = [
        fn.lit(None).cast(field.dataType).alias(field.name) for field in to_struct(added).fields
    ]
    schema = frame.select("*", *placeholders).schema
    return frame.mapInArrow(partial(_add_columns, wanted, added, types, filled), schema)


def _to_constant(run: SparkRun, expression: Computed) -> Column:
    """What reads no property is the same in every row: also in a frame that has no column."""
    (value,) = evaluate(expression, NoColumns(run.local.values))
    return scalar_to_literal(value.cast(expression.type.arrow_type()))


def _add_columns(
    wanted: dict[str, Computed],
    added: pa.Schema,
    types: dict[str, pa.DataType],
    filled: Filled,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from in_parts(batch, partial(_add_to_batch, wanted, added, types, filled))


def _add_to_batch(
    wanted: dict[str, Computed],
    added: pa.Schema,
    types: dict[str, pa.DataType],
    filled: Filled,
    batch: pa.RecordBatch,
) -> pa.RecordBatch:
    local = {name: to_local(batch.column(name), type_) for name, type_ in types.items()}
    columns = BatchColumns(filled, local.__getitem__, batch.num_rows)
    values = [
        evaluate(each, columns).cast(field.type)
        for each, field in zip(wanted.values(), added, strict=True)
    ]
    computed = spark_batch(pa.RecordBatch.from_arrays(values, schema=added), spark_schema(added))
    for name, column in zip(computed.schema.names, computed.columns, strict=True):
        batch = batch.append_column(name, column)
    return batch


def in_parts(
    batch: pa.RecordBatch, change: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What is made of a batch: of long texts in several, each of which fits a worker."""
    if batch.num_rows > 1:
        try:
            with little_room(BYTES_PER_PART):
                changed = change(batch)
        except ResourceLimitError as error:
            if error.resource != BYTES_HELD:
                raise
        else:
            yield changed
            return
        half = batch.num_rows // 2
        yield from in_parts(batch.slice(0, half), change)
        yield from in_parts(batch.slice(half), change)
        return
    yield change(batch)
