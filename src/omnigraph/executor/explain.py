"""Explain: every stage of a query as text, and with `analyze` what running it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.display import Sheet, show_html, show_text
from omnigraph.embed import EmbedSource
from omnigraph.executor.execute import execute, prepare_query
from omnigraph.executor.run import Stage, Trace
from omnigraph.index import RuntimeCache
from omnigraph.ir import format_ir
from omnigraph.ir.query import QueryIR
from omnigraph.manifest.model import Snapshot
from omnigraph.planner import format_plan
from omnigraph.storage.tables import TableStorage


@dataclass(frozen=True, slots=True)
class Explanation:
    """`stages` is empty unless the query was run for it, `spark` unless that runs it."""

    ir: str
    plan: str
    stages: tuple[Stage, ...] = ()
    row_count: int | None = None
    spark: str | None = None

    def __str__(self) -> str:
        parts = ["IR", _indent(self.ir), "plan", _indent(self.plan)]
        if self.spark is not None:
            parts += ["spark", _indent(self.spark)]
        if self.stages:
            parts += ["run", *map(_stage_line, self.stages), f"  {self.row_count} rows"]
        return "\n".join(parts)

    def make_sheet(self) -> Sheet:
        ran = None if self.row_count is None else f"{self.row_count:,} rows"
        return Sheet("explanation — print it for every line", {"ran": ran}, text=str(self))

    __repr__ = show_text
    _repr_html_ = show_html


def explain(
    ir: QueryIR,
    snapshot: Snapshot,
    catalog: Catalog,
    tables: TableStorage,
    cache: RuntimeCache,
    *,
    params: Mapping[str, Any] | None = None,
    embedder: Callable[[], EmbedSource] | None = None,
    analyze: bool = False,
) -> Explanation:
    """Explain a read at a snapshot; with `analyze` run it, which needs its parameters."""
    plan = format_plan(prepare_query(ir, snapshot, catalog, cache).plan)
    if not analyze:
        return Explanation(format_ir(ir), plan)
    trace = Trace()
    rows = execute(ir, params or {}, snapshot, catalog, tables, cache, embedder, trace)
    return Explanation(format_ir(ir), plan, tuple(trace.stages), rows.num_rows)


def _stage_line(stage: Stage) -> str:
    rows = "" if stage.rows is None else f"  {stage.rows}"
    return f"  {stage.elapsed_ms:9.3f} ms  {stage.text}{rows}"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
