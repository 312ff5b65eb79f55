"""Edges that join the same two nodes are counted one by one, and their ends grouped as one."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og

SCHEMA = """
node Person { slug: String @key  age: I64? }
edge Knows: Person -> Person { since: I64? }
"""
PEOPLE = 40
"""Enough for one of them to be few."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    path: Path = tmp_path_factory.mktemp("parallel") / "graph"
    made = og.init(path, schema=SCHEMA, durability="process")
    people = [{"type": "Person", "data": {"slug": f"p{n}", "age": n}} for n in range(PEOPLE)]
    pairs = [("p0", "p1"), ("p0", "p1"), ("p0", "p1"), ("p0", "p2"), ("p3", "p0"), ("p3", "p0")]
    edges = [
        {"edge": "Knows", "from": source, "to": target, "data": {"since": number}}
        for number, (source, target) in enumerate(pairs)
    ]
    made.load([*people, *edges], mode="overwrite")
    return made


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ('$a: Person  $a $e:knows $b  $b.slug = "p1"', {"p0": 3}),
        ('$b: Person  $b $e:knows $a  $b.slug = "p0"', {"p1": 3, "p2": 1}),
        ('$b: Person  $b $e:<knows> $a  $b.slug = "p0"', {"p1": 3, "p2": 1, "p3": 2}),
        # Not bound, an edge is a pair of ends, however often it is stored.
        ('$b: Person  $b knows $a  $b.slug = "p0"', {"p1": 1, "p2": 1}),
    ],
)
def test_a_group_is_one_row_whatever_leads_to_it(
    graph: og.Graph, pattern: str, expected: dict[str, int]
) -> None:
    query = f"query q() {{ match {{ {pattern} }} return {{ $a.slug, count($b) as n }} }}"

    rows = [tuple(row.values()) for row in graph.query(query).rows()]

    assert sorted(rows) == sorted(expected.items())


def test_sums_and_extremes_take_every_parallel_edge(graph: og.Graph) -> None:
    query = (
        'query q() { match { $b: Person  $b $e:knows $a  $b.slug = "p0" } '
        "return { $a.slug, sum($e.since) as total, min($e.since) as least, "
        "max($e.since) as greatest } order { $a.slug } }"
    )

    assert [tuple(row.values()) for row in graph.query(query).rows()] == [
        ("p1", 3, 0, 2),
        ("p2", 3, 3, 3),
    ]
