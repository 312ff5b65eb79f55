"""A few ends on a large edge table: looked up by `src` or `dst` instead of building adjacency."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.compiler import bind_params, compile_query, require_read
from omnigraph.errors import BadRequestError
from omnigraph.executor.explain import explain
from omnigraph.graph import Graph
from omnigraph.index import RuntimeCache, thresholds
from omnigraph.index.edge_lookup import MODE_VARIABLE
from omnigraph.index.keys import DistinctKey, EndpointsKey, PerEdgeKey
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.testing.inside import inside
from tests.executor.people import make_graph
from tests.executor.running import run_query


@pytest.fixture
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "SMALL_TABLE_ROWS", 0)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = make_graph(tmp_path_factory.mktemp("indexed"))
    graph.ensure_indices()
    return graph


def explain_query(graph: Graph, source: str, cache: RuntimeCache) -> str:
    catalog = graph.catalog
    ir = require_read(compile_query(source, catalog))
    params = bind_params(ir.params, {}) | {NOW_PARAMETER: 0}
    tables = inside(graph).store.tables
    return str(explain(ir, graph.snapshot(), catalog, tables, cache, params=params, analyze=True))


def text(match: str, returned: str) -> str:
    return f"query q() {{ match {{ {match} }} return {{ {returned} }} }}"


READS = {
    "out": text('$p: Person { name: "ada" } $p knows $o', "$o.name"),
    "in": text('$p: Person { name: "ada" } $o knows $p', "$o.name"),
    "both ways": text('$p: Person { name: "bo" } $p <knows> $o', "$o.name"),
    "two hops": text('$p: Person { name: "ada" } $p knows{1,2} $o', "$o.name"),
    "two hops in": text('$p: Person { name: "cy" } $o knows{1,2} $p', "$o.name"),
    "two hops both ways": text('$p: Person { name: "di" } $p <knows>{1,2} $o', "$o.name"),
    "a loop at two hops": text('$p: Person { name: "ada" } $p knows{2,2} $o', "$o.name"),
    "two hops of no such edge": text('$p: Person { name: "ada" } $p livesIn{1,2} $t', "$t.name"),
    "edges": text('$p: Person { name: "ada" } $p $k:knows $o', "$o.name, $k.weight"),
    "edges in": text('$p: Person { name: "bo" } $o $k:knows $p', "$o.name, $k.weight"),
    "edges both ways": text('$p: Person { name: "bo" } $p $k:<knows> $o', "$o.name, $k.weight"),
    "edges kept": text(
        '$p: Person { name: "ada" } $p $k:knows $o $k.weight > 1', "$o.name, $k.weight"
    ),
}


@pytest.mark.usefixtures("large_tables")
@pytest.mark.parametrize("name", READS)
def test_a_look_up_finds_what_the_adjacency_has(indexed: Graph, name: str) -> None:
    cache = RuntimeCache()

    shown = explain_query(indexed, READS[name], cache)
    found = run_query(indexed, READS[name], cache=RuntimeCache()).rows()

    assert "looked up edge:" in shown
    assert "built" not in shown
    built = RuntimeCache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MODE_VARIABLE, "csr")
        expected = run_query(indexed, READS[name], cache=built).rows()
    assert any(
        isinstance(key, (DistinctKey, PerEdgeKey, EndpointsKey)) for key in built.list_keys()
    )
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.usefixtures("large_tables")
def test_the_rule_is_printed_with_both_costs(indexed: Graph) -> None:
    """Five edges from four people: two hops look at twice five quarters, building at more."""
    shown = explain_query(indexed, READS["two hops"], RuntimeCache())

    assert "looking up edge:Knows: about 2.5 edges to look at, 7.5 to build its adjacency" in shown


@pytest.mark.usefixtures("large_tables")
def test_without_an_index_every_hop_is_a_pass(tmp_path: Path) -> None:
    graph = make_graph(tmp_path)

    one = explain_query(graph, READS["out"], RuntimeCache())
    two = explain_query(graph, READS["two hops"], RuntimeCache())

    assert "looking up edge:Knows: about 5.0 edges to look at, 7.5 to build" in one
    assert "building edge:Knows: about 10.0 edges to look at, 7.5 to build" in two


@pytest.mark.usefixtures("large_tables")
def test_rows_that_no_index_covers_yet_do_not_make_a_look_up_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of one edge, and two hops of a table without adjacency built all of it."""
    graph = make_graph(tmp_path)
    graph.ensure_indices()
    graph.mutate('query w() { insert Knows { from: "ada", to: "di", weight: 3 } }')
    monkeypatch.setattr(thresholds, "SMALL_TABLE_ROWS", 1)

    shown = explain_query(graph, READS["two hops"], RuntimeCache())

    assert "looked up edge:Knows by src" in shown
    assert "built" not in shown


@pytest.mark.usefixtures("large_tables")
@pytest.mark.parametrize("name", ["out", "two hops", "edges", "both ways"])
def test_no_query_of_a_few_ends_waits_for_the_adjacency_to_be_built(
    indexed: Graph, name: str
) -> None:
    """The second use has it made in the background: the caller reads as much as the first time."""
    cache = RuntimeCache()

    shown = [explain_query(indexed, READS[name], cache) for _ in range(2)]
    cache.background.wait()
    later = explain_query(indexed, READS[name], cache)

    assert all("looked up edge:" in each and "built" not in each for each in shown)
    assert "looked up" not in later
    assert "built" not in later


@pytest.mark.usefixtures("large_tables")
def test_where_a_look_up_has_many_edges_to_look_at_the_second_one_builds(
    indexed: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "EDGES_LOOKED_UP_AGAIN", 1)
    cache = RuntimeCache()

    first, second = (explain_query(indexed, READS["two hops"], cache) for _ in range(2))

    assert "looked up edge:Knows" in first
    assert "building edge:Knows: about 2.5 edges to look at" in second
    assert "built the adjacency of edge:Knows" in second


@pytest.mark.usefixtures("large_tables")
def test_what_the_budget_cannot_hold_is_looked_up_every_time(indexed: Graph) -> None:
    cache = RuntimeCache(budget_bytes=64)

    runs = [explain_query(indexed, READS["out"], cache) for _ in range(4)]

    assert all("looked up edge:Knows by src" in shown for shown in runs)


@pytest.mark.usefixtures("large_tables")
def test_a_frontier_that_outgrows_a_look_up_is_built(
    indexed: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "FEW_IDS", 1)
    query = text('$p: Person { name: "ada" } $p <knows>{1,3} $o', "$o.name")

    shown = explain_query(indexed, query, RuntimeCache())

    assert "built the adjacency of edge:Knows" in shown
    assert sorted(map(repr, run_query(indexed, query, cache=RuntimeCache()).rows())) == sorted(
        map(repr, run_query(indexed, query).rows())
    )


@pytest.mark.usefixtures("large_tables")
@pytest.mark.parametrize(("mode", "expected"), [("indexed", "looked up"), ("csr", "built the")])
def test_the_environment_can_force_either(
    indexed: Graph, monkeypatch: pytest.MonkeyPatch, mode: str, expected: str
) -> None:
    monkeypatch.setenv(MODE_VARIABLE, mode)
    query = text("$p: Person $p knows $o", "$o.name")

    shown = explain_query(indexed, query, RuntimeCache())

    assert expected in shown
    assert len(run_query(indexed, query)) == 4


def test_a_mode_that_never_was_is_refused(indexed: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODE_VARIABLE, "abacus")

    with pytest.raises(BadRequestError, match="expected 'indexed' or 'csr'"):
        run_query(indexed, READS["out"])
