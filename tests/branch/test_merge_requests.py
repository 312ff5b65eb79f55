"""Merge requests: what is said of them, what counts, and what becomes of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.branch.merge_request import EventKind, MergeRequest
from omnigraph.errors import (
    ApprovalsMissing,
    BadRequestError,
    BranchNotFound,
    ChecksFailed,
    ConflictError,
    MergeConflicts,
    MergeRequestNotFound,
    MergeRequestNotOpen,
    PolicyError,
    ResourceLimitError,
    SourceMoved,
    StorageError,
)
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.manifest.checks import Check
from omnigraph.manifest.request_events import RequestEvent
from omnigraph.policy import Policy, load_policy
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from tests.branch.people import CHANGES, change, merged, new_people, state_of

pytestmark = pytest.mark.slow

BUNDLE = """
version: 1
groups: { all: [ada, bob, cyd, bot], reviewers: [ada, bob, cyd] }
protected_branches: [main]
required_approvals: { main: 2, "release/*": 1 }
rules:
  - id: write
    allow:
      actors: { group: all }
      actions: [merge_request, change]
      branch_scope: unprotected
  - id: branch
    allow: { actors: { group: all }, actions: [branch_create, branch_delete, branch_merge] }
  - id: approve
    allow: { actors: { group: reviewers }, actions: [merge_approve] }
"""


def policy(text: str = BUNDLE) -> Policy:
    return load_policy(text, name="team", resource="team")


@pytest.fixture
def people(tmp_path: Path) -> og.Graph:
    """People on main, and a branch `fix` with one more."""
    graph = new_people(tmp_path / "graph")
    graph.create_branch("fix")
    change(graph, "person", "fix", name="eve", age=20)
    return graph


def guarded(graph: og.Graph, text: str = BUNDLE) -> og.Graph:
    return og.open(graph.uri, policy=policy(text), durability="process")


def kinds(request: MergeRequest) -> list[str]:
    return [each.kind for each in request.events]


def head(graph: og.Graph, branch: str) -> str:
    return graph.snapshot(branch).head.commit_id


def test_a_request_goes_from_open_to_merged_and_says_all_that_happened(people: og.Graph) -> None:
    """Another process reads what the first one wrote; the commit says where it came from."""
    opened = people.open_merge_request(
        "fix", title=" Add Eve ", description="She is new.", reviewers=["bob"], actor="ada"
    )
    people.edit_merge_request(1, title="Add Eve, 20", actor="ada")
    people.comment_on_merge_request(1, "Is 20 right?", type="Person", id="eve", property="age")
    approved = people.approve_merge_request(1, actor="bob")
    reader = og.open(people.uri, mode="r", durability="process")
    assert reader.merge_requests() == [reader.merge_requests("all")[0]]
    result = people.complete_merge_request(1, actor="bob", delete_branch=True)

    assert (opened.number, opened.title, opened.author) == (1, "Add Eve", "ada")
    assert approved.review is not None
    assert [(each.actor, each.counts) for each in approved.review.verdicts] == [("bob", True)]
    found = reader.merge_request(1)
    assert (found.state, found.commit_id, found.title) == (
        "merged",
        result.commit_id,
        "Add Eve, 20",
    )
    assert (found.outcome, found.review) == ("fast_forward", None)
    assert kinds(found) == ["opened", "edited", "commented", "approved", "merging", "merged"]
    assert [each.property for each in found.comments] == ["age"]
    commit = people.commits()[0]
    assert (commit.message, dict(commit.metadata)) == ("Add Eve, 20", {"merge_request": "1"})
    assert (commit.actor, people.branches()) == ("bob", ["main"])
    assert (reader.merge_requests(), [each.number for each in reader.merge_requests("merged")]) == (
        [],
        [1],
    )


def test_a_merged_request_takes_comments_and_nothing_else(people: og.Graph) -> None:
    people.open_merge_request("fix", title="t", actor="ada")
    people.complete_merge_request(1)

    people.comment_on_merge_request(1, "Thanks.")
    for refused in (
        lambda: people.approve_merge_request(1),
        lambda: people.request_changes(1),
        lambda: people.withdraw_approval(1),
        lambda: people.edit_merge_request(1, title="x"),
        lambda: people.close_merge_request(1),
        lambda: people.reopen_merge_request(1),
        lambda: people.complete_merge_request(1),
    ):
        with pytest.raises(MergeRequestNotOpen, match="merge request 1 is merged by commit"):
            refused()
    assert kinds(people.merge_request(1))[-2:] == ["merged", "commented"]


def test_a_closed_request_is_opened_again_and_saying_it_twice_is_said_once(
    people: og.Graph,
) -> None:
    people.open_merge_request("fix", title="t")
    people.close_merge_request(1, "not now")
    again = people.close_merge_request(1)
    with pytest.raises(MergeRequestNotOpen, match="is closed"):
        people.complete_merge_request(1)
    assert [each.number for each in people.merge_requests("closed")] == [1]
    people.reopen_merge_request(1)

    assert kinds(again) == ["opened", "closed"]
    assert [each.number for each in people.merge_requests()] == [1]
    assert people.merge_requests("closed") == []
    people.close_merge_request(1)
    assert (people.merge_requests(), len(people.merge_requests("closed"))) == ([], 1)


def test_an_approval_counts_for_the_head_it_names_and_the_target_it_was_for(
    people: og.Graph,
) -> None:
    people.create_branch("release")
    people.open_merge_request("fix", title="t", actor="ada")
    seen = head(people, "fix")
    people.approve_merge_request(1, head=seen, actor="bob")
    own = people.approve_merge_request(1, actor="ada")
    moved = people.edit_merge_request(1, target="release")
    people.edit_merge_request(1, target="main")
    change(people, "age", "fix", name="eve", age=21)
    stale = people.merge_request(1)

    def counted(request: MergeRequest) -> dict[str | None, tuple[bool, bool]]:
        assert request.review is not None
        return {each.actor: (each.counts, each.is_stale) for each in request.review.verdicts}

    assert counted(own) == {"bob": (True, False), "ada": (False, False)}
    assert counted(moved) == counted(stale) == {"bob": (False, True), "ada": (False, True)}
    for late in (people.approve_merge_request, people.complete_merge_request):
        with pytest.raises(SourceMoved) as refused:
            late(1, head=seen)
        assert refused.value.actual == head(people, "fix")
    assert counted(people.approve_merge_request(1, actor="bob"))["bob"] == (True, False)


@pytest.mark.parametrize(
    ("point", "is_merged"),
    [(Failpoint.RECOVERY_SIDECAR_LIST, False), (Failpoint.MERGE_REQUEST_BEFORE_MERGING, True)],
    ids=["before it is planned", "after"],
)
def test_what_was_approved_is_what_is_merged(
    people: og.Graph, point: Failpoint, is_merged: bool
) -> None:
    """The source moves while it is merged: then that head is merged, or nothing."""
    people.open_merge_request("fix", title="t")
    moved: list[bool] = []

    def move() -> None:
        if not moved:
            moved.append(True)
            with og.open(people.uri, durability="process") as other:
                change(other, "age", "fix", name="eve", age=99)

    with arm_failpoints({point: move}):
        if is_merged:
            people.complete_merge_request(1)
        else:
            with pytest.raises(SourceMoved, match="nothing was done"):
                people.complete_merge_request(1)

    assert moved
    assert state_of(people, "fix")["node:Person"]["eve"]["age"] == 99
    found = state_of(people)["node:Person"].get("eve", {}).get("age")
    assert (found, people.merge_request(1).state) == (
        (20, "merged") if is_merged else (None, "open")
    )


def test_conflicts_and_checks_leave_a_request_open(people: og.Graph) -> None:
    for branch in ("one", "two"):
        people.create_branch(branch)
        change(people, "age", branch, name="bob", age=len(branch))
        people.open_merge_request(branch, title=branch)
    change(people, "age", name="bob", age=77)
    before = head(people, "main")

    with pytest.raises(MergeConflicts):
        people.complete_merge_request(1)
    [conflict] = people.preview_merge_request(1).merge.conflicts
    assert (conflict.base["age"], conflict.ours["age"], conflict.theirs["age"]) == (25, 77, 3)  # type: ignore[index]
    assert kinds(people.merge_request(1)) == ["opened"]
    assert people.complete_merge_request(1, resolve="theirs").outcome == "merged"

    people.apply_checks(
        [Check("young", "query young() { match { $p: Person $p.age > 90 } return { $p.name } }")]
    )
    people.create_branch("old")
    change(people, "age", "old", name="dan", age=91)
    people.open_merge_request("old", title="old")
    with pytest.raises(ChecksFailed):
        people.complete_merge_request(3)
    failed = people.merge_request(3)
    assert (failed.state, kinds(failed)) == ("open", ["opened", "merging"])
    assert people.preview_merge_request(3).checks[0].to_json() == {"name": "young", "holds": False}
    assert head(people, "main") != before
    change(people, "age", "old", name="dan", age=51)
    assert people.preview_merge_request(3).checks[0].holds is True
    assert people.complete_merge_request(3).commit_id == people.merge_request(3).commit_id


def test_checks_of_a_request_with_conflicts_are_known_only_at_the_merge(people: og.Graph) -> None:
    people.apply_checks(
        [Check("none", 'query none() { match { $p: Person { name: "zed" } } return { $p.name } }')]
    )
    people.open_merge_request("fix", title="t")
    assert [each.holds for each in people.preview_merge_request(1).checks] == [True]
    change(people, "age", name="bob", age=77)
    change(people, "age", "fix", name="bob", age=78)

    preview = people.preview_merge_request(1)

    assert [each.to_json() for each in preview.checks] == [{"name": "none", "holds": None}]
    assert "none  | is run at the merge" in repr(preview)
    assert len(repr(preview).splitlines()) <= 20
    assert "is run at the merge" in preview._repr_html_()


def test_a_source_that_is_deleted_or_made_again_is_not_the_one_that_was_asked_for(
    people: og.Graph,
) -> None:
    people.open_merge_request("fix", title="t", actor="ada")
    people.approve_merge_request(1, actor="bob")

    def states() -> tuple[str, str, bool]:
        review = people.merge_request(1).review
        assert review is not None
        return review.source_state, review.target_state, review.verdicts[0].counts

    assert states() == ("present", "present", True)
    people.delete_branch("fix")
    assert states() == ("deleted", "present", False)
    people.create_branch("fix")
    change(people, "person", "fix", name="mallory", age=1)
    assert states() == ("replaced", "present", False)
    for verb in (people.approve_merge_request, people.complete_merge_request):
        with pytest.raises(ConflictError, match="deleted and made again"):
            verb(1)
    with pytest.raises(ConflictError, match="deleted and made again"):
        people.preview_merge_request(1)
    assert "mallory" not in state_of(people)["node:Person"]
    people.close_merge_request(1)
    assert people.open_merge_request("fix", title="again").number == 2


def test_a_target_that_is_gone_is_said_and_can_be_changed(people: og.Graph) -> None:
    people.create_branch("release")
    people.open_merge_request("fix", "release", title="t")
    people.delete_branch("release")

    review = people.merge_request(1).review
    assert review is not None
    assert review.target_state == "deleted"
    with pytest.raises(BranchNotFound):
        people.complete_merge_request(1)
    with pytest.raises(BranchNotFound):
        people.edit_merge_request(1, target="relaese")
    with pytest.raises(BadRequestError, match="into itself"):
        people.edit_merge_request(1, target="fix")
    people.edit_merge_request(1, target="main")
    assert people.complete_merge_request(1).outcome == "fast_forward"


def test_a_branch_that_was_merged_beside_its_request_leaves_nothing_to_merge(
    people: og.Graph,
) -> None:
    people.open_merge_request("fix", title="t")
    merged(people, "fix")
    before = people.commits()

    assert people.merge_request(1).state == "open"
    assert people.preview_merge_request(1).merge.outcome == "already_up_to_date"
    done = people.complete_merge_request(1)
    assert (done.outcome, done.commit_id) == ("already_up_to_date", None)
    assert people.merge_request(1).state == "merged"
    assert people.commits() == before


def test_a_cleanup_takes_nothing_that_an_approval_needs(people: og.Graph) -> None:
    people.open_merge_request("fix", title="t", actor="ada")
    people.approve_merge_request(1, actor="bob")
    change(people, "age", "fix", name="eve", age=21)
    people.approve_merge_request(1, actor="cyd")
    people.cleanup(keep=1, confirm=True)

    review = people.merge_request(1).review
    assert review is not None
    assert [(each.actor, each.counts) for each in review.verdicts] == [
        ("bob", False),
        ("cyd", True),
    ]
    assert people.complete_merge_request(1).commit_id is not None


def test_requests_travel_with_moves_clones_and_backups_and_not_with_pushes(
    people: og.Graph, tmp_path: Path
) -> None:
    """In a copy the source is the branch that was asked for, not another of its name."""
    people.open_merge_request("fix", title="t", actor="ada")
    people.approve_merge_request(1, actor="bob")
    expected = people.merge_request(1)
    people.backup(tmp_path / "backups")
    og.clone(people.uri, tmp_path / "clone", durability="process")
    og.restore_backup(tmp_path / "backups", tmp_path / "restored", durability="process")
    people.close()
    shutil.move(people.uri, tmp_path / "moved")

    for name in ("moved", "clone", "restored"):
        with og.open(tmp_path / name, durability="process") as copy:
            assert copy.merge_request(1) == expected, name
            if name == "clone":
                change(copy, "age", "fix", name="eve", age=30)
                copy.comment_on_merge_request(1, "only here")
                copy.push(tmp_path / "moved", "fix")
    with og.open(tmp_path / "moved", durability="process") as moved:
        assert kinds(moved.merge_request(1)) == ["opened", "approved"]
        review = moved.merge_request(1).review
        assert review is not None
        assert (review.source_state, review.verdicts[0].is_stale) == ("present", True)


# Approval by policy


def test_merges_need_the_approvals_that_the_policy_asks_for(people: og.Graph) -> None:
    graph = guarded(people)
    graph.open_merge_request("fix", title="t", actor="ada")

    def refusal() -> tuple[int, int, tuple[str, ...], tuple[str, ...]]:
        with pytest.raises(ApprovalsMissing) as refused:
            graph.complete_merge_request(1, actor="bot")
        error = refused.value
        assert graph.merge_request(1).review is not None
        return error.required, error.missing, error.objectors, error.approvers

    assert refusal() == (2, 2, (), ("bob", "cyd"))
    graph.approve_merge_request(1, actor="ada")  # the author's own
    graph.approve_merge_request(1, actor="bob")
    graph.approve_merge_request(1, actor="bob")
    assert refusal() == (2, 1, (), ("cyd",))
    graph.request_changes(1, "no", actor="cyd")
    assert refusal() == (2, 1, ("cyd",), ("cyd",))
    graph.approve_merge_request(1, actor="cyd")
    graph.withdraw_approval(1, actor="bob")
    assert refusal() == (2, 1, (), ("bob",))
    graph.approve_merge_request(1, actor="bob")
    assert graph.merge_request(1).review.is_approved  # type: ignore[union-attr]
    assert graph.complete_merge_request(1, actor="bot").commit_id is not None


def test_an_approval_by_an_actor_who_committed_to_the_source_does_not_count(
    people: og.Graph,
) -> None:
    """It is that of an author, until the target has the commit; an objection of theirs stands."""
    graph = guarded(people)
    graph.open_merge_request("fix", title="t", actor="ada")
    graph.mutate(CHANGES, "person", {"name": "finn", "age": 3}, branch="fix", actor="bob")
    for actor in ("bob", "cyd"):
        graph.approve_merge_request(1, actor=actor)

    review = graph.merge_request(1).review
    assert review is not None
    assert [(each.actor, each.counts) for each in review.verdicts] == [
        ("bob", False),
        ("cyd", True),
    ]
    assert (review.missing, review.approvers) == (1, ())
    with pytest.raises(ApprovalsMissing) as refused:
        graph.complete_merge_request(1, actor="bot")
    assert (refused.value.missing, refused.value.approvers) == (1, ())
    graph.request_changes(1, actor="bob")
    assert graph.merge_request(1).review.objectors == ("bob",)  # type: ignore[union-attr]

    people.merge("fix")  # by a handle without the policy
    graph.mutate(CHANGES, "person", {"name": "gus", "age": 3}, branch="fix", actor="bot")
    for actor in ("bob", "cyd"):
        graph.approve_merge_request(1, actor=actor)
    assert graph.complete_merge_request(1, actor="bot").commit_id is not None


@pytest.mark.parametrize(
    ("change_mind", "error"),
    [
        (lambda graph: graph.withdraw_approval(1, actor="bob"), ApprovalsMissing),
        (lambda graph: graph.request_changes(1, actor="ada"), ApprovalsMissing),
        (lambda graph: graph.close_merge_request(1, actor="bot"), MergeRequestNotOpen),
        (
            lambda graph: graph.edit_merge_request(1, target="release/1", actor="bot"),
            ConflictError,
        ),
    ],
    ids=["withdrawn", "objected", "closed", "another target"],
)
def test_a_word_that_comes_before_the_merge_is_said_holds_it(
    people: og.Graph, change_mind: Callable[[og.Graph], object], error: type[Exception]
) -> None:
    """The merge has been allowed and planned, and is about to be written."""
    people.create_branch("release/1")
    graph, other = guarded(people), guarded(people)
    graph.open_merge_request("fix", title="t", actor="bot")
    for actor in ("ada", "bob"):
        graph.approve_merge_request(1, actor=actor)
    before = state_of(graph)

    def interrupt() -> None:
        change_mind(other)

    points: dict[Failpoint, Any] = {Failpoint.MERGE_REQUEST_BEFORE_MERGING: interrupt}
    with arm_failpoints(points), pytest.raises(error):
        graph.complete_merge_request(1, actor="bot")

    assert state_of(graph) == before
    assert "merging" not in kinds(graph.merge_request(1))


def test_a_direct_merge_or_pull_into_a_branch_that_needs_approvals_is_refused(
    people: og.Graph, tmp_path: Path
) -> None:
    people.create_branch("release/1")
    people.create_branch("free")
    og.clone(people.uri, tmp_path / "other", durability="process")
    graph = guarded(people)
    before = state_of(graph)

    for into, required in (("main", 2), ("release/1", 1)):
        with pytest.raises(ApprovalsMissing, match="open a merge request") as refused:
            graph.merge("fix", into, actor="ada")
        assert (refused.value.number, refused.value.required) == (None, required)
    with pytest.raises(ApprovalsMissing):
        graph.pull(tmp_path / "other", actor="ada")
    assert graph.merge("fix", "free", actor="ada").commit_id is not None
    assert state_of(graph) == before
    graph.open_merge_request("fix", "free", title="t", actor="bot")
    assert graph.complete_merge_request(1, actor="bot").outcome == "already_up_to_date"


def test_an_approval_is_worth_what_the_policy_of_now_says(people: og.Graph) -> None:
    """An actor who may no longer approve has approved nothing, nor stands in the way."""
    graph = guarded(people)
    graph.open_merge_request("fix", title="t", actor="bot")
    graph.approve_merge_request(1, actor="ada")
    graph.approve_merge_request(1, actor="bob")
    graph.request_changes(1, actor="cyd")

    def missing(reviewers: str) -> tuple[int, tuple[str, ...]]:
        text = BUNDLE.replace("reviewers: [ada, bob, cyd]", f"reviewers: [{reviewers}]")
        review = guarded(people, text).merge_request(1).review
        assert review is not None
        return review.missing, review.objectors

    assert missing("ada, bob, cyd") == (0, ("cyd",))
    assert missing("ada, bob") == (0, ())
    assert missing("ada") == (1, ())
    assert people.merge_request(1).review.required == 0  # type: ignore[union-attr]


def test_who_may_not_approve_cannot_and_an_edit_of_the_target_is_asked_again(
    people: og.Graph,
) -> None:
    graph = guarded(people)
    graph.open_merge_request("fix", title="t", actor="ada")

    with pytest.raises(PolicyError, match="'merge_approve'"):
        graph.approve_merge_request(1, actor="bot")
    with pytest.raises(PolicyError, match="'merge_request' on branch 'main'"):
        graph.open_merge_request("main", "fix", title="t", actor="bot")
    assert kinds(graph.merge_request(1)) == ["opened"]


# Bad input


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"title": "  "}, BadRequestError),
        ({"title": "two\nlines"}, BadRequestError),
        ({"title": "t\x00"}, BadRequestError),
        ({"title": "\ud800"}, BadRequestError),
        ({"title": "t" * 201}, ResourceLimitError),
        ({"title": "t", "description": "x" * 20_001}, ResourceLimitError),
        ({"title": "t", "reviewers": [""]}, BadRequestError),
        ({"title": "t", "reviewers": ["a\nb"]}, BadRequestError),
        ({"title": "t", "reviewers": [str(each) for each in range(51)]}, ResourceLimitError),
        ({"title": "t", "source": "../../etc"}, BadRequestError),
        ({"title": "t", "source": "nope"}, BranchNotFound),
        ({"title": "t", "into": "nope"}, BranchNotFound),
        ({"title": "t", "into": "fix"}, BadRequestError),
        ({"title": 1}, BadRequestError),
    ],
)
def test_a_request_that_cannot_be_is_refused_and_leaves_nothing(
    people: og.Graph, said: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        people.open_merge_request(**{"source": "fix", **said})

    assert people.merge_requests("all") == []
    assert not (Path(people.uri) / "__merge_requests").exists()


def test_numbers_and_anchors_that_name_nothing_are_refused(people: og.Graph) -> None:
    people.open_merge_request("fix", title="t")

    for number in (0, -1, 2, 10**30):
        with pytest.raises((MergeRequestNotFound, BadRequestError)):
            people.merge_request(number)
    with pytest.raises(BadRequestError, match="did you mean `Person`"):
        people.comment_on_merge_request(1, "x", type="Persom")
    with pytest.raises(BadRequestError, match="did you mean `age`"):
        people.comment_on_merge_request(1, "x", type="Person", property="agee")
    with pytest.raises(BadRequestError, match="needs the type"):
        people.comment_on_merge_request(1, "x", id="eve")
    with pytest.raises(BadRequestError, match="empty"):
        people.comment_on_merge_request(1, " ")
    with pytest.raises(BadRequestError, match="expected one of all, open, merged, closed"):
        people.merge_requests("opened")
    assert kinds(people.merge_request(1)) == ["opened"]


def test_hostile_texts_come_back_as_they_were_and_are_no_markup(people: og.Graph) -> None:
    text = "<script>alert(1)</script> ‮ 'quote' \\u0000 {{x}} 🦜"
    request = people.open_merge_request("fix", title="<b>t</b>", actor="<i>ada</i>")
    commented = people.comment_on_merge_request(1, text, actor="../../x")

    assert people.merge_request(1).comments[0].text == text
    html = commented._repr_html_()
    assert "<script>" not in html
    assert "<b>t</b>" not in html
    assert "<i>ada" not in html
    assert len(repr(commented).splitlines()) <= 20
    assert repr(people.merge_requests()).splitlines()[0] == "1 merge request"
    assert "<b>t</b>" not in people.merge_requests()._repr_html_()
    assert request.author == "<i>ada</i>"


def test_a_damaged_or_missing_event_is_named_and_found_by_verify(people: og.Graph) -> None:
    for title in ("one", "two"):
        people.open_merge_request("fix", title=title)
    people.comment_on_merge_request(1, "x")
    people.comment_on_merge_request(1, "y")
    folder = Path(people.uri) / "__merge_requests" / "1"
    file = folder / "000002.json"
    whole = file.read_text()

    file.write_text(whole.replace('"x"', '"z"'))
    with pytest.raises(StorageError, match=r"1/000002.json' cannot be read"):
        people.merge_request(1)
    assert any("000002.json" in str(each) for each in people.verify().findings)
    file.write_text((folder / "000003.json").read_text())
    with pytest.raises(StorageError, match="cannot be read"):
        people.comment_on_merge_request(1, "z")
    file.unlink()
    with pytest.raises(StorageError, match="is missing"):
        people.comment_on_merge_request(1, "z")
    assert people.merge_request(2).title == "two"
    file.write_text(whole)
    assert not [each for each in people.verify().findings if "merge_requests" in str(each)]


def test_events_of_a_later_version_are_kept_and_mean_nothing(people: og.Graph) -> None:
    people.open_merge_request("fix", title="t")
    events = inside(people).coordinator.request_events
    assert events.append(1, RequestEvent(2, "labelled", 1, "ada", {"labels": ["x"]}))
    facts = {"text": "hi", "mood": "good"}
    assert events.append(1, RequestEvent(3, EventKind.COMMENTED, 2, "ada", facts))

    found = people.comment_on_merge_request(1, "and on")
    assert kinds(found) == ["opened", "labelled", "commented", "commented"]
    assert [each.text for each in found.comments] == ["hi", "and on"]
    assert found.state == "open"


def test_a_request_takes_a_bounded_number_of_events_and_can_still_be_ended(
    people: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.branch.request_verbs.EVENTS_MAX", 3)
    people.open_merge_request("fix", title="t")
    people.comment_on_merge_request(1, "one")
    people.comment_on_merge_request(1, "two")

    with pytest.raises(ResourceLimitError, match="number of events of merge request 1"):
        people.comment_on_merge_request(1, "three")
    assert people.complete_merge_request(1).commit_id is not None


# Cost


def test_a_list_reads_what_it_lists_however_many_requests_have_ended(people: og.Graph) -> None:
    """By hundreds of ended requests the open ones cost the reads of their own events."""
    events = inside(people).coordinator.request_events
    first = people.open_merge_request("fix", title="t").events[0]
    for number in range(2, 402):
        assert events.append(number, first)
        if number % 100:
            event = RequestEvent(2, EventKind.CLOSED, 1, None, {})
            assert events.append(number, event)
            events.note_state(number, 2, "closed")
    assert people.schema  # Read again, if it was read within the tick of the clock that wrote it.
    with counting() as found:
        shown = people.merge_requests()
    assert [each.number for each in shown] == [400, 300, 200, 100, 1]
    assert (found.text_reads, found.text_lists) == (5, 2 + 5)

    with counting() as found:
        closed = people.merge_requests("closed", limit=3, before=400)
    assert [each.number for each in closed] == [399, 398, 397]
    assert found.text_reads == 2 * 3
    assert json.dumps([each.to_summary() for each in closed])


def test_a_hint_that_is_late_hides_no_open_request(people: og.Graph) -> None:
    """A writer that closes stops before its hint; another one opens the request again."""
    people.open_merge_request("fix", title="t")
    events = inside(people).coordinator.request_events
    assert events.append(1, RequestEvent(2, EventKind.CLOSED, 1, "ada", {}))
    people.reopen_merge_request(1)
    events.note_state(1, 2, "closed")

    assert [each.number for each in people.merge_requests()] == [1]
