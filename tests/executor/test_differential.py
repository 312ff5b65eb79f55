"""The engine against the reference evaluator: random schemas, graphs and reads."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from omnigraph.compiler import bind_params, compile_query, require_read
from omnigraph.executor import execute, filters, kernels, weights
from omnigraph.graph import Graph, init
from omnigraph.index import RuntimeCache, adjacency, query_memory, relations, thresholds
from omnigraph.ir.expressions import NOW_PARAMETER, Param
from omnigraph.ir.query import QueryIR
from omnigraph.testing.evaluator import GraphData, evaluate, read_graph
from omnigraph.testing.inside import inside
from tests.depth import depth
from tests.executor.query_strategies import Draw, Query, draw_query, draw_records, draw_schema
from tests.executor.return_strategies import draw_whole_query

pytestmark = pytest.mark.slow

PARTS = 2
GRAPHS_PER_PART = depth(2, 200)
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
    if isinstance(value, dict):
        return str({name: shown(each) for name, each in value.items()})
    return repr(value)


def as_texts(rows: list[dict[str, Any]]) -> list[str]:
    return [str({name: shown(value) for name, value in row.items()}) for row in rows]


def with_ticks(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with dates as the evaluator has them: numbers."""
    kinds = [(field.name, _tick_type(field.type)) for field in table.schema]
    rows: list[dict[str, Any]] = table.cast(pa.schema(kinds)).to_pylist()
    return rows


def _tick_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date(kind):
        return pa.int32() if pa.types.is_date32(kind) else pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_tick_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _tick_type(field.type)) for field in kind])
    return kind


def check(
    found: list[str], expected: list[str], ir: QueryIR, params: Mapping[str, Any] | None = None
) -> None:
    """`expected` has every row, in order when there is one."""
    limit, first = (
        (params or {})[each.name] if isinstance(each, Param) else each
        for each in (ir.limit, ir.offset or 0)
    )
    if ir.order or (ir.finish is not None and ir.finish.order):
        assert found == expected[first:][:limit]
    elif limit is None or limit >= len(expected):
        assert sorted(found) == sorted(expected)
    else:
        assert len(found) == limit
        assert not Counter(found) - Counter(expected)


def run_all_ways(
    graph: Graph, data: GraphData, query: Query, warm: RuntimeCache, build_cost: float
) -> None:
    """Cold, warm, and as if every table were large: with nothing kept, and edges looked up at this
    cost of building; then with every set of positions few enough to be listed, and conditions
    decided on a few rows at a time."""
    ir = require_read(compile_query(query.text, data.catalog))
    params = bind_params(ir.params, query.params) | {NOW_PARAMETER: 0}
    expected = as_texts(evaluate(ir, params, data, with_limit=False))

    def run(cache: RuntimeCache) -> None:
        tables = inside(graph).store.tables
        table = execute(ir, params, graph.snapshot(), data.catalog, tables, cache)
        check(as_texts(with_ticks(table)), expected, ir, params)

    run(warm)
    run(warm)
    with patch.object(thresholds, "SMALL_TABLE_ROWS", 0):
        with patch.object(relations, "BUILD_COST", build_cost):
            run(RuntimeCache(budget_bytes=1))
        with (
            patch.object(query_memory, "UNMEASURED_ROWS", 0),
            patch.object(filters, "BYTES_PER_PART", 64),
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
            query = draw.one([draw_query, draw_whole_query, draw_whole_query])(draw, schema)
            note(f"{query.text}\n{query.params}")
            # Half of the parts look every edge up, as far as it leads.
            run_all_ways(graph, plain, query, warm, build_cost=1e9 if part % 2 else 1.5)
