"""Rank: rows in the order that `nearest`, `bm25` or `rrf` gives to the nodes of one variable.

Tasks score the rows of their parts, by the functions of the local engine; Spark keeps the best of
each and merges them. Relevance needs totals over all rows: a first job brings them together. Ranks
that are fused are global, so they are numbered after the merge.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from omnigraph.dataclass import dataclass
from omnigraph.executor.ranking import fusion_constant, query_of
from omnigraph.executor.score_columns import distances_of
from omnigraph.executor.search import check_fusion_constant
from omnigraph.ir.expressions import Bm25, Nearest, Ranking, Rrf
from omnigraph.ir.variables import ranking_variable
from omnigraph.pipeline.spark_query.columns import id_of
from omnigraph.pipeline.spark_query.order import limit_frame, tie_columns, unfold
from omnigraph.pipeline.spark_query.rows import Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.pipeline.spark_query.shown import shown_name
from omnigraph.pipeline.spark_query.source import TableRead, map_parts
from omnigraph.pipeline.spark_query.texts import TextTotals, count_texts, score_texts
from omnigraph.planner.plan import Plan
from omnigraph.storage.predicates import IsNull, Not
from omnigraph.storage.tokens import query_forms
from omnigraph.storage.vectors import square_distances, to_components, to_query_vector

SCORE, _FIRST, _SECOND = "*score", "*first", "*second"


def order_by_ranking(run: SparkRun, plan: Plan, ranking: Ranking, rows: Rows) -> DataFrame:
    """The rows of ranked nodes, best first. Rows that cannot be ranked are left out."""
    variable = ranking_variable(ranking)
    column = id_of(variable)
    if isinstance(ranking, Rrf):
        scores, best = _fuse(run, plan, ranking, rows.frame.select(column).distinct())
    else:
        scores, best = _scores(run, plan, ranking), _best(ranking, column)
    frame = unfold(rows, plan.limit).join(scores, [column])
    if isinstance(ranking, Rrf):
        frame = frame.withColumn(shown_name(ranking), fn.col(SCORE))
    edges = plan.match.pattern.edge_types()
    names = [name for name in plan.match.pattern.visible_variables() if name in rows.variables]
    names.sort(key=lambda name: name not in edges)
    return limit_frame(frame.orderBy(*best, *map(fn.col, tie_columns(frame, names))), plan.limit)


def with_scores(
    run: SparkRun, plan: Plan, frame: DataFrame, rankings: Iterable[Nearest | Bm25]
) -> DataFrame:
    """The frame with the score of each row; null without a vector, 0 without a word in common."""
    for ranking in dict.fromkeys(rankings):
        column, name = id_of(ranking_variable(ranking)), shown_name(ranking)
        scores = _scores(run, plan, ranking, is_shown=True).withColumnRenamed(SCORE, name)
        frame = frame.join(scores, [column], "left")
        if isinstance(ranking, Bm25):
            is_bound = fn.col(column).isNotNull()
            score = fn.coalesce(fn.col(f"`{name}`"), fn.when(is_bound, fn.lit(0.0)))
            frame = frame.withColumn(name, score)
    return frame


def _best(ranking: Nearest | Bm25, column: str) -> list[Column]:

    score = fn.col(SCORE)
    return [score.asc() if isinstance(ranking, Nearest) else score.desc(), fn.col(column).asc()]


def _fuse(
    run: SparkRun, plan: Plan, ranking: Rrf, candidates: DataFrame
) -> tuple[DataFrame, list[Column]]:
    """Reciprocal rank fusion: a score for each node that one of the rankings has."""

    column = id_of(ranking_variable(ranking))
    k = fusion_constant(run.local, ranking.k)
    check_fusion_constant(k)
    arms = [
        _ranks(run, plan, arm, candidates, name)
        for arm, name in ((ranking.first, _FIRST), (ranking.second, _SECOND))
    ]
    fused = arms[0].join(arms[1], [column], "full_outer")
    shares = [
        fn.coalesce(fn.lit(1.0) / (fn.lit(float(k)) + fn.col(name)), fn.lit(0.0))
        for name in (_FIRST, _SECOND)
    ]
    fused = fused.withColumn(SCORE, shares[0] + shares[1])
    order = [
        fn.col(SCORE).desc(),
        fn.col(_FIRST).asc_nulls_last(),
        fn.col(_SECOND).asc_nulls_last(),
    ]
    return fused, order


def _ranks(
    run: SparkRun, plan: Plan, arm: Nearest | Bm25, candidates: DataFrame, name: str
) -> DataFrame:
    """The candidates that an arm ranks, numbered from 1."""

    column = id_of(arm.target.variable)
    scores = _scores(run, plan, arm).join(candidates, [column], "left_semi")
    if isinstance(arm, Nearest) and plan.limit is not None:
        scores = limit_frame(scores.orderBy(*_best(arm, column)), plan.limit)
    number = fn.row_number().over(Window.orderBy(*_best(arm, column)))
    return scores.select(column, number.alias(name))


def _scores(
    run: SparkRun, plan: Plan, ranking: Nearest | Bm25, *, is_shown: bool = False
) -> DataFrame:
    """The score of every node that can be ranked; distances are squares unless they are shown."""
    pattern = plan.match.pattern
    target = ranking.target
    table_key = f"node:{pattern.node_type(target.variable)}"
    query = query_of(run.local, pattern, ranking)
    shown = id_of(target.variable)
    schema = pa.schema([(shown, pa.utf8()), (SCORE, pa.float64())])
    read = TableRead(
        run.pin(table_key),
        (("id", "id"), (target.property, "value")),
        pa.schema([("id", pa.utf8()), ("value", target.type.arrow_type())]),
        (Not(IsNull(target.property)),),
    )
    parts = run.parts(table_key)
    if query is None:
        return map_parts(run.spark, read, [], iter, schema)
    if isinstance(query, str):
        assert isinstance(ranking, Bm25)
        language = ranking.language
        stems = tuple(form.stem for form in query_forms(query, language))
        if not stems:
            return map_parts(run.spark, read, [], iter, schema)
        totals = _count(run, read, table_key, stems, language)
        score = _Relevance(schema, stems, totals, language)
        return map_parts(run.spark, read, parts, partial(map, score), schema)
    assert target.type.dimension is not None
    vector = to_query_vector(query, target.type.dimension)
    distance = _Distance(schema, vector, is_shown)
    return map_parts(run.spark, read, parts, partial(map, distance), schema)


def _count(
    run: SparkRun, read: TableRead, table_key: str, stems: tuple[str, ...], language: str
) -> TextTotals:
    """The totals over all rows: a few numbers for each batch, added up."""
    schema = pa.schema(
        [("rows", pa.int64()), ("words", pa.int64()), ("having", pa.list_(pa.int64()))]
    )
    count = partial(_count_batch, schema, stems, language)
    frame = map_parts(run.spark, read, run.parts(table_key), partial(map, count), schema)
    counted = frame.toArrow()
    run.note(f"counted the words of {table_key} by {len(run.parts(table_key))} tasks")
    having = np.array(counted.column("having").to_pylist() or [[0] * len(stems)], dtype=np.int64)
    return TextTotals(
        int(sum(counted.column("rows").to_pylist())),
        int(sum(counted.column("words").to_pylist())),
        tuple(int(each) for each in having.reshape(-1, len(stems)).sum(axis=0)),
    )


def _count_batch(
    schema: pa.Schema, stems: tuple[str, ...], language: str, batch: pa.RecordBatch
) -> pa.RecordBatch:
    totals = count_texts(batch.column(1), stems, language)
    columns = [[totals.rows], [totals.words], [list(totals.having)]]
    return pa.RecordBatch.from_arrays(
        [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


@dataclass(frozen=True, slots=True)
class _Relevance:
    """Scores a batch of texts; those without a token of the query are left out."""

    schema: pa.Schema
    stems: tuple[str, ...]
    totals: TextTotals
    language: str

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        scores = score_texts(batch.column(1), self.stems, self.totals, self.language)
        return _scored(batch, scores, scores > 0, self.schema)


@dataclass(frozen=True, slots=True)
class _Distance:
    """Scores a batch of vectors; those with a null or NaN component are left out.

    Squares at the width of what is stored order rows; what is shown is computed wider.
    """

    schema: pa.Schema
    query: np.ndarray
    is_shown: bool

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        vectors = batch.column(1)
        if self.is_shown:
            distances = distances_of(vectors, self.query)
        else:
            distances = square_distances(to_components(vectors, len(self.query)), self.query)
        return _scored(batch, distances, ~np.isnan(distances), self.schema)


def _scored(
    batch: pa.RecordBatch, scores: np.ndarray, kept: np.ndarray, schema: pa.Schema
) -> pa.RecordBatch:
    places = pa.array(np.flatnonzero(kept))
    columns = [batch.column(0).take(places), pa.array(scores).take(places)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
