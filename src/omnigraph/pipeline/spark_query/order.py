"""Order: rows and groups by their keys, ties by what the language says, cut at the limit.

Null is smallest: first in ascending order, last in descending. Lists and objects are compared
element by element, by Spark as by the local engine. Spark keeps the first rows of each task while
it reads when there is a limit, and merges those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import TYPE_PROPERTY, Constant, Param
from omnigraph.pipeline.spark_query.columns import WEIGHT, id_of, property_of
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.shown import keys_of, shown_name, told_apart
from omnigraph.planner.plan import Plan

_LIMIT_MAX = 2**31 - 1


def sort_column(name: str, *, is_descending: bool = False) -> Column:
    """A column as a key of a sort."""
    column = fn.col(f"`{name}`")
    return column.desc_nulls_last() if is_descending else column.asc_nulls_first()


def order_rows(plan: Plan, rows: Rows) -> DataFrame:
    """The rows one by one, in order when there is one, up to the limit."""
    frame = unfold(rows, plan.limit)
    if plan.order:
        bound = [name for name in plan.match.pattern.visible_variables() if name in rows.variables]
        frame = frame.orderBy(*_keys(plan), *map(sort_column, tie_columns(frame, bound)))
    return limit_frame(frame, plan.limit)


def tie_columns(frame: DataFrame, variables: Iterable[str]) -> list[str]:
    """The ids of variables; of equal ids of an interface the type name decides."""
    found = (name for each in variables for name in (id_of(each), property_of(each, TYPE_PROPERTY)))
    return [name for name in found if name in frame.columns]


def order_groups(plan: Plan, frame: DataFrame) -> DataFrame:
    """The groups in order, ties by the values of their keys in projected order."""
    if plan.order:
        ties = [name for key in keys_of(plan) for name in told_apart(key, frame)]
        frame = frame.orderBy(*_keys(plan), *map(sort_column, ties))
    return limit_frame(frame, plan.limit)


def limit_frame(frame: DataFrame, limit: int | None) -> DataFrame:
    """The first rows. Spark counts in 32 bits: a limit beyond that leaves nothing out."""
    return frame if limit is None or limit >= _LIMIT_MAX else frame.limit(limit)


def skip_rows(frame: DataFrame, first: int) -> DataFrame:
    """The rows from this one on; no answer is as long as what Spark cannot count."""
    if not first:
        return frame
    return frame.limit(0) if first > _LIMIT_MAX else frame.offset(first)


def unfold(rows: Rows, limit: int | None) -> DataFrame:
    """The rows one by one, each as often as its weight says; no more of each than the limit."""
    if not rows.is_weighted:
        return rows.frame
    times = fn.col(WEIGHT) if limit is None else fn.least(fn.col(WEIGHT), fn.lit(max(limit, 1)))
    copies = rows.frame.withColumn("*copy", fn.explode(fn.sequence(fn.lit(1).cast("long"), times)))
    return copies.drop("*copy", WEIGHT)


def _keys(plan: Plan) -> Iterator[Column]:
    """The keys of `order` that are not the same in every row."""
    for item in plan.order:
        key = plan.resolve_alias(item.expression)
        if not isinstance(key, (Constant, Param)):
            yield sort_column(shown_name(key), is_descending=item.descending)
