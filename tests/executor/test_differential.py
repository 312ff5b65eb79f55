"""The engine against the reference evaluator: random schemas, graphs and reads."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from omnigraph.compiler import bind_params, compile_query, require_read
from omnigraph.executor import execute, kernels, weights
from omnigraph.graph import Graph, init
from omnigraph.index import RuntimeCache, adjacency, relations, thresholds
from omnigraph.ir.expressions import NOW_PARAMETER, Param
from omnigraph.ir.query import QueryIR
from omnigraph.testing.evaluator import GraphData, evaluate, read_graph
from omnigraph.testing.inside import inside
from tests.depth import depth
from tests.executor.query_strategies import Draw, Query, draw_query, draw_records, draw_schema

pytestmark = pytest.mark.slow

PARTS = 2
GRAPHS_PER_PART = depth(4, 40)
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


def with_ticks(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with dates as the evaluator has them: numbers."""
    for place, column in enumerate(table.schema):
        if pa.types.is_date(column.type):
            ticks = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
            table = table.set_column(place, column.name, table.column(place).cast(ticks))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def check(found: list[str], expected: list[str], ir: QueryIR) -> None:
    """`expected` has every row, in order when there is one."""
    assert not isinstance(ir.limit, Param)
    assert not isinstance(ir.offset, Param)
    first = ir.offset or 0
    if ir.order:
        assert found == expected[first:][: ir.limit]
    elif ir.limit is None or ir.limit >= len(expected):
        assert sorted(found) == sorted(expected)
    else:
        assert len(found) == ir.limit
        assert not Counter(found) - Counter(expected)


def run_all_ways(
    graph: Graph, data: GraphData, query: Query, warm: RuntimeCache, build_cost: float
) -> None:
    """Cold, warm, and as if every table were large: with nothing kept, and edges looked up at this
    cost of building; then with every set of positions few enough to be listed."""
    ir = require_read(compile_query(query.text, data.catalog))
    params = bind_params(ir.params, query.params) | {NOW_PARAMETER: 0}
    expected = as_texts(evaluate(ir, params, data, with_limit=False))

    def run(cache: RuntimeCache) -> None:
        tables = inside(graph).store.tables
        table = execute(ir, params, graph.snapshot(), data.catalog, tables, cache)
        check(as_texts(with_ticks(table)), expected, ir)

    run(warm)
    run(warm)
    with patch.object(thresholds, "SMALL_TABLE_ROWS", 0):
        with patch.object(relations, "BUILD_COST", build_cost):
            run(RuntimeCache(budget_bytes=1))
        with (
            patch.object(weights, "FEW", 0),
            patch.object(kernels, "FEW", 0),
            patch.object(adjacency, "FEW", 0),
        ):
            run(RuntimeCache())


@pytest.mark.accepts("S-170")
@pytest.mark.accepts("S-176")
@pytest.mark.accepts("S-177")
@pytest.mark.parametrize("part", range(PARTS))
@settings(
    max_examples=GRAPHS_PER_PART,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # A case is small as it is drawn; shrinking would build a graph for every attempt.
    phases=[Phase.generate],
)
@given(data=st.data())
def test_the_engine_agrees_with_the_evaluator(part: int, data: st.DataObject) -> None:
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
        catalog = graph.catalog
        plain = read_graph(graph.snapshot(), catalog, inside(graph).store.tables)
        warm = RuntimeCache()
        for _ in range(QUERIES_PER_GRAPH):
            query = draw_query(draw, schema)
            note(f"{query.text}\n{query.params}")
            # Half of the parts look every edge up, as far as it leads.
            run_all_ways(graph, plain, query, warm, build_cost=1e9 if part % 2 else 1.5)
