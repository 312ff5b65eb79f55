"""Races of real processes on one local graph."""

from __future__ import annotations

from collections import Counter

import pytest

import omnigraph as og
from tests.depth import depth
from tests.graph.racers import (
    delete_nodes,
    insert_edges,
    insert_one_key,
    open_again,
    race,
    update_one_row,
    upsert_keys,
)
from tests.graph.reading import ages, heads, links, names, pins, rows, sidecars

pytestmark = pytest.mark.xdist_group("races")


def is_whole(graph: og.Graph) -> bool:
    """HEAD is the pin of every table, and no sidecar is left."""
    return heads(graph) == pins(graph) and sidecars(graph) == []


@pytest.mark.accepts("S-123")
def test_upserts_of_the_same_keys_double_nothing_and_lose_nothing(graph: og.Graph) -> None:
    """Four processes upsert the same ten keys, while a fifth keeps opening the graph."""
    count = depth(10, 100)
    writers = [(upsert_keys, (number, 10, count)) for number in range(4)]

    *acknowledged, _ = race([*writers, (open_again, (5,))], graph.uri)

    answers = [answer for one in acknowledged for answer in one]
    commits = {commit.commit_id: commit for commit in graph.commits()}
    assert len(answers) == 4 * count
    assert len(commits) == 4 * count + 1
    assert names(graph) == [f"k{number}" for number in range(10)]
    in_order = sorted(answers, key=lambda answer: commits[answer[2]].manifest_version)
    assert ages(graph) == {name: age for name, age, _ in in_order}
    assert is_whole(graph)


@pytest.mark.accepts("S-145")
def test_an_edge_and_the_delete_of_its_node_never_leave_the_edge_dangling(graph: og.Graph) -> None:
    rounds = depth(15, 200)
    people = ["hub", *(f"n{number}" for number in range(rounds))]
    graph.load([{"type": "Person", "data": {"name": name}} for name in people], mode="append")

    inserted, deleted = race([(insert_edges, (rounds,)), (delete_nodes, (rounds,))], graph.uri)

    known = set(names(graph))
    assert [link for link in links(graph) if not known.issuperset(link)] == []
    for number in range(rounds):
        # A node that is gone took its edge along; one that stayed won against its delete.
        assert (f"n{number}" in known) == (deleted[number] == "lost")
        assert (inserted[number], deleted[number]) != ("refused", "lost")
    kept = Counter(target for _, target in links(graph))
    assert set(kept.values()) <= {1}
    assert is_whole(graph)


@pytest.mark.accepts("S-145", "S-146")
def test_of_processes_that_update_one_row_from_one_view_exactly_one_wins(graph: og.Graph) -> None:
    rounds = depth(5, 12)
    graph.load([{"type": "Person", "data": {"name": "hub"}}], mode="append")
    first = pins(graph)["node:Person"]

    outcomes = race([(update_one_row, (number, rounds)) for number in range(3)], graph.uri)

    for number in range(rounds):
        losers = [one[number] for one in outcomes if one[number] is not None]
        assert losers == [("node:Person", first + number, first + number + 1)] * 2
    assert len(graph.commits()) == 2 + rounds
    assert is_whole(graph)


def test_a_strict_insert_of_one_key_has_exactly_one_winner(graph: og.Graph) -> None:
    rounds = depth(5, 10)

    outcomes = race([(insert_one_key, (rounds,)) for _ in range(3)], graph.uri)

    assert [sum(one[number] for one in outcomes) for number in range(rounds)] == [1] * rounds
    assert [row["code"] for row in rows(graph, "Firm")] == sorted(f"f{i}" for i in range(rounds))
    assert is_whole(graph)
