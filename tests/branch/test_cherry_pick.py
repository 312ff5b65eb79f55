"""Cherry-pick: the change of a commit is made again on another branch."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.branch.choices import Resolution
from omnigraph.branch.merge import MergeOutcome, MergePreview
from omnigraph.errors import CommitNotReplayable, MergeConflicts
from tests.branch.people import change, new_people, state_of
from tests.branch.test_revert import commit, kinds


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = new_people(tmp_path / "graph")
    graph.create_branch("dev")
    return graph


def test_only_the_commit_that_is_named_comes_over(graph: og.Graph) -> None:
    change(graph, "person", branch="dev", name="eve", age=1)
    made = commit(graph, "age", "dev", name="bob", age=26)
    change(graph, "gone", branch="dev", name="dan")

    result = graph.cherry_pick(made, into="main", actor="ada")

    ages = {name: row["age"] for name, row in state_of(graph)["node:Person"].items()}
    assert ages == {"alice": 30, "bob": 26, "carol": 40, "dan": 50}
    head = graph.commits()[0]
    assert (head.commit_id, head.actor, head.merged_parent_id) == (result.commit_id, "ada", None)
    assert head.metadata["cherry_picked_from"] == made
    assert head.message == 'Cherry-pick "age it"'
    assert graph.verify().is_clean


def test_a_merge_afterwards_finds_the_change_done(graph: og.Graph) -> None:
    made = commit(graph, "person", "dev", name="eve", age=1)
    change(graph, "person", branch="dev", name="fay", age=2)
    graph.cherry_pick(made, into="main")

    merged = graph.merge("dev")

    assert merged.tables["node:Person"].inserted == 1
    assert {"eve", "fay"} <= set(state_of(graph)["node:Person"])


def test_several_are_one_commit_in_the_order_they_are_named(graph: og.Graph) -> None:
    one = commit(graph, "person", "dev", name="eve", age=1)
    change(graph, "person", branch="dev", name="fay", age=2)
    three = commit(graph, "age", "dev", name="eve", age=3)
    before = len(graph.commits())

    graph.cherry_pick(one, three, into="main")

    people = state_of(graph)["node:Person"]
    assert people["eve"]["age"] == 3
    assert "fay" not in people
    assert len(graph.commits()) == before + 1


def test_a_row_that_has_to_give_way_to_several_is_what_it_is_there(graph: og.Graph) -> None:
    """The rows that are made are of several versions; the one that gives way is of the last."""
    one = commit(graph, "email", "dev", name="bob", email="x@x")
    change(graph, "age", "dev", name="alice", age=9)
    three = commit(graph, "age", "dev", name="dan", age=51)
    change(graph, "email", name="carol", email="x@x")

    graph.cherry_pick(one, three, into="main", resolve="theirs")

    rows = state_of(graph)["node:Person"]
    found = {name: (each["age"], each["email"]) for name, each in rows.items()}
    assert found == {
        "alice": (30, None), "bob": (25, "x@x"), "carol": (40, None), "dan": (51, None)
    }  # fmt: skip


def test_several_with_a_conflict_are_chosen_property_by_property(graph: og.Graph) -> None:
    one = commit(graph, "age", "dev", name="bob", age=26)
    change(graph, "age", "dev", name="alice", age=9)
    three = commit(graph, "email", "dev", name="bob", email="x@x")
    four = commit(graph, "age", "dev", name="dan", age=51)
    change(graph, "age", name="bob", age=27)

    picks: Resolution = {"node:Person": {"bob": {"age": "ours", "email": "theirs"}}}
    graph.cherry_pick(one, three, four, into="main", resolve=picks)

    rows = state_of(graph)["node:Person"]
    assert (rows["bob"]["age"], rows["bob"]["email"], rows["dan"]["age"]) == (27, "x@x", 51)


def test_another_order_is_a_conflict(graph: og.Graph) -> None:
    one = commit(graph, "person", "dev", name="eve", age=1)
    change(graph, "person", branch="dev", name="fay", age=2)
    three = commit(graph, "age", "dev", name="eve", age=3)

    with pytest.raises(MergeConflicts, match="cherry-pick conflicts") as refused:
        graph.cherry_pick(three, one, into="main")

    assert {each[2] for each in kinds(refused.value)} == {"eve"}


def test_rows_that_are_different_there_are_conflicts(graph: og.Graph) -> None:
    made = commit(graph, "age", "dev", name="bob", age=26)
    change(graph, "age", name="bob", age=99)

    found = graph.cherry_pick(made, into="main", preview=True)
    with pytest.raises(MergeConflicts):
        graph.cherry_pick(made, into="main")
    graph.cherry_pick(made, into="main", resolve="theirs")

    assert isinstance(found, MergePreview)
    assert [each.kind for each in found.conflicts] == ["divergent_update"]
    assert state_of(graph)["node:Person"]["bob"]["age"] == 26


def test_an_edge_needs_its_nodes(graph: og.Graph) -> None:
    change(graph, "person", branch="dev", name="eve", age=1)
    edge = commit(graph, "knows", "dev", a="eve", b="bob")

    with pytest.raises(MergeConflicts) as refused:
        graph.cherry_pick(edge, into="main")

    assert kinds(refused.value)[0][0] == "orphan_edge"


def test_what_is_there_already_makes_no_commit(graph: og.Graph) -> None:
    made = commit(graph, "person", "dev", name="eve", age=1)
    graph.cherry_pick(made, into="main")

    again = graph.cherry_pick(made, into="main")

    assert again.outcome is MergeOutcome.ALREADY_UP_TO_DATE


def test_the_first_commit_cannot_be_picked(graph: og.Graph) -> None:
    with pytest.raises(CommitNotReplayable):
        graph.cherry_pick(graph.commits()[-1].commit_id, into="dev")


def test_a_commit_outlives_its_branch_only_where_another_comes_from_it(graph: og.Graph) -> None:
    made = commit(graph, "person", "dev", name="eve", age=1)
    graph.create_branch("other")
    graph.merge("dev", into="other", delete_branch=True)

    graph.cherry_pick(made, into="main")

    assert "eve" in state_of(graph)["node:Person"]
