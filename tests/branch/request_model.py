"""The rules of merge requests in plain Python, and what a graph shows of the same requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    ApprovalsMissing,
    BranchNotFound,
    ConflictError,
    MergeRequestNotFound,
    MergeRequestNotOpen,
    OmnigraphError,
    PolicyError,
)

ACTORS = ("ada", "bob", "cyd", "bot")
MAY_APPROVE = ACTORS[:3]
REQUIRED = {"main": 1}
POLICY = """
version: 1
groups: { all: [ada, bob, cyd, bot], people: [ada, bob, cyd] }
required_approvals: { main: 1 }
rules:
  - id: all
    allow:
      actors: { group: all }
      actions: [merge_request, change]
  - id: branches
    allow: { actors: { group: all }, actions: [branch_create, branch_delete, branch_merge] }
  - id: people
    allow: { actors: { group: people }, actions: [merge_approve] }
"""


@dataclass
class Branch:
    """Which of its name it is, and the commits it has, the head last."""

    made: int
    commits: list[int]


@dataclass
class Asked:
    """A merge request."""

    source: str
    made: int
    target: str
    author: str
    title: str
    state: str = "open"
    comments: int = 0
    verdicts: dict[str, tuple[str, int, str]] = field(default_factory=dict)


class Model:
    """The rules, without files, events or manifests."""

    def __init__(self) -> None:
        self.commits = 1
        self.actors: dict[int, str] = {}
        self.branches = {"main": Branch(0, [0])}
        self.asked: list[Asked] = []

    def new_commit(self, actor: str = "") -> int:
        self.commits += 1
        self.actors[self.commits] = actor
        return self.commits

    def create(self, name: str) -> None:
        self.branches[name] = Branch(self.new_commit(), [*self.branches["main"].commits])

    def write(self, name: str, actor: str) -> None:
        self.branches[name].commits.append(self.new_commit(actor))

    def merge(self, source: str, target: str, actor: str) -> None:
        ours, theirs = self.branches[target], self.branches[source]
        if theirs.commits[-1] not in ours.commits:
            new = [each for each in theirs.commits if each not in ours.commits]
            ours.commits += [*new, self.new_commit(actor)]

    def source_of(self, asked: Asked) -> str:
        found = self.branches.get(asked.source)
        if found is None:
            return "deleted"
        return "present" if found.made == asked.made else "replaced"

    def head_of(self, asked: Asked) -> int | None:
        is_there = self.source_of(asked) == "present"
        return self.branches[asked.source].commits[-1] if is_there else None

    def weigh(self, asked: Asked) -> dict[str, tuple[str, bool, bool]]:
        """Actor → the verdict, whether it is stale, whether it counts."""
        found = {}
        for actor, (verdict, head, target) in asked.verdicts.items():
            current = (head, target) == (self.head_of(asked), asked.target)
            is_stale = verdict == "approved" and not current
            counts = not is_stale and actor != asked.author and actor in MAY_APPROVE
            counts = counts and not (verdict == "approved" and actor in self.committers(asked))
            found[actor] = (verdict, is_stale, counts)
        return found

    def committers(self, asked: Asked) -> set[str]:
        """Who made what the merge would bring."""
        if self.head_of(asked) is None or asked.target not in self.branches:
            return set()
        there = self.branches[asked.target].commits
        return {
            self.actors[each] for each in self.branches[asked.source].commits if each not in there
        }

    def count_missing(self, asked: Asked) -> int:
        weighed = self.weigh(asked).values()
        approvals = sum(counts for verdict, _, counts in weighed if verdict == "approved")
        return max(REQUIRED.get(asked.target, 0) - approvals, 0)

    def has_objection(self, asked: Asked) -> bool:
        weighed = self.weigh(asked).values()
        return any(counts for verdict, _, counts in weighed if verdict != "approved")

    # Verbs: each returns the error that is expected, or None and does it

    def say(self, number: int, verb: str, actor: str) -> type[OmnigraphError] | None:
        if verb in ("approve", "reject", "withdraw") and actor not in MAY_APPROVE:
            return PolicyError
        if number > len(self.asked):
            return MergeRequestNotFound
        asked = self.asked[number - 1]
        is_open = asked.state == "open"
        match verb:
            case "comment":
                asked.comments += 1
            case "close" | "reopen" if asked.state != "merged":
                asked.state = "closed" if verb == "close" else "open"
            case _ if not is_open:
                return MergeRequestNotOpen
            case "withdraw":
                asked.verdicts.pop(actor, None)
            case "retitle":
                asked.title = f"by {actor}"
            case "approve" | "reject":
                head = self.head_of(asked)
                if head is None:
                    return ConflictError
                verdict = "approved" if verb == "approve" else "changes_requested"
                asked.verdicts[actor] = (verdict, head, asked.target)
            case _:
                return self.complete(asked, actor)
        return None

    def complete(self, asked: Asked, actor: str) -> type[OmnigraphError] | None:
        if self.source_of(asked) != "present":
            return ConflictError
        needs = REQUIRED.get(asked.target, 0)
        if self.count_missing(asked) or (needs and self.has_objection(asked)):
            return ApprovalsMissing
        if asked.target not in self.branches:
            return BranchNotFound
        self.merge(asked.source, asked.target, actor)
        asked.state = "merged"
        return None

    def retarget(self, number: int, target: str) -> type[OmnigraphError] | None:
        if number > len(self.asked):
            return MergeRequestNotFound
        asked = self.asked[number - 1]
        if asked.state != "open":
            return MergeRequestNotOpen
        if target not in self.branches:
            return BranchNotFound
        if asked.source == target:
            return OmnigraphError
        asked.target = target
        return None


def describe_model(model: Model, number: int) -> dict[str, Any]:
    asked = model.asked[number - 1]
    found: dict[str, Any] = {
        "state": asked.state,
        "title": asked.title,
        "target": asked.target,
        "comments": asked.comments,
    }
    if asked.state == "open":
        found |= {
            "source": model.source_of(asked),
            "is_target_there": asked.target in model.branches,
            "verdicts": model.weigh(asked),
            "missing": model.count_missing(asked),
        }
    return found


def describe_graph(graph: og.Graph, number: int) -> dict[str, Any]:
    request = graph.merge_request(number)
    found: dict[str, Any] = {
        "state": request.state.value,
        "title": request.title,
        "target": request.target,
        "comments": len(request.comments),
    }
    if request.review is not None:
        review = request.review
        found |= {
            "source": review.source_state.value,
            "is_target_there": review.target_state == "present",
            "verdicts": {
                str(each.actor): (each.verdict, each.is_stale, each.counts)
                for each in review.verdicts
            },
            "missing": review.missing,
        }
    return found


def try_call(call: Callable[[], object], expected: type[OmnigraphError] | None) -> None:
    if expected is None:
        call()
        return
    with pytest.raises(expected):
        call()


VERBS: dict[str, Callable[[og.Graph, int, str], object]] = {
    "comment": lambda graph, number, actor: graph.comment_on_merge_request(
        number, "x", actor=actor
    ),
    "approve": lambda graph, number, actor: graph.approve_merge_request(number, actor=actor),
    "reject": lambda graph, number, actor: graph.request_changes(number, actor=actor),
    "withdraw": lambda graph, number, actor: graph.withdraw_approval(number, actor=actor),
    "close": lambda graph, number, actor: graph.close_merge_request(number, actor=actor),
    "reopen": lambda graph, number, actor: graph.reopen_merge_request(number, actor=actor),
    "retitle": lambda graph, number, actor: graph.edit_merge_request(
        number, title=f"by {actor}", actor=actor
    ),
    "merge": lambda graph, number, actor: graph.complete_merge_request(number, actor=actor),
}
