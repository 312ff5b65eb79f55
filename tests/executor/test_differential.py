"""The engine against the reference evaluator: random schemas, graphs and reads."""

from __future__ import annotations

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from omnigraph.compiler import bind_params, compile_query, require_read
from omnigraph.executor import QueryResult, execute
from omnigraph.graph import Graph, init
from omnigraph.index import RuntimeCache, table_view
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.ir.query import QueryIR
from omnigraph.testing.evaluator import GraphData, evaluate, read_graph
from tests.executor.query_strategies import Draw, Query, draw_query, draw_records, draw_schema

GRAPHS = 80
QUERIES_PER_GRAPH = 25


def shown(value: Any) -> str:
    """A value as text, equal when two values count as equal."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value + 0.0:.9g}"
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int):
        return f"{value:.9g}" if abs(value) < 2**31 else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)


def as_texts(rows: list[dict[str, Any]]) -> list[str]:
    return [str({name: shown(value) for name, value in row.items()}) for row in rows]


def with_ticks(result: QueryResult) -> list[dict[str, Any]]:
    """Rows with dates as the evaluator has them: numbers."""
    table = result.to_arrow()
    for place, column in enumerate(table.schema):
        if pa.types.is_date(column.type):
            ticks = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
            table = table.set_column(place, column.name, table.column(place).cast(ticks))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def check(
    graph: Graph, data: GraphData, ir: QueryIR, params: dict[str, Any], cache: RuntimeCache
) -> None:
    snapshot = graph.snapshot()
    table = execute(ir, params, snapshot, data.catalog, graph._store.tables, cache)
    rows = as_texts(with_ticks(QueryResult(table, ir.name, "main", None, 0, 0.0)))
    if ir.order:
        assert rows == as_texts(evaluate(ir, params, data))
        return
    every = as_texts(evaluate(ir, params, data, with_limit=False))
    if ir.limit is None or ir.limit >= len(every):
        assert sorted(rows) == sorted(every)
        return
    assert len(rows) == ir.limit
    left = list(every)
    for row in rows:
        left.remove(row)


def run_all_ways(graph: Graph, data: GraphData, query: Query, warm: RuntimeCache) -> None:
    """Cold, warm, and as if nothing could be kept and every table were large."""
    ir = require_read(compile_query(query.text, data.catalog))
    params = bind_params(ir.params, query.params) | {NOW_PARAMETER: 0}
    check(graph, data, ir, params, warm)
    check(graph, data, ir, params, warm)
    with patch.object(table_view, "SMALL_TABLE_ROWS", 0):
        check(graph, data, ir, params, RuntimeCache(budget_bytes=1))
        check(graph, data, ir, params, RuntimeCache())


@pytest.mark.accepts("S-170")
@pytest.mark.accepts("S-176")
@pytest.mark.accepts("S-177")
@settings(
    max_examples=GRAPHS,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    # A case is small as it is drawn; shrinking would build a graph for every attempt.
    phases=[Phase.generate],
)
@given(st.data())
def test_the_engine_agrees_with_the_evaluator(data: st.DataObject) -> None:
    """However it is run, every read gives the rows that the language reference says."""
    draw = Draw(data)
    schema = draw_schema(draw)
    records = draw_records(draw, schema)
    note(f"{schema.text()}\n{json.dumps(records)}")
    with (
        TemporaryDirectory() as folder,
        init(Path(folder) / "g.omni", schema=schema.text(), durability="process") as graph,
    ):
        graph.load(records, mode="overwrite")
        catalog = graph._checked_contract().catalog
        plain = read_graph(graph.snapshot(), catalog, graph._store.tables)
        warm = RuntimeCache()
        for _ in range(QUERIES_PER_GRAPH):
            query = draw_query(draw, schema)
            note(f"{query.text}\n{query.params}")
            run_all_ways(graph, plain, query, warm)
