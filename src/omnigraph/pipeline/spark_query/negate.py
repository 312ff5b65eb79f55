"""Negate: `not { … }` as an anti-join with the matches of the inner pattern."""

from __future__ import annotations

from pyspark.sql import functions as fn

from omnigraph.pipeline.spark_query.columns import id_of, variable_of
from omnigraph.pipeline.spark_query.match import Matcher
from omnigraph.pipeline.spark_query.needs import needs_of_match
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.plan import NegationPlan


def without_masked(run: SparkRun, rows: Rows, negation: NegationPlan) -> Rows:
    """Rows whose one outer variable is not among those the inner pattern matches."""
    assert negation.mask_of is not None
    inner = _matcher(run, negation).match_variable(negation.mask_of)
    column = id_of(negation.mask_of)
    return rows.keep(rows.frame.join(inner.frame.select(column), [column], "left_anti"))


def without_matches(run: SparkRun, rows: Rows, negation: NegationPlan) -> Rows:
    """Rows for whose outer variables the inner pattern has no match."""

    outer = frozenset(negation.outer)
    names = [name for name in rows.bindings() if variable_of(name) in outer]
    assert names, "the compiler refuses a `not` without outer variables"
    seeds = Rows(rows.frame.select(*map(fn.col, names)).distinct(), outer)
    inner = _matcher(run, negation).match(seeds)
    ids = [id_of(name) for name in negation.outer]
    return rows.keep(rows.frame.join(inner.frame.select(*ids), ids, "left_anti"))


def _matcher(run: SparkRun, negation: NegationPlan) -> Matcher:
    return Matcher(run, negation.plan, frozenset(needs_of_match(negation.plan)), exists=True)
