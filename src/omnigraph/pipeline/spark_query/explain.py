"""Explain: the plan that both engines share, what the driver did, and Spark's own plan below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from pyspark.sql import DataFrame

from omnigraph.catalog.model import Catalog
from omnigraph.embed import EmbedSource
from omnigraph.executor.explain import Explanation
from omnigraph.executor.run import Trace
from omnigraph.index import RuntimeCache
from omnigraph.ir import format_ir
from omnigraph.ir.query import QueryIR
from omnigraph.manifest.model import Snapshot
from omnigraph.pipeline.spark_query.execute import build_answer, in_job_group
from omnigraph.planner import format_plan
from omnigraph.storage.tables import TableStorage


def explain_on_spark(
    spark: Any,
    ir: QueryIR,
    params: Mapping[str, Any],
    snapshot: Snapshot,
    catalog: Catalog,
    tables: TableStorage,
    cache: RuntimeCache,
    embedder: Callable[[], EmbedSource] | None = None,
    *,
    analyze: bool,
) -> Explanation:
    """Explain a read on Spark. Walks and rankings run what they need to be planned."""
    trace = Trace()
    answer = build_answer(spark, ir, params, snapshot, catalog, tables, cache, embedder)
    trace.add("built the frame")
    row_count = None
    if analyze:
        row_count = answer.to_arrow().num_rows
        trace.add("ran on Spark", row_count)
    text = in_job_group(answer.run.spark, lambda: _spark_plan(answer.frame))
    driver = [f"in this process: {note}" for note in answer.run.notes]
    stages = tuple(trace.stages) if analyze else ()
    return Explanation(
        format_ir(ir), format_plan(answer.plan), stages, row_count, "\n".join([*driver, text])
    )


def _spark_plan(frame: DataFrame) -> str:
    shown = StringIO()
    with redirect_stdout(shown):
        frame.explain()
    return shown.getvalue().strip()
