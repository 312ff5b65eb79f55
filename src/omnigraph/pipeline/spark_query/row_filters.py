"""Row filters: predicates over several variables, decided on rows that bind them all.

Spark decides what it decides as the language does: equal types that are no floats, and texts.
Everything else goes through the functions of the local engine, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import Compare, CompareKind, Predicate, PropertyRef
from omnigraph.ir.variables import predicate_refs
from omnigraph.pipeline.spark_query.checks import Check, to_check
from omnigraph.pipeline.spark_query.columns import property_of, to_local
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.pattern import Pattern

_OPERATORS = {
    CompareKind.EQUAL: "__eq__",
    CompareKind.NOT_EQUAL: "__ne__",
    CompareKind.LESS: "__lt__",
    CompareKind.LESS_EQUAL: "__le__",
    CompareKind.GREATER: "__gt__",
    CompareKind.GREATER_EQUAL: "__ge__",
    CompareKind.TEXT_CONTAINS: "contains",
    CompareKind.STARTS_WITH: "startswith",
}


def keep_rows(run: SparkRun, pattern: Pattern, rows: Rows, predicate: Predicate) -> Rows:
    """The rows for which a predicate is TRUE."""
    condition = _to_condition(predicate)
    if condition is not None:
        return rows.keep(rows.frame.where(condition))
    check = to_check(predicate, run.local.values, by_variable=True)
    types = {
        property_of(ref.variable, ref.property): ref.type.arrow_type()
        for ref in predicate_refs(predicate)
    }
    frame = rows.frame.mapInArrow(partial(_keep_batches, check, types), rows.frame.schema)
    return rows.keep(frame)


def to_join_condition(predicate: Predicate, left: Rows, right: Rows) -> Column | None:
    """An equality between both sides that Spark can join by; None when it is none."""
    match predicate:
        case Compare(PropertyRef() as one, CompareKind.EQUAL, PropertyRef() as other):
            sides = {one.variable, other.variable}
            if len(sides & left.variables) == 1 and len(sides & right.variables) == 1:
                return _to_condition(predicate)
    return None


def _to_condition(predicate: Predicate) -> Column | None:

    match predicate:
        case Compare(PropertyRef() as left, kind, PropertyRef() as right) if (
            kind in _OPERATORS and _is_exact(left, right)
        ):
            column = fn.col(property_of(left.variable, left.property))
            other = fn.col(property_of(right.variable, right.property))
            condition: Column = getattr(column, _OPERATORS[kind])(other)
            return condition
    return None


def _is_exact(left: PropertyRef, right: PropertyRef) -> bool:
    one, other = left.type, right.type
    is_plain = not one.is_list and not other.is_list and not one.is_vector
    return is_plain and one.scalar is other.scalar and not one.scalar.is_float


def _keep_batches(
    check: Check, types: dict[str, pa.DataType], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = {name: to_local(batch.column(name), type_) for name, type_ in types.items()}
        yield batch.filter(pa.array(check.holds(columns.__getitem__, batch.num_rows)))
