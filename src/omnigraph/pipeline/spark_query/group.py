"""Group: groups by the values of the keys, and the aggregates over each."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import TYPE_PROPERTY, Aggregate, Constant, NodeRef, Param, PropertyRef
from omnigraph.pipeline.spark_query.columns import id_of, property_of
from omnigraph.pipeline.spark_query.rows import Rows, extreme_name, known_name, sum_name, summand
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.plan import Plan
from omnigraph.syntax.query_tree import AggregateFunction

Key: TypeAlias = PropertyRef | NodeRef

_EXTREMES = (AggregateFunction.MIN, AggregateFunction.MAX)
_MATCHES = "*matches"


def key_column(key: Key) -> str:
    """The column with the values of a grouping key."""
    return id_of(key.variable) if isinstance(key, NodeRef) else property_of(*_names(key))


def aggregate_column(aggregate: Aggregate, plan: Plan) -> str:
    """The column with the value of an aggregate, by its place in `return`."""
    places = [item.expression for item in plan.returns]
    return f"*aggregate {places.index(aggregate)}"


def keys_of(plan: Plan) -> list[Key]:
    """The grouping keys in projected order; a value that is given makes no groups."""
    return [
        item.expression
        for item in plan.returns
        if isinstance(item.expression, (PropertyRef, NodeRef))
    ]


def group_rows(run: SparkRun, plan: Plan, rows: Rows) -> DataFrame:
    """One row for each group: its keys and its aggregates."""

    aggregates = list(
        dict.fromkeys(
            item.expression for item in plan.returns if isinstance(item.expression, Aggregate)
        )
    )
    values = [
        _aggregate(run, rows, each).alias(aggregate_column(each, plan)) for each in aggregates
    ]
    names = list(dict.fromkeys(name for key in keys_of(plan) for name in _told_apart(key, rows)))
    groups = rows.frame.groupBy(*map(fn.col, names))
    frame = groups.agg(*values, fn.count(fn.lit(1)).alias(_MATCHES))
    if any(not isinstance(item.expression, Aggregate) for item in plan.returns):
        # Without a key there is one group, even of nothing; a given value shows as little as a key.
        frame = frame.where(fn.col(_MATCHES) > 0)
    return frame


def _told_apart(key: Key, rows: Rows) -> list[str]:
    """The columns that a key groups by: an entity by its id, of an interface by its type too."""
    column = property_of(key.variable, TYPE_PROPERTY)
    is_typed = isinstance(key, NodeRef) and column in rows.frame.columns
    return [key_column(key), column] if is_typed else [key_column(key)]


def _aggregate(run: SparkRun, rows: Rows, aggregate: Aggregate) -> Column:

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
        case PropertyRef():
            if argument in rows.carried.sums:
                return fn.col(sum_name(argument)), fn.col(known_name(argument))
            column = fn.col(property_of(*_names(argument)))
            known = fn.when(column.isNotNull(), weight).otherwise(fn.lit(0).cast("long"))
            return summand(column, weight, argument), known
        case _:
            raise AssertionError(f"{argument} is computed")


def _extreme(run: SparkRun, rows: Rows, aggregate: Aggregate) -> Column:

    from omnigraph.pipeline.spark_query.values import to_literal

    best = fn.min if aggregate.function is AggregateFunction.MIN else fn.max
    argument = aggregate.argument
    if isinstance(argument, (Constant, Param)):
        return best(to_literal(run, argument))
    assert isinstance(argument, PropertyRef)
    if aggregate in rows.carried.extremes:
        return best(fn.col(extreme_name(aggregate)))
    return best(fn.col(property_of(*_names(argument))))


def _names(ref: PropertyRef) -> tuple[str, str]:
    return ref.variable, ref.property
