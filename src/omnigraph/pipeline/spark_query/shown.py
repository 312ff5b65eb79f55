"""Shown: whatever a query projects, as a column of a frame.

a property, a node     the column that rows bind it in
a literal              the same value in every row
what is computed       a column of its own, by the functions of the local engine
an object              a struct of properties, null where its variable is
an aggregate, a score  a column that grouping or ranking has added
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import (
    TYPE_PROPERTY,
    Aggregate,
    Bm25,
    Collect,
    Constant,
    Nearest,
    NodeRef,
    ObjectRef,
    Param,
    Projected,
    PropertyRef,
    Rrf,
    SortKey,
)
from omnigraph.pipeline.spark_query.columns import id_of, name_by_content, property_of
from omnigraph.pipeline.spark_query.computed import COMPUTED, computed_column, with_computed
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.pipeline.spark_query.values import to_literal
from omnigraph.planner.plan import Plan


def shown_name(expression: Projected | SortKey) -> str:
    """The column that has an expression, unless it is a literal or a parameter."""
    match expression:
        case PropertyRef(variable, name):
            return property_of(variable, name)
        case NodeRef(variable):
            return id_of(variable)
        case ObjectRef():
            return name_by_content("object", expression)
        case Aggregate() | Collect():
            return name_by_content("aggregate", expression)
        case Nearest() | Bm25() | Rrf():
            return name_by_content("score", expression)
        case _:
            assert isinstance(expression, COMPUTED), f"{expression} is in no column"
            return computed_column(expression)


def told_apart(key: Projected, frame: DataFrame) -> list[str]:
    """The columns by which values differ: an entity's id, and of an interface its type too."""
    name = shown_name(key)
    if isinstance(key, NodeRef):
        column = property_of(key.variable, TYPE_PROPERTY)
        return [name, column] if column in frame.columns else [name]
    return [name]


def keys_of(plan: Plan) -> list[Projected]:
    """The grouping keys in projected order; a value that is given makes no groups."""
    no_keys = (Aggregate, Collect, Constant, Param)
    return [item.expression for item in plan.returns if not isinstance(item.expression, no_keys)]


def shown_column(run: SparkRun, expression: Projected | SortKey) -> Column:
    """The value of an expression, of a frame that has been through `with_shown`."""
    if isinstance(expression, (Constant, Param)):
        return to_literal(run, expression)
    return fn.col(f"`{shown_name(expression)}`")


def with_shown(
    run: SparkRun, frame: DataFrame, expressions: Sequence[Projected | SortKey]
) -> DataFrame:
    """The frame with a column for everything that is computed or an object."""
    objects = {shown_name(each): each for each in expressions if isinstance(each, ObjectRef)}
    made = {name: _to_struct(each) for name, each in objects.items() if name not in frame.columns}
    frame = frame.withColumns(made) if made else frame
    return with_computed(run, frame, expressions)


def _to_struct(expression: ObjectRef) -> Column:
    fields = [
        fn.col(f"`{property_of(ref.variable, ref.property)}`").alias(ref.property)
        for ref in expression.fields
    ]
    known = fn.col(f"`{property_of(expression.id.variable, expression.id.property)}`").isNotNull()
    return fn.when(known, fn.struct(*fields))
