"""Adjacency: both directions of an edge table, with and without parallel edges."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.index.adjacency import (
    Endpoints,
    Pairs,
    build_distinct_relation,
    build_edge_relation,
    select_pairs,
)
from omnigraph.index.runs import FewRuns, Runs

#  0 → 1 (twice), 0 → 2, 1 → 1, 2 → 0, and an edge whose target is gone
ENDS = Endpoints(np.array([0, 2, 0, 1, 0, 1]), np.array([1, 0, 2, 1, 1, -1]))


def runs(csr: Runs) -> list[list[int]]:
    return [
        csr.flat.targets[csr.flat.offsets[place] : csr.flat.offsets[place + 1]].tolist()
        for place in range(csr.size)
    ]


@pytest.mark.accepts("S-168")
def test_a_distinct_relation_has_each_neighbour_once_in_both_directions() -> None:
    relation = build_distinct_relation(ENDS, (3, 3))

    assert runs(relation.forward) == [[1, 2], [1], [0]]
    assert runs(relation.backward) == [[2], [0, 1], [0]]


@pytest.mark.accepts("S-168")
def test_a_stored_relation_keeps_parallel_edges_and_names_each() -> None:
    relation = build_edge_relation(ENDS, (3, 3))

    assert runs(relation.forward) == [[1, 1, 2], [1], [0]]
    assert relation.forward.edges is not None
    assert relation.forward.edges.tolist() == [0, 4, 2, 3, 1]
    assert runs(relation.backward) == [[2], [0, 0, 1], [0]]


def test_an_edge_leads_both_ways_and_a_loop_once() -> None:
    assert runs(build_distinct_relation(ENDS, (3, 3), both=True).forward) == [[1, 2], [0, 1], [0]]
    assert runs(build_edge_relation(ENDS, (3, 3), both=True).forward) == [
        [1, 1, 2, 2],
        [0, 0, 1],
        [0, 0],
    ]


def test_edges_that_are_not_kept_relate_nothing() -> None:
    keep = np.array([False, True, True, False, True, True])

    assert runs(select_pairs(ENDS, (3, 3), keep).forward) == [[1, 2], [], [0]]


def test_pairs_seen_backwards_are_the_same_pairs() -> None:
    pairs = Pairs(np.array([1, 0, 1]), np.array([4, 2, 0]), None, (2, 5))

    assert runs(pairs.forward) == [[2], [0, 4]]
    assert runs(pairs.reverse().forward) == runs(pairs.backward) == [[1], [], [0], [], [1]]


def test_facts_of_a_side_are_those_of_its_runs() -> None:
    csr = build_distinct_relation(ENDS, (3, 3)).forward

    assert csr.degree.tolist() == [2, 1, 1]
    assert csr.is_total
    assert not csr.is_function
    assert csr.loops.tolist() == [False, True, False]


@pytest.mark.parametrize("sizes", [(0, 0), (3, 0), (0, 3)])
def test_no_edges_make_an_empty_relation(sizes: tuple[int, int]) -> None:
    nothing = np.empty(0, dtype=np.int64)

    relation = build_distinct_relation(Endpoints(nothing, nothing), sizes)

    assert (relation.forward.size, relation.backward.size) == sizes
    assert relation.forward.count == 0


def test_runs_of_a_few_positions_are_those_of_the_whole() -> None:
    """However few the pairs are, each position has the same neighbours."""
    pairs = Pairs(np.array([90, 3, 90, 7]), np.array([2, 1, 0, 7]), None, (100, 10))
    few = pairs.forward

    assert isinstance(few, FewRuns)
    assert runs(few)[90] == [0, 2]
    starts, ends = few.runs(np.array([90, 4, 3]))
    assert (ends - starts).tolist() == [2, 0, 1]
    assert few.with_neighbour().positions().tolist() == [3, 7, 90]
    assert np.flatnonzero(few.loops).tolist() == [7]
    assert not isinstance(pairs.backward, FewRuns)
