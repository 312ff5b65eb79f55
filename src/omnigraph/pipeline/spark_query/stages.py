"""Stages: the best rows of a first match, kept as a frame from which the next one goes on."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as fn

from omnigraph.executor.stages import count_rows
from omnigraph.ir.expressions import SCORE_PROPERTY, Bm25, Nearest, PropertyRef, Ranking, Rrf
from omnigraph.pipeline.spark_query.columns import WEIGHT, property_of, variable_of
from omnigraph.pipeline.spark_query.computed import COMPUTED, computed_column, with_computed
from omnigraph.pipeline.spark_query.identity import enter_types
from omnigraph.pipeline.spark_query.match import Matcher
from omnigraph.pipeline.spark_query.order import order_rows
from omnigraph.pipeline.spark_query.rank import SCORE, order_by_ranking
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.planner.plan import Plan, StagePlan


def run_stages(run: SparkRun, plan: Plan, needs: frozenset[PropertyRef]) -> Rows | None:
    """The rows that the match of a plan starts from; None without stages.

    `needs` is what later parts read of them.
    """
    rows: Rows | None = None
    parts = [*(stage.plan for stage in plan.stages), plan]
    for stage, after in zip(plan.stages, parts[1:], strict=True):
        rows = _run(run, stage, needs, rows)
        outer, inner = stage.plan.match.pattern, after.match.pattern
        rows = rows.keep(enter_types(run.local.catalog, outer, inner, rows.frame))
    return rows


def _run(
    run: SparkRun, stage: StagePlan, needs: frozenset[PropertyRef], seeds: Rows | None
) -> Rows:
    plan = replace(stage.plan, limit=count_rows(run.local, stage))
    found = Matcher(run, plan.match, needs).match(seeds)
    # A row is a combination of variables, however many matches it stands for.
    found = replace(found, frame=found.frame.drop(WEIGHT), is_weighted=False)
    if stage.repeats:
        found = found.keep(found.frame.distinct())
    key = plan.order[0].expression
    if isinstance(key, (Nearest, Bm25, Rrf)):
        frame, score = order_by_ranking(run, plan, key, found), _ranking_score(key)
    else:
        keys = [each.expression for each in plan.order]
        frame = order_rows(plan, found.keep(with_computed(run, found.frame, keys)))
        score = _key_score(plan)
    names = {*plan.match.pattern.visible_variables()} | (seeds.variables if seeds else set())
    kept = [f"`{name}`" for name in found.bindings() if variable_of(name) in names]
    shown = []
    if stage.score is not None:
        shown = [score.alias(property_of(stage.score, SCORE_PROPERTY))]
        names.add(stage.score)
    return Rows(run.cut(frame.select(*kept, *shown)), frozenset(names))


def _ranking_score(ranking: Ranking) -> Column:
    # Distances are compared as squares.
    return fn.sqrt(SCORE) if isinstance(ranking, Nearest) else fn.col(SCORE)


def _key_score(plan: Plan) -> Column:
    key = plan.order[0].expression
    if isinstance(key, COMPUTED):
        return fn.col(f"`{computed_column(key)}`")
    assert isinstance(key, PropertyRef)
    return fn.col(f"`{property_of(key.variable, key.property)}`")
