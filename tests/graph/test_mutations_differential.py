"""Mutations against the reference evaluator: random statements over random graphs."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.compiler import bind_params, compile_query, require_mutation
from omnigraph.errors import BadRequestError
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.testing.changed import Changed, change
from omnigraph.testing.evaluator import GraphData, read_graph
from omnigraph.testing.inside import inside
from tests.depth import depth
from tests.executor.mutation_strategies import draw_mutation, drop_repeated, make_writable
from tests.executor.query_strategies import Draw, Query, draw_records, draw_schema
from tests.executor.test_differential import as_texts, with_ticks

pytestmark = pytest.mark.slow

MUTATIONS_PER_GRAPH = depth(10, 25)
NEW_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


def read(graph: og.Graph) -> GraphData:
    return read_graph(graph.snapshot(), graph.catalog, inside(graph).store.tables)


def list_rows(data: GraphData) -> list[tuple[str, dict[str, Any]]]:
    nodes = [(name, dict(row)) for name, rows in data.nodes.items() for row in rows.values()]
    return nodes + [(name, dict(row)) for name, rows in data.edges.items() for row in rows]


def as_bag(rows: list[dict[str, Any]], known: str) -> Counter[str]:
    """Rows without order; ids that were not there before are as good as one another."""

    def hide(found: re.Match[str]) -> str:
        return found[0] if found[0] in known else "new"

    return Counter(NEW_ID.sub(hide, text) for text in as_texts(rows))


def as_content(data: GraphData, known: str) -> Counter[str]:
    rows = [dict(sorted(row.items())) | {"#kind": kind} for kind, row in list_rows(data)]
    return as_bag(rows, known)


def expect(query: Query, before: GraphData) -> Changed | None:
    """What the reference says, or None where it refuses."""
    ir = require_mutation(compile_query(query.text, before.catalog))
    params = bind_params(ir.params, query.params) | {NOW_PARAMETER: 0}
    try:
        return change(ir, params, before)
    except BadRequestError:
        return None


def run_both(graph: og.Graph, query: Query) -> bool:
    """Mutate the graph and the reference; tell whether it was accepted."""
    before = read(graph)
    known = str(list_rows(before))
    commits = len(graph.commits())
    expected = expect(query, before)
    if expected is None:
        with pytest.raises(BadRequestError):
            graph.mutate(query.text, params=query.params)
        assert as_content(read(graph), known) == as_content(before, known)
        assert len(graph.commits()) == commits
        return False

    result = graph.mutate(query.text, params=query.params)

    counts = (expected.affected_nodes, expected.affected_edges)
    assert (result.affected_nodes, result.affected_edges) == counts
    assert as_content(read(graph), known) == as_content(expected.data, known)
    assert len(graph.commits()) == commits + bool(sum(counts))
    if expected.returned is None:
        assert result.returned is None
    else:
        assert result.returned is not None
        found = with_ticks(result.returned.table)
        assert as_bag(found, known) == as_bag(expected.returned, known)
    return True


@settings(
    max_examples=depth(5, 200),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # A case is small as it is drawn; shrinking would build a graph for every attempt.
    phases=[Phase.generate],
)
@given(data=st.data())
def test_mutations_do_what_the_reference_does(data: st.DataObject) -> None:
    """Rows, counts, commits and what comes back, statement by statement; or both refuse."""
    draw = Draw(data)
    schema = make_writable(draw_schema(draw))
    records = drop_repeated(draw_records(draw, schema))
    note(f"{schema.text()}\n{json.dumps(records)}")
    with (
        TemporaryDirectory() as folder,
        og.init(Path(folder) / "g.omni", schema=schema.text(), durability="process") as graph,
    ):
        graph.load(records, mode="overwrite")
        for _ in range(MUTATIONS_PER_GRAPH):
            query = draw_mutation(draw, schema)
            note(f"{query.text}\n{query.params}")
            run_both(graph, query)
