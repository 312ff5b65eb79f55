"""Run reads over a graph as the public API does."""

from __future__ import annotations

from collections.abc import Mapping
from time import time_ns
from typing import Any

from omnigraph.compiler import bind_params, compile_query, require_read
from omnigraph.embed import EmbedSource
from omnigraph.executor import QueryResult, execute
from omnigraph.graph import Graph
from omnigraph.index import RuntimeCache
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.testing.inside import inside


def run_query(
    graph: Graph,
    source: str,
    params: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    cache: RuntimeCache | None = None,
    embedder: EmbedSource | None = None,
) -> QueryResult:
    """Compile and run a read at the head of main."""
    catalog = graph.catalog
    ir = require_read(compile_query(source, catalog, name))
    bound = bind_params(ir.params, params) | {NOW_PARAMETER: time_ns() // 1_000_000}
    snapshot = graph.snapshot()
    cache = cache if cache is not None else RuntimeCache()
    table = execute(
        ir,
        bound,
        snapshot,
        catalog,
        inside(graph).store.tables,
        cache,
        lambda: embedder or EmbedSource(),
    )
    return QueryResult(table, ir.name, snapshot.branch, None, snapshot.manifest_version, 0.0)
