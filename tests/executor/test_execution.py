"""How a read is run: what is pushed down, built, kept and left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from unittest.mock import patch

import pytest

from omnigraph.compiler import bind_params, compile_query, require_read
from omnigraph.errors import NotFoundError, ResourceLimitError
from omnigraph.executor import execute
from omnigraph.executor import rows as rows_module
from omnigraph.executor.explain import explain
from omnigraph.graph import Graph, init
from omnigraph.index import DerivedStore, RuntimeCache, thresholds
from omnigraph.index.keys import DistinctKey, EndpointsKey, PerEdgeKey
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from tests.executor.people import SCHEMA, make_graph, person
from tests.executor.running import run_query


@pytest.fixture
def large_tables() -> Iterator[None]:
    """Treat every table as a large one."""
    with patch.object(thresholds, "SMALL_TABLE_ROWS", 0):
        yield


def explain_query(graph: Graph, source: str, cache: RuntimeCache) -> str:
    catalog = graph.catalog
    ir = require_read(compile_query(source, catalog))
    params = bind_params(ir.params, {}) | {NOW_PARAMETER: 0}
    tables = inside(graph).store.tables
    return str(explain(ir, graph.snapshot(), catalog, tables, cache, params=params, analyze=True))


@pytest.mark.accepts("S-167")
def test_adjacency_is_built_only_for_what_is_traversed(people: Graph) -> None:
    cache = RuntimeCache()

    run_query(people, "query q() { match { $p: Person } return { $p.name } }", cache=cache)
    adjacency = (DistinctKey, PerEdgeKey, EndpointsKey)
    assert not any(isinstance(key, adjacency) for key in cache.list_keys())

    run_query(people, "query q() { match { $p: Person $p knows $o } return { $o } }", cache=cache)
    run_query(people, "query q() { match { $p: Person $p knows $o } return { $o } }", cache=cache)
    built = [key for key in cache.list_keys() if isinstance(key, DistinctKey)]
    assert len(built) == 1


@pytest.mark.accepts("S-169")
@pytest.mark.usefixtures("large_tables")
def test_a_filter_on_a_column_not_in_memory_goes_down_to_the_scan(tmp_path: Path) -> None:
    graph = init(tmp_path / "g.omni", schema=SCHEMA, durability="process")
    graph.load([person(f"p{age}", age=age) for age in range(40)], mode="overwrite")
    query = "query q() { match { $p: Person $p.age > 38 } return { $p.name } }"

    with counting() as counters:
        rows = run_query(graph, query).rows()

    assert rows == [{"p.name": "p39"}]
    # The row id of every position, and the one row that matches; then its name.
    assert counters.rows_scanned == 40 + 1
    assert counters.rows_taken == 1


@pytest.mark.usefixtures("large_tables")
def test_a_column_used_again_is_decoded_and_then_nothing_is_read(people: Graph) -> None:
    query = "query q() { match { $p: Person $p.age > 30 } return { $p.name } }"
    cache = RuntimeCache()
    for _ in range(3):
        run_query(people, query, cache=cache)

    with counting() as counters:
        run_query(people, query, cache=cache)

    assert (counters.rows_scanned, counters.rows_taken, counters.opens) == (0, 0, 0)


@pytest.mark.usefixtures("large_tables")
def test_a_small_frontier_is_looked_up_until_building_pays(people: Graph) -> None:
    query = 'query q() { match { $p: Person { name: "ada" } $p knows $o } return { $o } }'
    cache = RuntimeCache()

    runs = [explain_query(people, query, cache) for _ in range(2)]
    cache.background.wait()
    runs += [explain_query(people, query, cache) for _ in range(2)]

    assert all("looked up edge:Knows by src" in shown for shown in runs[:2])
    assert "adjacency" not in runs[2] + runs[3]


@pytest.mark.usefixtures("large_tables")
def test_derived_files_are_mapped_and_safe_to_delete(tmp_path: Path) -> None:
    graph = make_graph(tmp_path)
    query = "query q() { match { $p: Person $p <knows> $o } return { $p, $o } order { $p.name } }"
    root = Path(graph.uri)
    writable = DerivedStore(root, is_writable=True)

    first = explain_query(graph, query, RuntimeCache(derived=writable))
    second = explain_query(graph, query, RuntimeCache(derived=writable))
    rows = run_query(graph, query, cache=RuntimeCache(derived=writable)).rows()
    for file in (root / "__derived").iterdir():
        file.unlink()
    again = run_query(graph, query, cache=RuntimeCache(derived=writable)).rows()

    assert "built the adjacency" in first
    assert "mapped the saved adjacency" in second
    assert rows == again == run_query(graph, query).rows()


def test_caches_stay_under_their_budget_and_answers_stay(people: Graph) -> None:
    query = """query q() { match { $p: Person $p knows $o $o livesIn $t }
               return { $p.name, $t.name } order { $p.age, $t.size } }"""
    small = RuntimeCache(budget_bytes=300)

    rows = run_query(people, query, cache=small).rows()

    assert rows == run_query(people, query).rows()
    assert small.nbytes <= 300


def test_a_new_version_of_one_table_keeps_what_the_others_derived(tmp_path: Path) -> None:
    graph = make_graph(tmp_path)
    cache = RuntimeCache()
    query = "query q() { match { $p: Person $p livesIn $t } return { count($p) as n } }"
    run_query(graph, query, cache=cache)
    before = {key for key in cache.list_keys() if isinstance(key, DistinctKey)}

    graph.mutate('query m() { insert Note { slug: "n9" } }')
    assert run_query(graph, query, cache=cache).rows() == [{"n": 3}]
    after = {key for key in cache.list_keys() if isinstance(key, DistinctKey)}
    graph.mutate('query m() { insert Person { name: "ed" } }')
    graph.mutate('query m() { insert LivesIn { from: "ed", to: "Oslo" } }')

    assert before == after
    assert run_query(graph, query, cache=cache).rows() == [{"n": 4}]


def test_a_product_that_cannot_fit_is_refused_before_it_is_made(people: Graph) -> None:
    query = "query q() { match { $a: Person $b: Person $c: Person } return { $a, $b, $c } }"

    with (
        patch.object(rows_module, "ROWS_MAX", 50),
        pytest.raises(ResourceLimitError, match="relate them by a traversal"),
    ):
        run_query(people, query)


def test_a_limit_stops_a_product_early(people: Graph) -> None:
    query = "query q() { match { $a: Person $b: Person $c: Person } return { $a, $b, $c } limit 5 }"

    with patch.object(rows_module, "ROWS_MAX", 20):
        assert len(run_query(people, query)) == 5


def test_a_limit_waits_for_filters_that_can_still_drop_rows(people: Graph) -> None:
    query = """query q() { match { $p: Person $p knows $o $o.age < $p.age }
               return { $p, $o } limit 1 }"""

    assert run_query(people, query).rows() == [{"p": "ada", "o": "bo"}]


@pytest.mark.accepts("S-177")
def test_a_negation_over_two_variables_drops_their_combinations(people: Graph) -> None:
    query = """query q() { match { $p: Person $o: Person
               not { $p <knows> $o } not { $p.name = $o.name } }
               return { $p, $o } order { $p.name, $o.name } }"""

    rows = run_query(people, query).rows()

    found = [(row["p"], row["o"]) for row in rows]
    assert found == [
        (a, b) for a, b in product(["ada", "bo", "cy", "di"], repeat=2) if "di" in (a, b) and a != b
    ]


def test_a_sum_counts_every_match_of_the_other_variables(people: Graph) -> None:
    query = "query q() { match { $p: Person $p knows $o $t: Town } return { sum($t.size) as s } }"

    # Four distinct pairs that know each other, each with both towns.
    assert run_query(people, query).rows() == [{"s": 4 * 10.0}]


def test_equal_properties_join_without_a_product(people: Graph) -> None:
    query = """query q() { match { $p: Person $t: Town $p.town = $t.name }
               return { $p.name as p, $t.size as s } order { $p.name } }"""

    with patch.object(rows_module, "ROWS_MAX", 4):
        rows = run_query(people, query).rows()

    assert [(row["p"], row["s"]) for row in rows] == [("ada", 9), ("bo", 1), ("di", 9)]


def test_counting_makes_no_rows(tmp_path: Path) -> None:
    """Sixty nodes in a full graph have 60^6 walks of five hops; each is counted, none is made."""
    graph = init(
        tmp_path / "g.omni",
        schema="node N { k: I32 @key }\nedge To: N -> N",
        durability="process",
    )
    nodes = [{"type": "N", "data": {"k": place}} for place in range(60)]
    edges = [
        {"edge": "To", "from": str(a), "to": str(b), "data": {}}
        for a in range(60)
        for b in range(60)
    ]
    graph.load([*nodes, *edges], mode="overwrite")
    query = """query q() { match { $a: N $a to $b $b to $c $c to $d $d to $e $e to $f }
               return { count($a) as n, sum($f.k) as s } }"""

    with patch.object(rows_module, "ROWS_MAX", 100):
        rows = run_query(graph, query).rows()

    assert rows == [{"n": 60**6, "s": 60**5 * sum(range(60))}]


def test_more_matches_than_an_i64_are_refused(people: Graph) -> None:
    walks = " ".join(f"$v{place} <knows> $v{place + 1}" for place in range(200))
    query = f"query q() {{ match {{ $v0: Person {walks} }} return {{ count($v0) as n }} }}"

    with pytest.raises(ResourceLimitError, match="number of matches"):
        run_query(people, query)


def test_a_type_that_is_not_in_the_snapshot_is_named(people: Graph) -> None:
    catalog = people.catalog
    ir = require_read(compile_query("query q() { match { $t: Town } return { $t } }", catalog))
    snapshot = people.snapshot()
    entries = {key: entry for key, entry in snapshot.entries.items() if key != "node:Town"}
    older = type(snapshot)(snapshot.branch, 1, entries, snapshot.head)

    with pytest.raises(NotFoundError, match="node:Town"):
        execute(ir, {NOW_PARAMETER: 0}, older, catalog, inside(people).store.tables, RuntimeCache())


def test_explain_prints_ir_plan_and_what_was_done(people: Graph) -> None:
    query = "query q() { match { $p: Person $p.age > 30 $p knows $o } return { count($o) as n } }"

    text = explain_query(people, query, RuntimeCache())

    assert "expand $p -[Knows]-> $o: Person" in text
    assert "count $p to $o along out Knows" in text
    assert "decoded age of node:Person" in text
    assert text.endswith("1 rows")


@pytest.mark.parametrize(
    ("declared", "value", "shown"),
    [("String", "x", "x"), ("I32?", None, None), ("[String]", ["a"], ["a"]), ("U32", 7, 7)],
)
def test_a_parameter_beside_an_aggregate_is_a_grouping_key(
    people: Graph, declared: str, value: object, shown: object
) -> None:
    """It has one value, so it adds no group; like every key it leaves no row where nothing is."""
    head = f"query q($v: {declared}) {{ match {{ $p: Person"
    whole = f"{head} }} return {{ count($p) as n, $v as v }} }}"
    grouped = f"{head} }} return {{ $v, $p.name, count($p) as n }} order {{ n, $p.name }} }}"
    nothing = f'{head} $p.name = "nobody" }} return {{ $v, count($p) as n }} }}'
    listed = f'{head} $p.name = "nobody" }} return {{ $v, $p.name }} }}'

    (row,) = run_query(people, whole, {"v": value}).rows()
    groups = run_query(people, grouped, {"v": value}).rows()

    assert row == {"n": sum(each["n"] for each in groups), "v": shown}
    assert [each["v"] for each in groups] == [shown] * len(groups)
    assert run_query(people, nothing, {"v": value}).rows() == []
    assert run_query(people, listed, {"v": value}).rows() == []
