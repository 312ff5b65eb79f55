"""Execute: the plan of the local engine, run as DataFrames.

What is built here is lazy: Spark runs when rows are asked for. Exceptions run jobs while the frame
is built: walks and rankings, which `notes` name, and rows that a block or stage starts from.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4
from weakref import finalize

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from omnigraph.catalog.model import Catalog
from omnigraph.embed import EmbedSource
from omnigraph.executor.counts import cut, fill_counts
from omnigraph.executor.execute import asked_of_counted, prepare_query
from omnigraph.executor.run import Run
from omnigraph.executor.values import Values
from omnigraph.index import RuntimeCache
from omnigraph.ir.expressions import Bm25, Nearest, Projected, Rrf
from omnigraph.ir.query import QueryIR
from omnigraph.manifest.model import Snapshot
from omnigraph.pipeline.spark_query.columns import to_local
from omnigraph.pipeline.spark_query.computed import with_computed
from omnigraph.pipeline.spark_query.failures import spark_failures
from omnigraph.pipeline.spark_query.finish import finish_groups
from omnigraph.pipeline.spark_query.group import group_rows
from omnigraph.pipeline.spark_query.match import Matcher
from omnigraph.pipeline.spark_query.needs import needs_of_plan
from omnigraph.pipeline.spark_query.order import order_groups, order_rows, skip_rows
from omnigraph.pipeline.spark_query.rank import order_by_ranking, with_scores
from omnigraph.pipeline.spark_query.result_size import bounded_result
from omnigraph.pipeline.spark_query.rows import Payload, Rows
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.pipeline.spark_query.session import query_session
from omnigraph.pipeline.spark_query.shown import shown_column, with_shown
from omnigraph.pipeline.spark_query.stages import run_stages
from omnigraph.planner import Plan
from omnigraph.storage.tables import TableStorage

_POLL_SECONDS = 0.1
_CANCEL_SECONDS = 20.0
_T = TypeVar("_T")


class SparkAnswer:
    """A read as a frame, its columns numbered; `schema` is that of the local engine.

    Frames that the run keeps are let go when nothing refers to the answer any more.
    """

    def __init__(self, run: SparkRun, plan: Plan, frame: DataFrame, schema: pa.Schema) -> None:
        self.run = run
        self.plan = plan
        self.frame = frame
        self.schema = schema
        finalize(self, run.release).atexit = False

    def to_arrow(self) -> pa.Table:
        """Run it and bring the rows here, as the local engine gives them."""
        table = in_job_group(self.run.spark, lambda: bounded_result(self.frame).toArrow())
        columns = [
            to_local(column, field.type)
            for column, field in zip(table.columns, self.schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def to_spark(self) -> DataFrame:
        """The frame under the names of `return`."""
        frame = self.frame.toDF(*self.schema.names)
        # What the run keeps stays as long as the frame does.
        frame.__dict__["_omnigraph_answer"] = self
        return frame


def build_answer(
    spark: Any,
    ir: QueryIR,
    params: Mapping[str, Any],
    snapshot: Snapshot,
    catalog: Catalog,
    tables: TableStorage,
    cache: RuntimeCache,
    embedder: Callable[[], EmbedSource] | None = None,
) -> SparkAnswer:
    """Make the frame of a read at a snapshot. `params` has every parameter bound."""
    prepared = prepare_query(ir, snapshot, catalog, cache)
    local = Run(snapshot, catalog, tables, cache, Values(prepared.values, params), embedder)
    plan = fill_counts(prepared.plan, local.values)
    rows = sum(entry.row_count for entry in snapshot.entries.values())
    with spark_failures():
        run = SparkRun(query_session(spark, rows), local)
    try:
        frame = in_job_group(run.spark, lambda: _answer(run, plan))
    except BaseException:
        run.release()
        raise
    return SparkAnswer(run, plan, frame, prepared.schema)


def _answer(run: SparkRun, plan: Plan) -> DataFrame:
    payload = Payload(*asked_of_counted(plan))
    needs = needs_of_plan(plan)
    seeds = run_stages(run, plan, needs)
    rows = Matcher(run, plan.match, needs, payload).match(seeds)
    shown = [item.expression for item in plan.returns]
    if plan.is_grouped:
        frame = order_groups(plan, group_rows(run, plan, rows))
        if plan.finish is not None:
            groups = frame.select(*_numbered(run, shown))
            return finish_groups(run, plan, plan.finish, groups)
    else:
        frame = _order(run, plan, rows)
    first, _ = cut(plan)
    # Of rows in order: to leave some out keeps the order of the others.
    frame = skip_rows(frame, first)
    return with_shown(run, frame, shown).select(*_numbered(run, shown))


def _order(run: SparkRun, plan: Plan, rows: Rows) -> DataFrame:
    """The rows in order, with the scores that are shown."""
    scores = [each.expression for each in plan.returns]
    rankings = [each for each in scores if isinstance(each, (Nearest, Bm25))]
    rows = rows.keep(with_scores(run, plan, rows.frame, rankings))
    if plan.order:
        first = plan.order[0].expression
        if isinstance(first, (Nearest, Bm25, Rrf)):
            return order_by_ranking(run, plan, first, rows)
    keys = [plan.resolve_alias(item.expression) for item in plan.order]
    return order_rows(plan, rows.keep(with_computed(run, rows.frame, keys)))


def _numbered(run: SparkRun, expressions: Sequence[Projected]) -> list[Column]:
    return [shown_column(run, each).alias(f"c{n}") for n, each in enumerate(expressions)]


def in_job_group(spark: Any, work: Callable[[], _T]) -> _T:
    """Do the work in a thread of its own, so that an interrupt cancels the jobs it has started."""
    context, group = spark.sparkContext, f"omnigraph-{uuid4()}"
    answers: list[_T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            context.setJobGroup(group, "omnigraph", interruptOnCancel=True)
            with spark_failures():
                answers.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
    except BaseException:
        context.cancelJobGroup(group)
        thread.join(_CANCEL_SECONDS)
        raise
    if failures:
        raise failures[0]
    return answers[0]
