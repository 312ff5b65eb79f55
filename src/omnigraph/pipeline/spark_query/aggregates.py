"""Aggregates: one value of all rows of a group, each row as often as it has matches."""

from __future__ import annotations

from typing import assert_never

from pyspark.sql import Column
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import Aggregate, Constant, NodeRef, Param, PropertyRef
from omnigraph.ir.wide import is_wide
from omnigraph.pipeline.spark_query.rows import Rows, extreme_name, known_name, sum_name, summand
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.pipeline.spark_query.shown import shown_column, told_apart
from omnigraph.syntax.query_tree import AggregateFunction


def aggregate_rows(run: SparkRun, rows: Rows, aggregate: Aggregate) -> Column:
    """The value of an aggregate for each group; arguments that are computed are columns of rows."""
    if aggregate.is_distinct:
        return _count_distinct(run, rows, aggregate)
    match aggregate.function:
        case AggregateFunction.COUNT:
            return fn.coalesce(fn.sum(_summands(run, rows, aggregate)[1]), fn.lit(0)).cast("long")
        case AggregateFunction.SUM | AggregateFunction.AVG:
            value, known = _summands(run, rows, aggregate)
            total, count = fn.sum(value), fn.sum(known)
            if aggregate.function is AggregateFunction.AVG:
                total = fn.try_divide(total, count.cast("double"))
            return fn.when(count > 0, total)
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return _extreme(run, rows, aggregate)
        case _:
            assert_never(aggregate.function)


def _count_distinct(run: SparkRun, rows: Rows, aggregate: Aggregate) -> Column:
    argument = aggregate.argument
    if isinstance(argument, (Constant, Param)):
        return fn.count_distinct(shown_column(run, argument))
    return fn.count_distinct(*(fn.col(f"`{name}`") for name in told_apart(argument, rows.frame)))


def _summands(run: SparkRun, rows: Rows, aggregate: Aggregate) -> tuple[Column, Column]:
    """Per row: the sum of the argument over its matches, and how many of them have one."""
    argument, weight = aggregate.argument, rows.weight()
    match argument:
        case NodeRef():
            return weight.cast("double"), weight
        case Constant() | Param():
            value = run.local.values.scalar(argument).as_py()
            if value is None:
                return fn.lit(0.0), fn.lit(0).cast("long")
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return weight.cast("double") * fn.lit(float(value if is_number else 0)), weight
        case PropertyRef() if argument in rows.carried.sums:
            return fn.col(sum_name(argument)), fn.col(known_name(argument))
        case _:
            column = shown_column(run, argument)
            known = fn.when(column.isNotNull(), weight).otherwise(fn.lit(0).cast("long"))
            return summand(column, weight, argument.type), known


def _extreme(run: SparkRun, rows: Rows, aggregate: Aggregate) -> Column:
    best = fn.min if aggregate.function is AggregateFunction.MIN else fn.max
    if not is_wide(aggregate) and aggregate in rows.carried.extremes:
        return best(fn.col(extreme_name(aggregate)))
    return best(shown_column(run, aggregate.argument))
