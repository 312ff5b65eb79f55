"""Graph algorithms against plain Python, on random graphs with loops and parallel edges."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, PreconditionFailed
from tests.algorithms import reference
from tests.depth import depth
from tests.ready import copy_ready

SCHEMA = """
node Person { name: String @key  score: F64?  group: String?  hops: I32? }
node Town { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> Town
"""


def random_graph(folder: Path, seed: int, nodes: int = 30, edges: int = 60) -> og.Graph:
    """A graph of which some nodes have no edge; node names are in no order."""
    rng = random.Random(seed)
    names = [f"p{number}" for number in rng.sample(range(100), nodes)]
    ends = [(rng.choice(names[:-3]), rng.choice(names[:-3])) for _ in range(edges)]
    ends += [ends[0], (names[0], names[0])]
    graph = og.init(folder / f"{seed}.omni", schema=SCHEMA, durability="process")
    records: list[dict[str, Any]] = [{"type": "Person", "data": {"name": name}} for name in names]
    records += [{"edge": "Knows", "from": source, "to": target} for source, target in ends]
    graph.load(records, mode="append")
    return graph


def shape(graph: og.Graph) -> tuple[list[str], reference.Edges]:
    nodes = sorted(row["id"] for row in graph.nodes("Person").to_arrow().to_pylist())
    edges = {(row["src"], row["dst"]) for row in graph.edges("Knows").to_arrow().to_pylist()}
    return nodes, edges


def run(graph: og.Graph, name: str, engine: str = "local", **params: Any) -> dict[str, Any]:
    """The first value of each node."""
    found = graph.algorithm(name, node="Person", edge="Knows", params=params, engine=engine)
    assert found.columns[0] == "id"
    return {row["id"]: row[found.columns[1]] for row in found}


NAMES = ("components", "pagerank", "triangles", "communities", "degrees", "distances")


def expect(graph: og.Graph, name: str, engine: str) -> None:
    """The algorithm gives what plain Python gives."""
    nodes, edges = shape(graph)
    ahead = {node: {t for s, t in edges if s == node} for node in nodes}
    behind = {node: {s for s, t in edges if t == node} for node in nodes}
    match name:
        case "pagerank":
            ranks = run(graph, name, engine, iterations=4, tolerance=0)
            assert ranks == pytest.approx(reference.pagerank(nodes, edges, 4))
        case "components":
            assert run(graph, name, engine) == reference.components(nodes, edges)
        case "communities":
            found = run(graph, name, engine, rounds=3)
            assert found == reference.communities(nodes, edges, 3)
        case "degrees":
            assert run(graph, name, engine) == {node: len(behind[node]) for node in nodes}
        case "triangles":
            assert run(graph, name, engine) == reference.triangles(nodes, edges)
        case _:
            start = min(source for source, _ in edges)
            near = reference.neighbours(nodes, edges)
            for direction, follow in (("out", ahead), ("in", behind), ("both", near)):
                params = {"from": [start], "direction": direction}
                expected = reference.distances(follow, [start])
                assert run(graph, "distances", engine, **params) == expected


@pytest.mark.parametrize("seed", range(depth(3, 40)))
def test_every_algorithm_agrees_with_plain_python(tmp_path: Path, seed: int) -> None:
    with random_graph(tmp_path, seed) as graph:
        for name in NAMES:
            expect(graph, name, "local")


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    copy_ready("algorithms", _make, tmp_path / "graph")
    return og.open(tmp_path / "graph")


def _make(path: Path) -> og.Graph:
    graph = og.init(path, schema=SCHEMA)
    records: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": name, "hops": 7}} for name in "abcd"
    ]
    records += [{"edge": "Knows", "from": s, "to": t} for s, t in ("ab", "bc", "ca")]
    graph.load(records, mode="append")
    return graph


def test_values_are_written_to_a_property_as_one_commit(graph: og.Graph) -> None:
    """The other properties stay, and a node without a value gets null."""
    before = len(graph.commits())

    result = graph.algorithm(
        "distances", node="Person", edge="Knows", params={"from": ["a"]}, write_to="hops"
    )

    rows = {row["id"]: row["hops"] for row in graph.nodes("Person").to_arrow().to_pylist()}
    assert rows == {"a": 0, "b": 1, "c": 2, "d": None}
    assert len(graph.commits()) == before + 1
    assert result.commit_id == graph.commits()[0].commit_id


def test_nothing_is_written_over_a_commit_that_came_between(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.graph import algorithms

    compute = algorithms.compute

    def meanwhile(*arguments: Any) -> Any:
        found = compute(*arguments)
        graph.load([{"type": "Person", "data": {"name": "a", "hops": 99}}], mode="merge")
        return found

    monkeypatch.setattr(algorithms, "compute", meanwhile)

    with pytest.raises(PreconditionFailed):
        graph.algorithm("degrees", node="Person", edge="Knows", write_to="hops")

    rows = {row["id"]: row["hops"] for row in graph.nodes("Person").to_arrow().to_pylist()}
    assert rows["a"] == 99


def test_an_empty_graph_has_no_rows(tmp_path: Path) -> None:
    with og.init(tmp_path / "g.omni", schema=SCHEMA) as graph:
        for name in ("pagerank", "components", "communities", "degrees", "triangles"):
            assert run(graph, name) == {}


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("pagernak", {}, "did you mean `pagerank`"),
        ("pagerank", {"params": {"dampng": 1}}, "it takes damping, iterations, tolerance"),
        ("pagerank", {"params": {"damping": 2}}, "expected a number from 0 to 1"),
        ("distances", {}, "needs the parameter 'from'"),
        ("distances", {"params": {"from": ["nope"]}}, "there is no node 'nope'"),
        ("degrees", {"edge": "LivesIn"}, "leads from Person to Town"),
        ("degrees", {"node": "Persn"}, "there is no node type 'Persn'"),
        ("degrees", {"write_to": "nope"}, "no property 'nope'"),
        ("components", {"write_to": "hops"}, "declare a property of a type"),
        ("degrees", {"engine": "inline"}, "expected one of"),
    ],
)
def test_a_wrong_request_is_named(
    graph: og.Graph, name: str, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(BadRequestError, match=text.replace("`", ".")):
        graph.algorithm(name, **{"node": "Person", "edge": "Knows", **options})
