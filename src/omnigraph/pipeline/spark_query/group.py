"""Group: groups by the values of the keys, and the aggregates and lists of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.ir.expressions import Aggregate, Collect, Grouped, Projected
from omnigraph.pipeline.spark_query.aggregates import aggregate_rows
from omnigraph.pipeline.spark_query.list_sizes import require_room_for_lists
from omnigraph.pipeline.spark_query.lists import GroupList, sort_lists
from omnigraph.pipeline.spark_query.order import unfold
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.pipeline.spark_query.shown import keys_of, shown_name, told_apart, with_shown
from omnigraph.planner.plan import Plan

_MATCHES = "*matches"


def group_rows(run: SparkRun, plan: Plan, rows: Rows) -> DataFrame:
    """One row for each group: its keys and its aggregates."""
    expressions = dict.fromkeys(item.expression for item in plan.returns)
    aggregates = [each for each in expressions if isinstance(each, Aggregate)]
    lists = [GroupList.of(plan, rows, each) for each in expressions if isinstance(each, Collect)]
    if lists:
        rows = replace(rows, frame=unfold(rows, None), is_weighted=False)
    arguments = _arguments([*aggregates, *(each.collect for each in lists)])
    rows = rows.keep(with_shown(run, rows.frame, [*keys_of(plan), *arguments]))
    names = dict.fromkeys(name for key in keys_of(plan) for name in told_apart(key, rows.frame))
    if lists:
        members = [each.member(run) for each in lists]
        rows = rows.keep(require_room_for_lists(run, rows.frame, names, members))
    values = [aggregate_rows(run, rows, each).alias(shown_name(each)) for each in aggregates]
    values += [each.gather(run).alias(each.name) for each in lists]
    groups = rows.frame.groupBy(*(fn.col(f"`{name}`") for name in names))
    frame = groups.agg(*values, fn.count(fn.lit(1)).alias(_MATCHES))
    if any(not isinstance(each, (Aggregate, Collect)) for each in expressions):
        # Without a key there is one group, even of nothing; a given value shows as little as a key.
        frame = frame.where(fn.col(_MATCHES) > 0)
    return sort_lists(frame, lists) if lists else frame


def _arguments(grouped: Sequence[Grouped]) -> Iterator[Projected]:
    for each in grouped:
        yield each.argument
        if isinstance(each, Collect):
            yield from (key for key, _ in each.order)
