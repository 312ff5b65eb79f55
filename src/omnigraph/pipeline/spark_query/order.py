"""Order: rows and groups by their keys, ties by what the language says, cut at the limit.

Null is smallest: first in ascending order, last in descending. Spark keeps the first rows of
each task while it reads when there is a limit, and merges those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.dataclass import dataclass
from omnigraph.index.columns import to_comparable
from omnigraph.ir.expressions import (
    TYPE_PROPERTY,
    Aggregate,
    NodeRef,
    Projected,
    PropertyRef,
    SortKey,
)
from omnigraph.pipeline.spark_query.columns import WEIGHT, id_of, property_of, to_local
from omnigraph.pipeline.spark_query.computed import COMPUTED, computed_column
from omnigraph.pipeline.spark_query.group import Key, aggregate_column, key_column, keys_of
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.planner.plan import Plan

_LIMIT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Sort:
    """One key. `list_type` is the local type of a list, which Spark would put in another order."""

    column: str
    is_descending: bool = False
    list_type: pa.DataType | None = None

    @property
    def shown(self) -> str:
        return self.column if self.list_type is None else f"*text {self.column}"

    def to_column(self) -> Column:
        column = fn.col(f"`{self.shown}`")
        return column.desc_nulls_last() if self.is_descending else column.asc_nulls_first()


def order_rows(plan: Plan, rows: Rows) -> DataFrame:
    """The rows one by one, in order when there is one, up to the limit."""
    frame = unfold(rows, plan.limit)
    if plan.order:
        ties = [name for name in plan.match.pattern.visible_variables() if name in rows.variables]
        frame = _sort(frame, [*_keys(plan), *map(_Sort, tie_columns(frame, ties))])
    return limit_frame(plan, frame)


def tie_columns(frame: DataFrame, variables: Iterable[str]) -> list[str]:
    """The ids of variables; of equal ids of an interface the type name decides."""
    found = (name for each in variables for name in (id_of(each), property_of(each, TYPE_PROPERTY)))
    return [name for name in found if name in frame.columns]


def order_groups(plan: Plan, frame: DataFrame) -> DataFrame:
    """The groups in order, ties by the values of their keys in projected order."""
    if plan.order:
        frame = _sort(frame, [*_keys(plan), *(_key(key) for key in keys_of(plan))])
    return limit_frame(plan, frame)


def limit_frame(plan: Plan, frame: DataFrame) -> DataFrame:
    """The first rows. Spark counts in 32 bits: a limit beyond that leaves nothing out."""
    if plan.limit is None or plan.limit >= _LIMIT_MAX:
        return frame
    return frame.limit(plan.limit)


def unfold(rows: Rows, limit: int | None) -> DataFrame:
    """The rows one by one, each as often as its weight says; no more of each than the limit."""
    if not rows.is_weighted:
        return rows.frame
    times = fn.col(WEIGHT) if limit is None else fn.least(fn.col(WEIGHT), fn.lit(max(limit, 1)))
    copies = rows.frame.withColumn("*copy", fn.explode(fn.sequence(fn.lit(1).cast("long"), times)))
    return copies.drop("*copy", WEIGHT)


def _sort(frame: DataFrame, keys: Sequence[_Sort]) -> DataFrame:
    lists = {key.column: key.list_type for key in keys if key.list_type is not None}
    if lists:
        added = frame.select("*", *(fn.lit("").alias(f"*text {name}") for name in lists))
        frame = frame.mapInArrow(partial(_with_list_texts, lists), added.schema)
    return frame.orderBy(*(key.to_column() for key in keys)) if keys else frame


def _with_list_texts(
    lists: dict[str, pa.DataType], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Each list also as the text that the local engine orders it by."""
    for batch in batches:
        for name, wanted in lists.items():
            texts = to_comparable(to_local(batch.column(name), wanted))
            batch = batch.append_column(f"*text {name}", texts)
        yield batch


def _keys(plan: Plan) -> Iterator[_Sort]:
    """The keys of `order` that are not the same in every row."""
    for item in plan.order:
        key: Projected | SortKey = plan.resolve_alias(item.expression)
        if isinstance(key, Aggregate):
            yield _Sort(aggregate_column(key, plan), item.descending)
        elif isinstance(key, (PropertyRef, NodeRef)):
            yield _key(key, is_descending=item.descending)
        elif isinstance(key, COMPUTED):
            yield _Sort(computed_column(key), item.descending)


def _key(key: Key, *, is_descending: bool = False) -> _Sort:
    list_type = None
    if isinstance(key, PropertyRef) and (key.type.is_list or key.type.is_vector):
        list_type = key.type.arrow_type()
    return _Sort(key_column(key), is_descending, list_type)
