"""Which commits a merge compares with, whatever happened to the branches since."""

from __future__ import annotations

import shutil
from datetime import timedelta
from itertools import combinations, product
from pathlib import Path

import pytest

import omnigraph as og
from tests.branch.people import change, merged, new_people, state_of
from tests.depth import cover
from tests.ready import copy_ready

pytestmark = pytest.mark.slow


@pytest.fixture
def people(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "people.omni")


def ages(graph: og.Graph, branch: str = "main") -> dict[str, int | None]:
    return {name: row["age"] for name, row in state_of(graph, branch)["node:Person"].items()}


def new_hotfixed(path: Path, *, delete: bool, is_late: bool = False) -> og.Graph:
    """People whose `hotfix` is in both; see `hotfix_into_both`."""

    def make(path: Path) -> og.Graph:
        graph = new_people(path)
        hotfix_into_both(graph, delete=delete, is_late=is_late)
        return graph

    copy_ready(f"hotfix {delete} {is_late}", make, path)
    return og.open(path, durability="process")


def hotfix_into_both(graph: og.Graph, *, delete: bool, is_late: bool = False) -> None:
    """`hotfix` changes alice and adds eve; main and dev each have changes of their own.

    With `is_late` dev parts from main after hotfix did, so that they have two bases.
    """
    graph.create_branch("hotfix")
    if not is_late:
        graph.create_branch("dev")
    change(graph, "age", branch="main", name="dan", age=51)
    if is_late:
        graph.create_branch("dev")
    change(graph, "age", branch="dev", name="carol", age=41)
    change(graph, "age", branch="hotfix", name="alice", age=31)
    change(graph, "person", branch="hotfix", name="eve", age=20)
    assert merged(graph, "hotfix", "main").outcome == "merged"
    assert merged(graph, "hotfix", "dev").outcome == "merged"
    if delete:
        graph.delete_branch("hotfix")


DELETIONS = cover(
    product(["alice", "eve", "bob"], [False, True], [False, True]),
    lambda case: {*combinations(enumerate(case), 2)},
)


@pytest.mark.parametrize(("name", "delete", "is_late"), DELETIONS)
def test_a_row_that_one_side_deleted_after_a_shared_merge_stays_deleted(
    tmp_path: Path, name: str, delete: bool, is_late: bool
) -> None:
    people = new_hotfixed(tmp_path / "graph", delete=delete, is_late=is_late)
    change(people, "gone", branch="dev", name=name)

    merged(people, "main", "dev")

    assert name not in ages(people, "dev")
    assert ages(people, "dev")["dan"] == 51
    merged(people, "dev", "main")
    assert ages(people) == ages(people, "dev")
    assert name not in ages(people)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("delete", [False, True])
def test_a_row_that_one_side_changed_after_a_shared_merge_is_no_conflict(
    tmp_path: Path, delete: bool, is_late: bool
) -> None:
    people = new_hotfixed(tmp_path / "graph", delete=delete, is_late=is_late)
    change(people, "age", branch="dev", name="eve", age=21)
    change(people, "age", branch="dev", name="alice", age=32)

    merged(people, "main", "dev")

    assert (ages(people, "dev")["eve"], ages(people, "dev")["alice"]) == (21, 32)


@pytest.mark.parametrize("delete", [False, True])
def test_both_sides_that_changed_a_row_after_a_shared_merge_conflict_over_it(
    tmp_path: Path, delete: bool
) -> None:
    people = new_hotfixed(tmp_path / "graph", delete=delete)
    change(people, "age", branch="dev", name="eve", age=21)
    change(people, "age", branch="main", name="eve", age=22)

    with pytest.raises(og.errors.MergeConflicts) as caught:
        people.merge("main", "dev")

    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.row_id) == ("divergent_update", "eve")
    assert conflict.base == {"age": 20}


def test_merges_of_an_older_omnigraph_are_known_when_their_source_is_deleted(
    people: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.manifest.publisher._select_unknown", lambda *_: ())
        hotfix_into_both(people, delete=False, is_late=True)

    people.delete_branch("hotfix")

    change(people, "gone", branch="dev", name="alice")
    merged(people, "main", "dev")
    assert "alice" not in ages(people, "dev")
    head = people.commits("main")[0]
    assert people.commit(str(head.merged_parent_id)).branch == "hotfix"


@pytest.mark.parametrize("is_brought", [True, False])
def test_a_short_log_is_the_beginning_of_the_whole_one(
    people: og.Graph, monkeypatch: pytest.MonkeyPatch, is_brought: bool
) -> None:
    """Also when commits of a merge are known from their branch alone, as in older graphs."""
    monkeypatch.setattr("omnigraph.manifest.history.FEW_COMMITS", 0)
    with monkeypatch.context() as patch:
        if not is_brought:
            patch.setattr("omnigraph.manifest.publisher._select_unknown", lambda *_: ())
        hotfix_into_both(people, delete=False, is_late=True)

    whole = people.log("main")

    assert {each.branch for each in whole} == {"main", "hotfix"}
    for limit in (0, 1, 3, 100):
        assert people.log("main", limit=limit) == whole[:limit]


def criss_cross(graph: og.Graph) -> None:
    """Two branches that took over each other's head, neither seeing the other's merge."""
    for branch in ("left", "right"):
        graph.create_branch(branch)
    change(graph, "age", branch="left", name="alice", age=31)
    change(graph, "age", branch="right", name="bob", age=26)
    graph.create_branch("right-before", "right")
    merged(graph, "left", "right")
    merged(graph, "right-before", "left")


def test_rows_of_criss_cross_merges_are_compared_with_both_bases(people: og.Graph) -> None:
    criss_cross(people)
    change(people, "gone", branch="left", name="bob")
    change(people, "age", branch="right", name="alice", age=33)

    merged(people, "left", "right")

    assert "bob" not in ages(people, "right")
    assert ages(people, "right")["alice"] == 33


def test_bases_that_disagree_on_a_row_make_different_sides_a_conflict(people: og.Graph) -> None:
    for branch in ("left", "right"):
        people.create_branch(branch)
    change(people, "age", branch="left", name="alice", age=31)
    change(people, "age", branch="right", name="alice", age=32)
    people.create_branch("right-before", "right")
    merged(people, "left", "right", resolve="ours")
    merged(people, "right-before", "left", resolve="ours")

    with pytest.raises(og.errors.MergeConflicts) as caught:
        people.merge("left", "right")

    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.row_id) == ("divergent_update", "alice")
    change(people, "age", branch="left", name="alice", age=32)
    merged(people, "left", "right")
    assert ages(people, "right")["alice"] == 32


def test_a_criss_cross_over_criss_crosses_needs_the_bases_of_its_bases(people: og.Graph) -> None:
    criss_cross(people)
    change(people, "age", branch="left", name="carol", age=41)
    change(people, "age", branch="right", name="dan", age=51)
    people.create_branch("right-later", "right")
    merged(people, "left", "right")
    merged(people, "right-later", "left")
    change(people, "gone", branch="left", name="dan")
    change(people, "gone", branch="left", name="alice")

    merged(people, "left", "right")

    assert ages(people, "right") == {"bob": 26, "carol": 41}


def test_commits_of_a_merged_branch_are_known_after_it_is_deleted(tmp_path: Path) -> None:
    people = new_hotfixed(tmp_path / "people.omni", delete=True)
    head = people.commits("main")[0]
    assert head.merged_parent_id is not None

    known = people.commit(head.merged_parent_id)

    assert known.branch == "hotfix"
    while known.parent_id is not None:
        known = people.commit(known.parent_id)
    assert head.merged_parent_id in [each.commit_id for each in people.log("main")]
    reopened = og.open(people.uri)
    assert reopened.commit(head.merged_parent_id).commit_id == head.merged_parent_id
    assert head.merged_parent_id not in [each.commit_id for each in reopened.commits("main")]


def test_a_merged_head_is_read_after_its_branch_is_deleted(tmp_path: Path) -> None:
    people = new_hotfixed(tmp_path / "people.omni", delete=True)
    merged_head = people.commits("main")[0].merged_parent_id

    rows = people.query(
        "query all() { match { $p: Person } return { $p.name, $p.age } }", commit=merged_head
    ).rows()

    assert {row["p.name"]: row["p.age"] for row in rows} == {
        "alice": 31, "bob": 25, "carol": 40, "dan": 50, "eve": 20
    }  # fmt: skip


def test_every_commit_of_a_merged_branch_answers_after_it_is_deleted(people: og.Graph) -> None:
    ages_query = "query all() { match { $p: Person } return { $p.name, $p.age } }"
    people.create_branch("work")
    people.create_branch("side", "work")
    commits = []
    for age in (31, 32, 33):
        change(people, "age", branch="work", name="alice", age=age)
        commits.append(people.commits("work")[0].commit_id)
    change(people, "age", branch="side", name="bob", age=26)
    commits.append(people.commits("side")[0].commit_id)
    merged(people, "side", "work")
    merged(people, "work", "main")
    change(people, "age", branch="work", name="alice", age=99)
    never_merged = people.commits("work")[0].commit_id
    before = {each: people.query(ages_query, commit=each).rows() for each in commits}

    people.delete_branch("side")
    people.delete_branch("work")

    for graph in (people, og.open(people.uri)):
        assert {each: graph.query(ages_query, commit=each).rows() for each in commits} == before
        with pytest.raises(og.errors.CommitNotFound):
            graph.commit(never_merged)
    people.cleanup(keep=1, older_than=timedelta(hours=1), confirm=True)
    assert {each: people.query(ages_query, commit=each).rows() for each in commits} == before
    people.cleanup(keep=1, confirm=True)
    with pytest.raises(og.errors.CommitStateGone, match="state is gone"):
        people.query(ages_query, commit=commits[0])
    assert people.commit(commits[0]).branch == "work"
    assert people.verify().is_clean


def test_a_merge_over_a_state_that_is_gone_is_refused_and_says_which(tmp_path: Path) -> None:
    people = new_hotfixed(tmp_path / "people.omni", delete=True)
    shutil.rmtree(Path(people.uri) / "__commits")
    change(people, "gone", branch="dev", name="alice")
    before = state_of(people, "dev")

    with pytest.raises(
        og.errors.ConflictError, match="of branch 'hotfix', whose state is no longer stored"
    ):
        people.merge("main", "dev")

    assert state_of(people, "dev") == before


def test_a_state_of_a_deleted_branch_is_never_taken_from_its_successor(tmp_path: Path) -> None:
    people = new_hotfixed(tmp_path / "people.omni", delete=True)
    merged_head = people.commits("main")[0].merged_parent_id
    people.create_branch("hotfix")
    change(people, "age", branch="hotfix", name="bob", age=1)
    change(people, "age", branch="hotfix", name="bob", age=2)
    change(people, "gone", branch="dev", name="alice")

    merged(people, "main", "dev")

    assert "alice" not in ages(people, "dev")
    old = people.query(
        "query all() { match { $p: Person } return { $p.name, $p.age } }", commit=merged_head
    )
    assert {row["p.name"]: row["p.age"] for row in old.rows()} == {
        "alice": 31, "bob": 25, "carol": 40, "dan": 50, "eve": 20
    }  # fmt: skip


def test_a_branch_made_again_after_its_merge_can_be_written_and_merged(people: og.Graph) -> None:
    people.create_branch("a")
    people.create_branch("b")
    change(people, "age", branch="a", name="alice", age=31)
    merged(people, "a", "b")
    people.delete_branch("a")

    people.create_branch("a")
    change(people, "age", branch="a", name="bob", age=26)
    change(people, "age", branch="b", name="carol", age=41)
    merged(people, "a", "b")

    assert ages(people, "b") == {"alice": 31, "bob": 26, "carol": 41, "dan": 50}
    assert ages(people, "a") == {"alice": 30, "bob": 26, "carol": 40, "dan": 50}
    for again in range(3):
        people.delete_branch("a")
        people.create_branch("a", "b")
        change(people, "age", branch="a", name="dan", age=60 + again)
        merged(people, "a", "b")
    assert ages(people, "b")["dan"] == 62
    assert people.verify().is_clean


def test_a_kept_state_goes_when_no_merge_can_need_it(tmp_path: Path) -> None:
    people = new_hotfixed(tmp_path / "people.omni", delete=True)
    assert people.cleanup(keep=10, confirm=True).forks_removed == ()
    change(people, "gone", branch="dev", name="alice")
    merged(people, "main", "dev")
    merged(people, "dev", "main")
    people.delete_branch("dev")

    removed = people.cleanup(keep=1, confirm=True).forks_removed

    assert [each for each in removed if each.startswith("node:Person:")]
    assert people.verify().is_clean
