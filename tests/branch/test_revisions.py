"""Revisions: every way to name a state, wherever a branch or a commit is named."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    CommitNotFound,
    NotFoundError,
    OmnigraphError,
    RevisionNotFound,
)
from tests.branch.people import change, merged, new_people, state_of

ASK = "query q() { match { $p: Person } return { $p.name } }"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Main: the people, eve, fay and a merge of review, on which gus was added."""
    graph = new_people(tmp_path_factory.mktemp("revisions") / "graph")
    change(graph, "person", name="eve", age=1)
    graph.create_branch("review")
    change(graph, "person", "review", name="gus", age=1)
    change(graph, "person", name="fay", age=1)
    graph.tag("v1")
    merged(graph, "review")
    return graph


def extra(graph: og.Graph, **selection: Any) -> set[str]:
    return {row["p.name"] for row in graph.query(ASK, **selection)} - {
        "alice",
        "bob",
        "carol",
        "dan",
    }


def time_of(graph: og.Graph, commit: og.Commit) -> str:
    return datetime.fromtimestamp(commit.created_at / 1e6, UTC).isoformat()


NAMED = {
    "main": {"eve", "fay", "gus"},
    "review": {"eve", "gus"},
    "v1": {"eve", "fay"},
    "tag:v1": {"eve", "fay"},
    "main~": {"eve", "fay"},
    "main~1": {"eve", "fay"},
    "main~0": {"eve", "fay", "gus"},
    "main~2": {"eve"},
    "main~~~": set(),
    "review~1": {"eve"},
    "review~1~1": set(),
    "v1~1": {"eve"},
    " main~1 ": {"eve", "fay"},
}


@pytest.mark.parametrize("revision", NAMED)
def test_a_revision_names_the_same_state_as_branch_commit_and_side_of_a_diff(
    history: og.Graph, revision: str
) -> None:
    expected = NAMED[revision]

    assert extra(history, branch=revision) == expected
    assert extra(history, commit=revision) == expected
    gone = {"eve", "fay", "gus"} - expected
    assert {each.id for each in history.diff(revision, "main")} == gone


def test_a_commit_is_found_by_the_beginning_of_its_id_in_either_case(history: og.Graph) -> None:
    commits = history.commits()
    ids = [each.commit_id for each in history.log()]
    start = next(
        ids[0][:size] for size in range(4, 27) if sum(i.startswith(ids[0][:size]) for i in ids) == 1
    )

    assert history.commit(start).commit_id == ids[0]
    assert extra(history, commit=start.lower()) == {"eve", "fay", "gus"}
    assert extra(history, commit=f"{commits[0].commit_id}~1") == {"eve", "fay"}


def test_the_beginning_of_several_ids_is_refused_with_them(history: og.Graph) -> None:
    start = history.commits()[0].commit_id[:4]

    with pytest.raises(BadRequestError, match=f"commits begin with '{start}' — give more"):
        history.commit(start)


def test_a_time_or_version_behind_a_branch_names_what_it_was_then(history: og.Graph) -> None:
    newest, second, third, *_ = history.commits()

    assert extra(history, commit=f"main@{{{time_of(history, second)}}}") == {"eve", "fay"}
    assert extra(history, branch=f"main@{{{time_of(history, second)}}}~1") == {"eve"}
    assert extra(history, branch=f"main@{{{third.manifest_version}}}") == {"eve"}
    assert extra(history, commit="review@{2999-01-01}") == {"eve", "gus"}
    assert history.commit("main@{2999-01-01}") == newest


def test_commits_of_a_revision_are_its_first_parents(history: og.Graph) -> None:
    line = history.commits()

    assert history.commits("main~1") == line[1:]
    assert history.commits("v1", limit=2) == line[1:3]
    assert history.snapshot("v1").head == line[1]


def test_a_branch_starts_at_any_revision_and_can_be_merged_back(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "graph")
    for name in ("eve", "fay", "gus"):
        change(graph, "person", name=name, age=1)
    before = state_of(graph, "main~2")

    graph.create_branch("past", from_="main~2")
    assert state_of(graph, "past") == before
    change(graph, "person", "past", name="hal", age=1)
    change(graph, "age", "past", name="eve", age=9)
    assert extra(graph, branch="past~1") == {"eve", "hal"}
    assert extra(graph, branch="past~2") == {"eve"}
    graph.optimize()
    graph.cleanup(keep=1, confirm=True)
    merged(og.open(graph.uri, durability="process"), "past")

    assert extra(graph) == {"eve", "fay", "gus", "hal"}
    assert state_of(graph)["node:Person"]["eve"]["age"] == 9
    assert not graph.verify().errors


@pytest.mark.parametrize(
    ("revision", "error", "words"),
    [
        ("main~9", NotFoundError, "there are only 4 before"),
        ("main~99999999999999999999", NotFoundError, "further than any history"),
        ("main@{}", OmnigraphError, "expected RFC 3339"),
        ("main@{yesterday}", OmnigraphError, "yesterday"),
        ("main@{1999-01-01}", NotFoundError, "no commit as old"),
        ("main@{999999999999999999999}", NotFoundError, "no version of 21 digits"),
        ("v1@{2999-01-01}", BranchNotFound, "branch 'v1' not found"),
        ("main~1@{2999-01-01}", BadRequestError, "directly behind a branch"),
        ("~1", BadRequestError, "is not a revision"),
        ("main~x", BadRequestError, "is not a revision"),
        ("main{1}", BadRequestError, "is not a revision"),
        ("tag:", BadRequestError, "not a tag name"),
        ("tag:nope", NotFoundError, "tag 'nope' not found"),
        ("nope", NotFoundError, "'nope' not found"),
        ("0" * 26, CommitNotFound, "not found"),
        ("", BadRequestError, "is not a (revision|branch name)"),
    ],
)
def test_what_names_nothing_is_refused_in_plain_words(
    history: og.Graph, revision: str, error: type[OmnigraphError], words: str
) -> None:
    for ask in (
        lambda: history.query(ASK, commit=revision),
        lambda: history.create_branch("new", from_=revision),
        lambda: history.tag("new", at=revision),
    ):
        with pytest.raises(error, match=words):
            ask()

    assert history.branches() == ["main", "review"]
    assert [tag.name for tag in history.tags()] == ["v1"]


def test_an_unknown_revision_is_not_told_as_a_branch(history: og.Graph) -> None:
    """The message lists what a revision may be, or the nearest branch or tag."""
    for ask in (
        lambda name: history.create_branch("new", from_=name),
        lambda name: history.tag("new", at=name),
        lambda name: history.diff(name, "main"),
        lambda name: history.commits(name),
        lambda name: history.reset_branch("review", to=name),
    ):
        for name, hint in (
            ("elsewhere", "give a branch, a tag, or a commit by its id or the beginning"),
            ("reviev", "did you mean `review`?"),
            ("v11", "did you mean `v1`?"),
            ("reviev~2", "did you mean `review`?"),
        ):
            with pytest.raises(RevisionNotFound) as caught:
                ask(name)
            base = name.partition("~")[0]
            assert f"revision '{base}' not found: no branch, tag or commit" in str(caught.value)
            assert hint in str(caught.value)
            assert isinstance(caught.value, BranchNotFound)  # what programs have caught so far


def test_a_branch_is_preferred_to_a_tag_and_a_tag_to_a_commit(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "graph")
    first = graph.commits()[0].commit_id
    graph.tag("same")
    change(graph, "person", name="eve", age=1)
    graph.create_branch("same")

    assert extra(graph, branch="same") == {"eve"}
    assert extra(graph, branch="tag:same") == set()
    graph.tag(first[:20], at="main")
    assert extra(graph, branch=first[:20]) == {"eve"}
    assert extra(graph, branch=first) == set()


def test_a_write_goes_to_a_branch_and_to_no_other_revision(history: og.Graph) -> None:
    for revision in ("v1", "main~1", "tag:v1"):
        with pytest.raises(OmnigraphError):
            change(history, "person", revision, name="zoe", age=1)
        with pytest.raises(OmnigraphError):
            history.merge("review", into=revision)

    assert "zoe" not in extra(history)


@pytest.mark.parametrize("revision", ["tag:v1", "main~1", "id[:12]", "main@{4}"])
def test_changes_are_listed_after_and_of_any_revision(history: og.Graph, revision: str) -> None:
    commit = history.commit("tag:v1").commit_id
    named = commit[:12] if revision == "id[:12]" else revision
    if named.startswith("main@"):
        named = f"main@{{{history.commit(commit).manifest_version}}}"

    after = [each.commit.commit_id for each in history.changes(named)]
    page = history.commit_changes(named)

    assert after == [each.commit.commit_id for each in history.changes(commit)]
    assert page.to_json() == history.commit_changes(commit).to_json()
