"""Hop-bounded walks: every node once, at its shortest distance; loops as the language says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.executor.closing import Members
from omnigraph.executor.kernels import expand, reach, starts_per_pass, sum_along, walk
from omnigraph.graph import Graph
from omnigraph.index import Selection
from omnigraph.index.adjacency import Endpoints, Relation, build_distinct_relation
from tests.depth import depth
from tests.executor.running import run_query

SIZE = 6
Edges = list[tuple[int, int]]

edges_strategy = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14)


def relation_of(edges: Edges) -> Relation:
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return build_distinct_relation(Endpoints(pairs[:, 0], pairs[:, 1]), (SIZE, SIZE))


def distances(edges: Edges, start: int) -> dict[int, int]:
    found, frontier = {start: 0}, [start]
    for hop in range(1, SIZE + 1):
        ahead = {b for a, b in edges if a in frontier and b not in found}
        found |= dict.fromkeys(ahead, hop)
        frontier = list(ahead)
    return found


@pytest.mark.accepts("S-170")
@settings(max_examples=depth(60, 500), deadline=None)
@given(edges_strategy, st.integers(1, 4), st.integers(0, 4))
def test_a_walk_emits_what_lies_within_the_bounds(edges: Edges, least: int, more: int) -> None:
    """A node one hop short of the bounds that has a loop is emitted through it."""
    relation, hops = relation_of(edges), (least, least + more)
    loops = {a for a, b in edges if a == b}

    rows, nodes = walk(
        relation.forward, np.arange(SIZE), hops, relation.forward.loops, loop_at_start=False
    )

    expected = {
        (start, node)
        for start in range(SIZE)
        for node, distance in distances(edges, start).items()
        if (distance > 0 and least <= distance <= least + more)
        or (distance == least - 1 and node in loops)
    }
    found = list(zip(rows.tolist(), nodes.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == expected


@settings(max_examples=depth(40, 500), deadline=None)
@given(edges_strategy, st.integers(1, 3), st.integers(0, 3))
def test_a_walk_from_the_other_end_finds_the_same_pairs(
    edges: Edges, least: int, more: int
) -> None:
    relation, hops = relation_of(edges), (least, least + more)
    loops = relation.forward.loops

    ahead = walk(relation.forward, np.arange(SIZE), hops, loops, loop_at_start=False)
    back = walk(relation.backward, np.arange(SIZE), hops, loops, loop_at_start=True)

    assert set(zip(*ahead, strict=True)) == set(zip(back[1], back[0], strict=True))


@settings(max_examples=depth(40, 500), deadline=None)
@given(edges_strategy, st.lists(st.integers(0, 3), min_size=SIZE, max_size=SIZE))
def test_sums_and_reach_agree_with_the_edges(edges: Edges, weights: list[int]) -> None:
    """Whatever way along the edges is chosen."""
    relation = relation_of(edges)
    distinct = set(edges)
    children = Selection(SIZE, mask=np.array(weights) > 0)

    for given_weights in (np.array(weights), np.array(weights, dtype=float)):
        total = sum_along(lambda: relation.forward, lambda: relation.backward, given_weights, SIZE)
        assert total.tolist() == [
            sum(weights[b] for a, b in distinct if a == node) for node in range(SIZE)
        ]
    for parents in (Selection(SIZE), Selection(SIZE, positions=np.array([0, 3]))):
        found = reach(lambda: relation.forward, lambda: relation.backward, parents, children)
        assert found.positions().tolist() == sorted(
            {a for a, b in distinct if weights[b] > 0 and parents.mask()[a]}
        )


@settings(max_examples=depth(40, 500), deadline=None)
@given(edges_strategy, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_the_pairs_that_an_edge_joins_are_found(edges: Edges, pairs: Edges) -> None:
    members = Members(relation_of(edges).forward, SIZE)
    wanted = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    found, _, _ = members.find(wanted[:, 0], wanted[:, 1])

    assert found.tolist() == [place for place, pair in enumerate(pairs) if pair in set(edges)]


def test_expansion_keeps_the_order_of_its_sources() -> None:
    csr = relation_of([(0, 3), (0, 1), (2, 2)]).forward

    rows, places = expand(csr, np.array([2, 1, 0]))

    assert rows.tolist() == [0, 2, 2]
    assert csr.neighbours(places).tolist() == [2, 1, 3]


@pytest.mark.accepts("S-170")
@pytest.mark.parametrize(
    ("walked", "names"),
    [
        ("knows", ["bo"]),
        ("knows{1,2}", ["bo", "cy"]),
        ("knows{2,2}", ["bo", "cy"]),  # bo again, through its loop
        ("knows{1,9}", ["bo", "cy"]),  # a cycle does not return to its start
        ("knows{3,9}", []),
        ("<knows>", ["bo", "cy"]),
        ("<knows>{2,3}", ["bo"]),
    ],
)
def test_bounds_cycles_and_loops(people: Graph, walked: str, names: list[str]) -> None:
    query = (
        f'query q() {{ match {{ $a: Person {{ name: "ada" }} $a {walked} $b }} return {{ $b }} }}'
    )

    rows = run_query(people, query).rows()

    assert sorted(row["b"] for row in rows) == names


def test_bounds_beyond_every_distance_end_with_the_graph(people: Graph) -> None:
    query = """query q() { match { $a: Person { name: "ada" } $a knows{1,2000000000} $b }
               return { count($b) as n } }"""

    assert run_query(people, query).rows() == [{"n": 2}]


def test_a_search_that_goes_far_starts_from_fewer_nodes_where_there_are_many_edges() -> None:
    """A level of it may look at every edge for every start: that, too, is held at once."""
    dense = relation_of([(a, b) for a in range(SIZE) for b in range(SIZE)]).forward
    pairs = 6 * SIZE**2

    assert starts_per_pass(dense, pairs, None) * dense.count <= pairs
    assert starts_per_pass(dense, pairs, 10**9) == starts_per_pass(dense, pairs, None)
    assert starts_per_pass(dense, pairs, 1) * dense.size > pairs / 2
    assert starts_per_pass(dense, 1, None) == 1
