"""Merge requests by library, command line and HTTP: the same answers, the same refusals."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.wire import RequestVerb
from tests.http.serving import INSERT, UPDATE
from tests.surfaces.surfaces import Surface

pytestmark = pytest.mark.slow


def begin(surface: Surface, branch: str, **params: Any) -> int:
    surface.create_branch(branch).done()
    surface.mutate(INSERT, params=params, branch=branch).done()
    made = surface.open_request(branch, f"Add {params['slug']}", ["ada", "bob"]).json
    assert (made["state"], made["reviewers"]) == ("open", ["ada", "bob"])
    number: int = made["number"]
    return number


def test_a_request_is_discussed_approved_and_merged(surface: Surface) -> None:
    number = begin(surface, "more", slug="x", age=1)
    about = {"type": "Person", "id": "x", "property": "age"}

    surface.say_on_request(number, RequestVerb.COMMENT, text="so young?", **about).done()
    surface.edit_request(number, title="Add X", description="a person").done()
    surface.say_on_request(number, RequestVerb.OBJECT, text="older").done()
    surface.withdraw_verdict(number).done()
    surface.say_on_request(number, RequestVerb.CLOSE, text="no").done()
    closed = surface.requests("closed").json
    surface.say_on_request(number, RequestVerb.REOPEN).done()
    head = surface.request(number).json["review"]["head"]
    approved = surface.say_on_request(number, RequestVerb.APPROVE, head=head).json
    preview = surface.preview_request(number).json
    listed = surface.requests().json
    done = surface.merge_request(number, delete=True).json

    assert [each["number"] for each in closed["merge_requests"]] == [number]
    assert [each["verdict"] for each in approved["review"]["verdicts"]] == ["approved"]
    assert (preview["outcome"], preview["checks"]) == ("fast_forward", [])
    assert preview["changes"]["stats"]["inserts"] == 1
    [summary] = listed["merge_requests"]
    assert (summary["title"], summary["comment_count"]) == ("Add X", 1)
    assert (done["number"], done["outcome"], done["branch_deleted"]) == (
        number,
        "fast_forward",
        True,
    )
    shown = surface.request(number).json
    assert (shown["state"], shown["commit_id"], shown["review"]) == (
        "merged",
        done["commit_id"],
        None,
    )
    kinds = [each["kind"] for each in shown["events"]]
    assert kinds == [
        "opened",
        "commented",
        "edited",
        "changes_requested",
        "approval_withdrawn",
        "closed",
        "reopened",
        "approved",
        "merging",
        "merged",
    ]
    [comment] = shown["comments"]
    assert {name: comment[name] for name in about} == about


def test_what_stands_in_the_way_is_said_the_same_everywhere(surface: Surface) -> None:
    number = begin(surface, "more", slug="x", age=1)
    surface.mutate(UPDATE, params={"slug": "ada", "age": 50}, branch="more").done()
    surface.mutate(UPDATE, params={"slug": "ada", "age": 40}).done()

    conflicting = surface.merge_request(number).refused(409, "conflicts: node:Person 'ada'")
    surface.say_on_request(number, RequestVerb.APPROVE, head="01X").refused(409, "has moved")
    surface.open_request("more", "two\nlines", []).refused(400, "one line of printable text")
    surface.request(99).refused(404, "merge request 99 not found")
    surface.requests("opened").refused(400, "expected one of all, open, merged, closed")
    [conflict] = surface.preview_request(number).json["conflicts"]
    surface.delete_branch("more").done()
    surface.merge_request(number).refused(409, "was deleted — nothing was done")
    surface.say_on_request(number, RequestVerb.CLOSE).done()
    surface.merge_request(number).refused(409, f"merge request {number} is closed")

    assert [conflict[side]["age"] for side in ("base", "ours", "theirs")] == [36, 40, 50]
    if conflicting.details:
        assert conflicting.details["merge_conflicts"][0]["theirs"]["age"] == 50
