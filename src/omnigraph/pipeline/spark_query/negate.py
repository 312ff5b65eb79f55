"""Negate: `not { … }` as an anti-join with the matches of the inner pattern."""

from __future__ import annotations

from pyspark.sql import functions as fn

from omnigraph.pipeline.spark_query.blocks import seeds_of
from omnigraph.pipeline.spark_query.identity import (
    enter_types,
    equal_columns,
    identities_of,
    with_type,
)
from omnigraph.pipeline.spark_query.match import Matcher
from omnigraph.pipeline.spark_query.needs import needs_of_match
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.pattern import Pattern
from omnigraph.planner.plan import NegationPlan

_OUTER = "*outer "


def without_masked(run: SparkRun, outer: Pattern, rows: Rows, negation: NegationPlan) -> Rows:
    """Rows whose one outer variable is not among those the inner pattern matches."""
    variable = negation.mask_of
    assert variable is not None
    inner = _matcher(run, negation).match_variable(variable)
    return _without(run, outer, rows, inner, negation)


def without_matches(run: SparkRun, outer: Pattern, rows: Rows, negation: NegationPlan) -> Rows:
    """Rows for whose outer variables the inner pattern has no match."""
    if not seeds_of(rows, negation.outer).bindings():
        found = _matcher(run, negation).match().frame.limit(1).select(fn.lit(1).alias("*any"))
        return rows.keep(rows.frame.join(found, fn.col("*any") == fn.lit(1), "left_anti"))
    rows = rows.keep(run.cut(rows.frame))
    seeds = seeds_of(rows, negation.outer)
    inner = negation.plan.pattern
    entered = seeds.keep(enter_types(run.local.catalog, outer, inner, seeds.frame))
    return _without(run, outer, rows, _matcher(run, negation).match(entered), negation)


def _without(
    run: SparkRun, outer: Pattern, rows: Rows, matched: Rows, negation: NegationPlan
) -> Rows:
    catalog, frame = run.local.catalog, matched.frame
    for name in negation.outer:
        if name in outer.nodes or name in outer.given:
            frame = with_type(catalog, outer, negation.plan.pattern, name, frame)
    names = identities_of(catalog, outer, negation.outer)
    if outer.nullable.isdisjoint(negation.outer):
        found = frame.select(*(f"`{name}`" for name in names))
        return rows.keep(rows.frame.join(found, names, "left_anti"))
    found = frame.select(*(fn.col(f"`{name}`").alias(_OUTER + name) for name in names))
    condition = equal_columns(rows.frame, found, names, _OUTER)
    return rows.keep(rows.frame.join(found, condition, "left_anti"))


def _matcher(run: SparkRun, negation: NegationPlan) -> Matcher:
    return Matcher(run, negation.plan, frozenset(needs_of_match(negation.plan)), exists=True)
