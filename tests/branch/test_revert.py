"""Revert: what a commit did is taken back, and what came after it stays or is a conflict."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.branch.merge import MergeOutcome, MergePreview, MergeResult
from omnigraph.errors import (
    BadRequestError,
    CommitNotFound,
    CommitNotReplayable,
    CommitStateGone,
    MergeConflicts,
    PolicyError,
)
from omnigraph.policy import load_policy
from omnigraph.testing.together import run_together
from tests.branch.people import CHANGES, SCHEMA, change, new_people, snapshot_state, state_of
from tests.policy.bundles import bundle_of, rule


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "graph")


def commit(graph: og.Graph, what: str, branch: str = "main", **params: Any) -> str:
    made = graph.mutate(CHANGES, what, params, branch=branch, message=f"{what} it").commit_id
    assert made is not None
    return made


def reverted(graph: og.Graph, *commits: str, **options: Any) -> MergeResult:
    result = graph.revert(*commits, **options)
    assert isinstance(result, MergeResult)
    return result


def kinds(error: MergeConflicts) -> list[tuple[str, str, str | None]]:
    return [(each.kind, each.table_key, each.row_id) for each in error.conflicts]


def test_the_last_commit_is_taken_back_as_a_commit_of_its_own(graph: og.Graph) -> None:
    before = state_of(graph)
    made = commit(graph, "age", name="bob", age=26)

    result = reverted(graph, made, actor="ada")

    head = graph.commits()[0]
    assert state_of(graph) == before
    assert (result.source, result.target, result.outcome) == (made, "main", MergeOutcome.MERGED)
    assert result.tables["node:Person"].updated == 1
    assert (head.commit_id, head.parent_id, head.actor) == (result.commit_id, made, "ada")
    assert head.merged_parent_id is None
    assert (head.message, dict(head.metadata)) == ('Revert "age it"', {"reverts": made})
    assert graph.verify().is_clean


def test_what_came_later_stays(graph: og.Graph) -> None:
    made = commit(graph, "gone", name="bob")  # takes two edges along
    change(graph, "age", name="alice", age=31)
    change(graph, "person", name="eve", age=1)

    reverted(graph, made)

    people = state_of(graph)["node:Person"]
    assert set(people) == {"alice", "bob", "carol", "dan", "eve"}
    assert (people["alice"]["age"], people["bob"]["age"]) == (31, 25)
    assert len(state_of(graph)["edge:Knows"]) == len(state_of(graph)["edge:WorksAt"]) == 1
    assert graph.verify().is_clean


def test_a_revert_of_a_revert_brings_the_change_back(graph: og.Graph) -> None:
    made = commit(graph, "gone", name="bob")
    after = state_of(graph)
    undo = reverted(graph, made).commit_id
    assert undo is not None

    again = reverted(graph, undo)

    assert state_of(graph) == after
    assert graph.commits()[0].message == 'Revert "Revert "gone it""'
    assert again.tables["edge:Knows"].deleted == 1


def test_what_is_undone_already_makes_no_commit(graph: og.Graph) -> None:
    made = commit(graph, "age", name="bob", age=26)
    reverted(graph, made)
    commits = graph.commits()

    again = reverted(graph, made)

    assert (again.outcome, again.commit_id) == (MergeOutcome.ALREADY_UP_TO_DATE, None)
    assert graph.commits() == commits


def test_a_later_edit_of_the_same_row_is_a_conflict(graph: og.Graph) -> None:
    made = commit(graph, "age", name="bob", age=26)
    change(graph, "age", name="bob", age=27)
    before = state_of(graph)

    with pytest.raises(MergeConflicts, match="revert conflicts: node:Person 'bob'") as refused:
        reverted(graph, made)

    [conflict] = refused.value.conflicts
    assert conflict.kind == "divergent_update"
    sides = [side["age"] for side in (conflict.base, conflict.ours, conflict.theirs) if side]
    assert sides == [26, 27, 25]
    assert "main is unchanged" in refused.value.render()
    assert state_of(graph) == before


@pytest.mark.parametrize(("side", "age"), [("ours", 27), ("theirs", 25)])
def test_a_conflict_is_resolved_as_in_a_merge(graph: og.Graph, side: Any, age: int) -> None:
    made = commit(graph, "age", name="bob", age=26)
    change(graph, "age", name="bob", age=27)

    reverted(graph, made, resolve=side)

    assert state_of(graph)["node:Person"]["bob"]["age"] == age


def test_an_edge_on_a_node_that_goes_is_a_conflict(graph: og.Graph) -> None:
    made = commit(graph, "person", name="eve", age=1)
    change(graph, "knows", a="alice", b="eve")
    [edge] = [i for i, row in state_of(graph)["edge:Knows"].items() if row["dst"] == "eve"]

    with pytest.raises(MergeConflicts) as refused:
        reverted(graph, made)
    reverted(graph, made, resolve=[{"table_key": "edge:Knows", "row_id": edge, "take": "theirs"}])

    assert kinds(refused.value) == [("orphan_edge", "edge:Knows", edge)]
    assert "eve" not in state_of(graph)["node:Person"]
    assert edge not in state_of(graph)["edge:Knows"]


def test_rules_of_the_schema_are_checked(graph: og.Graph) -> None:
    quit_job = commit(graph, "quit", a="bob")
    change(graph, "works", a="bob", b="f2")
    change(graph, "email", name="bob", email="b@x")
    renamed = commit(graph, "email", name="bob", email="bob@x")
    change(graph, "email", name="dan", email="b@x")

    with pytest.raises(MergeConflicts) as cardinality:
        reverted(graph, quit_job)
    with pytest.raises(MergeConflicts) as unique:
        reverted(graph, renamed)

    assert kinds(cardinality.value)[0][:2] == ("cardinality_violation", "edge:WorksAt")
    assert kinds(unique.value) == [("unique_violation", "node:Person", "bob")]


def test_a_preview_says_all_and_writes_nothing(graph: og.Graph) -> None:
    made = commit(graph, "age", name="bob", age=26)
    other = commit(graph, "person", name="eve", age=1)
    change(graph, "age", name="bob", age=27)
    commits = graph.commits()

    found = og.open(graph.uri, mode="r").revert(made, other, preview=True)

    assert isinstance(found, MergePreview)
    assert [(each.op, each.id) for each in found.changes] == [("delete", "eve")]
    assert [each.row_id for each in found.conflicts] == ["bob"]
    assert graph.commits() == commits


# Merges


def merge_dev(graph: og.Graph) -> str:
    graph.create_branch("dev")
    change(graph, "person", branch="dev", name="eve", age=1)
    change(graph, "gone", branch="dev", name="dan")
    change(graph, "age", name="alice", age=31)
    merged = graph.merge("dev").commit_id
    assert merged is not None
    return merged


def test_a_merge_is_taken_back_to_its_first_parent(graph: og.Graph) -> None:
    merged = merge_dev(graph)
    parent = snapshot_state(graph, graph.snapshot("main~1"))

    reverted(graph, merged)

    assert state_of(graph) == parent


def test_a_merge_on_which_others_built_is_taken_back_by_choice(graph: og.Graph) -> None:
    merged = merge_dev(graph)
    change(graph, "knows", a="alice", b="eve")
    change(graph, "person", name="dan", age=99)

    with pytest.raises(MergeConflicts) as refused:
        reverted(graph, merged)
    reverted(graph, merged, resolve="theirs")

    assert {each[0] for each in kinds(refused.value)} == {"orphan_edge", "divergent_insert"} or {
        each[0] for each in kinds(refused.value)
    } == {"orphan_edge", "divergent_update"}
    people = state_of(graph)["node:Person"]
    assert "eve" not in people
    assert people["dan"]["age"] == 50
    assert graph.verify().is_clean


def test_a_branch_can_be_merged_after_its_merge_was_reverted_only_with_new_work(
    graph: og.Graph,
) -> None:
    """As with git: what was merged counts as seen; a revert of the revert brings it back."""
    undo = reverted(graph, merge_dev(graph)).commit_id

    assert graph.merge("dev").outcome is MergeOutcome.ALREADY_UP_TO_DATE
    assert undo is not None
    reverted(graph, undo)
    assert "eve" in state_of(graph)["node:Person"]


def test_a_merged_commit_can_be_taken_back_alone(graph: og.Graph) -> None:
    graph.create_branch("dev")
    one = commit(graph, "person", "dev", name="eve", age=1)
    change(graph, "person", branch="dev", name="fay", age=2)
    graph.merge("dev", delete_branch=True)

    reverted(graph, one)

    assert set(state_of(graph)["node:Person"]) >= {"fay"}
    assert "eve" not in state_of(graph)["node:Person"]


# Several commits


def test_several_commits_are_one_commit(graph: og.Graph) -> None:
    start = state_of(graph)
    made = [
        commit(graph, "age", name="bob", age=26),
        commit(graph, "age", name="bob", age=27),
        commit(graph, "person", name="eve", age=1),
    ]

    result = reverted(graph, *made)

    assert state_of(graph) == start
    assert graph.commits()[0].message == "Revert 3 commits"
    assert graph.commits()[0].metadata["reverts"].split() == made
    assert result.outcome is MergeOutcome.MERGED


def test_commits_with_others_between_them_are_put_together(graph: og.Graph) -> None:
    """The rows of one table come from several of its versions."""
    first = commit(graph, "age", name="bob", age=26)
    change(graph, "age", name="alice", age=31)
    second = commit(graph, "gone", name="carol")
    change(graph, "person", name="eve", age=1)
    third = commit(graph, "age", name="bob", age=27)

    reverted(graph, second, first, third)

    people = state_of(graph)["node:Person"]
    assert {name: row["age"] for name, row in people.items()} == {
        "alice": 31,
        "bob": 25,
        "carol": 40,
        "dan": 50,
        "eve": 1,
    }
    assert len(state_of(graph)["edge:Knows"]) == 1
    assert graph.verify().is_clean


@pytest.mark.parametrize(("side", "age"), [(None, None), ("ours", 28), ("theirs", 25)])
def test_a_commit_left_out_between_two_is_a_conflict(
    graph: og.Graph, side: Any, age: int | None
) -> None:
    first = commit(graph, "age", name="bob", age=26)
    change(graph, "age", name="bob", age=27)
    third = commit(graph, "age", name="bob", age=28)

    if side is None:
        with pytest.raises(MergeConflicts) as refused:
            reverted(graph, first, third)
        assert kinds(refused.value) == [("divergent_update", "node:Person", "bob")]
    else:
        reverted(graph, first, third, resolve=side)
        assert state_of(graph)["node:Person"]["bob"]["age"] == age


def test_a_member_of_a_group_is_taken_back_alone(graph: og.Graph) -> None:
    calls = [
        partial(graph.mutate, CHANGES, "person", {"name": name}) for name in ("eve", "fay", "gus")
    ]
    _, fay, _ = run_together(graph, calls)

    reverted(graph, fay.commit_id)

    assert set(state_of(graph)["node:Person"]) == {"alice", "bob", "carol", "dan", "eve", "gus"}


def test_an_actor_is_taken_back_since_a_time(graph: og.Graph) -> None:
    graph.mutate(CHANGES, "person", {"name": "old"}, actor="bot")
    since = graph.commits()[0].created_at + 1
    graph.mutate(CHANGES, "person", {"name": "eve"}, actor="bot")
    graph.mutate(CHANGES, "person", {"name": "fay"}, actor="ada")
    graph.mutate(CHANGES, "age", {"name": "bob", "age": 1}, actor="bot")
    moment = datetime.fromtimestamp(since / 1e6, UTC)

    graph.revert_session(actor="bot", since=moment, by="ada")

    people = state_of(graph)["node:Person"]
    assert set(people) == {"alice", "bob", "carol", "dan", "old", "fay"}
    assert people["bob"]["age"] == 25
    assert graph.commits()[0].actor == "ada"


def test_a_session_is_known_by_its_metadata(graph: og.Graph) -> None:
    graph.mutate(CHANGES, "person", {"name": "eve"}, metadata={"session": "s-1"})
    graph.mutate(CHANGES, "person", {"name": "fay"})

    graph.revert_session(session="s-1")

    assert set(state_of(graph)["node:Person"]) == {"alice", "bob", "carol", "dan", "fay"}
    with pytest.raises(BadRequestError, match="give actor, or session"):
        graph.revert_session()
    with pytest.raises(BadRequestError, match="has no such commits by 'eve'"):
        graph.revert_session(actor="eve")


# What cannot be


def test_a_commit_whose_state_a_cleanup_removed_is_refused(graph: og.Graph) -> None:
    made = commit(graph, "age", name="bob", age=26)
    for age in range(5):
        change(graph, "age", name="alice", age=age)
    graph.cleanup(keep=1, older_than=timedelta(0), confirm=True)
    before = state_of(graph)

    with pytest.raises(CommitStateGone, match="a cleanup removed it"):
        reverted(graph, made)

    assert state_of(graph) == before


def _schema_change(graph: og.Graph) -> str:
    changed = graph.apply_schema(SCHEMA.replace("node Firm {", "node Firm { town: String?"))
    assert changed.commit_id is not None
    return changed.commit_id


BAD: dict[str, tuple[Callable[[og.Graph], tuple[str, ...]], type[Exception], str]] = {
    "no commit": (lambda _: (), BadRequestError, "no commit is named"),
    "unknown": (lambda _: ("0" * 26,), CommitNotFound, "not found"),
    "the first": (
        lambda g: (g.commits()[-1].commit_id,),
        CommitNotReplayable,
        "is the first one: there is nothing before it; nothing was written",
    ),
    "a schema change": (
        lambda g: (_schema_change(g),),
        CommitNotReplayable,
        "changed the schema — apply the schema that you want",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_reverted_is_refused_by_name(case: str, graph: og.Graph) -> None:
    make, kind, text = BAD[case]
    commits = make(graph)
    before = state_of(graph)

    with pytest.raises(kind, match=text):
        reverted(graph, *commits)

    assert state_of(graph) == before


def test_a_commit_of_another_branch_is_refused(graph: og.Graph) -> None:
    graph.create_branch("dev")
    made = commit(graph, "person", "dev", name="eve")

    with pytest.raises(BadRequestError, match="is no part of branch 'main'"):
        reverted(graph, made)
    with pytest.raises(BadRequestError, match="written by revert itself"):
        reverted(graph, made, branch="dev", metadata={"reverts": "x"})


def test_a_policy_decides_who_reverts(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "graph")
    made = commit(graph, "age", name="bob", age=26)
    policy = load_policy(bundle_of(rule("actions: [change]")), name="one", resource="x")

    with og.open(graph.uri, policy=policy) as bound:
        with pytest.raises(PolicyError):
            bound.revert(made, actor="eve")
        bound.revert(made, actor="ann")


def test_a_commit_from_before_a_schema_change_is_taken_back(graph: og.Graph) -> None:
    made = commit(graph, "gone", name="bob")
    renamed = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")').replace(
        "@range(age", "@range(years"
    )
    graph.apply_schema(renamed.replace("node Firm", "node Town { n: String @key }\nnode Firm"))

    reverted(graph, made)

    assert state_of(graph)["node:Person"]["bob"]["years"] == 25
    assert len(state_of(graph)["edge:Knows"]) == 1
    assert graph.verify().is_clean


def test_a_property_that_may_not_be_null_by_now_refuses_old_rows(graph: og.Graph) -> None:
    made = commit(graph, "gone", name="dan")
    graph.apply_schema(SCHEMA.replace("age: I32?", 'age: I32?\n    nick: String @default("x")'))
    before = state_of(graph)

    with pytest.raises(MergeConflicts) as refused:
        reverted(graph, made)

    assert kinds(refused.value) == [("value_constraint_violation", "node:Person", "dan")]
    assert "nick" in refused.value.conflicts[0].message
    assert state_of(graph) == before


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_number_that_has_no_room_by_now_is_not_lost(graph: og.Graph, is_alone: bool) -> None:
    wide = SCHEMA.replace("since: I32?", "since: I64?")
    graph.apply_schema(wide)
    made = [commit(graph, "apart", a="bob")]
    if not is_alone:
        change(graph, "knows", a="alice", b="bob")
        made.append(commit(graph, "apart", a="alice"))
    graph.apply_schema(SCHEMA)
    before = state_of(graph)

    with pytest.raises(og.errors.ConflictError, match=r"'Knows\.since' was int64 then"):
        reverted(graph, *made)

    assert state_of(graph) == before


def test_branches_revert_too(graph: og.Graph) -> None:
    made = commit(graph, "age", name="bob", age=26)
    graph.create_branch("dev")

    reverted(graph, made, branch="dev")

    assert state_of(graph, "dev")["node:Person"]["bob"]["age"] == 25
    assert state_of(graph)["node:Person"]["bob"]["age"] == 26
