"""Merge requests as values: what their events come to.

A request is open, merged or closed by the last event that says so. The attempt to merge it
(`merging`) is written before the merge is published and `merged` behind it: in between, and after
a crash there, the history of the target tells whether it is merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, count_noun, format_time, show_html, show_text
from omnigraph.json_form import JsonForm, to_json
from omnigraph.manifest.request_events import OPEN, RequestEvent


class EventKind(StrEnum):
    """What an event says. Those that a later Omnigraph adds are kept, and mean nothing here."""

    OPENED = "opened"
    EDITED = "edited"
    COMMENTED = "commented"
    APPROVED = "approved"
    APPROVAL_WITHDRAWN = "approval_withdrawn"
    CHANGES_REQUESTED = "changes_requested"
    CLOSED = "closed"
    REOPENED = "reopened"
    MERGING = "merging"
    MERGED = "merged"


class RequestState(StrEnum):
    OPEN = OPEN
    MERGED = "merged"
    CLOSED = "closed"


class BranchPresence(StrEnum):
    """Whether a branch that a request names is there; `replaced` is another of its name."""

    PRESENT = "present"
    DELETED = "deleted"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class RequestComment(JsonForm):
    """A comment: on all of it, or on a type, an entity or a property of one."""

    sequence: int
    actor: str | None
    at: int
    text: str | None
    type: str | None = None
    id: str | None = None
    property: str | None = None
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class Verdict(JsonForm):
    """The last word of one reviewer, on the head that the source had then.

    `counts` when that is its head still, the policy lets the actor approve, and they are not the
    author; an approval counts only if they made no commit of the request either.
    """

    actor: str | None
    verdict: str
    at: int
    head: str
    target: str
    text: str | None = None
    is_stale: bool = False
    counts: bool = False

    @property
    def is_approval(self) -> bool:
        return self.verdict == EventKind.APPROVED


@dataclass(frozen=True, slots=True)
class Review(JsonForm):
    """How far an open request is from being merged, as things are now.

    `required` approvals are asked for by the policy, and `missing` of them are not there.
    `objectors` requested changes and may approve, `approvers` may approve and have not.
    """

    head: str | None
    source_state: BranchPresence
    target_state: BranchPresence
    verdicts: tuple[Verdict, ...] = ()
    required: int = 0
    missing: int = 0
    objectors: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()

    @property
    def is_approved(self) -> bool:
        """Whether nothing that the policy asks for is missing."""
        return not self.missing and not (self.required and self.objectors)

    def to_json(self) -> dict[str, Any]:
        return {**JsonForm.to_json(self), "is_approved": self.is_approved}


ALREADY_UP_TO_DATE = "already_up_to_date"
_SUMMARY = (
    "number",
    "title",
    "description",
    "state",
    "source",
    "target",
    "author",
    "reviewers",
    "created_at",
    "updated_at",
    "commit_id",
    "outcome",
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A merge that was about to be published: of which head, into which branch."""

    source_head: str
    target: str


@dataclass(frozen=True, slots=True)
class Merged:
    """How a head came into the target: by which commit, None when with later ones."""

    commit_id: str | None
    outcome: str


@dataclass(frozen=True, slots=True)
class MergeRequest(JsonForm):
    """A request to merge one branch into another. `commit_id` and `outcome` are of the merge.

    `review` is there for an open request that was asked for by its number.
    """

    number: int
    title: str
    description: str | None
    state: RequestState
    source: str
    target: str
    author: str | None
    reviewers: tuple[str, ...]
    created_at: int
    updated_at: int
    commit_id: str | None = None
    outcome: str | None = None
    review: Review | None = None
    verdicts: tuple[Verdict, ...] = ()
    comments: tuple[RequestComment, ...] = ()
    events: tuple[RequestEvent, ...] = field(default=(), hash=False)
    source_id: str | None = None
    attempts: tuple[Attempt, ...] = ()

    def to_summary(self) -> dict[str, Any]:
        """What a list shows of it."""
        facts = {name: to_json(getattr(self, name)) for name in _SUMMARY}
        return {**facts, "comment_count": len(self.comments)}

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return self.to_page(self.events, None)

    def to_page(self, events: Sequence[RequestEvent], next_after: int | None) -> dict[str, Any]:
        """All of it with some of its events, and the comments among them."""
        shown = {each.sequence for each in events}
        return {
            **self.to_summary(),
            "review": None if self.review is None else self.review.to_json(),
            "comments": [each.to_json() for each in self.comments if each.sequence in shown],
            "events": [each.to_json() for each in events],
            "event_count": len(self.events),
            "next_after": next_after,
        }

    def make_sheet(self) -> Sheet:
        facts: dict[str, Any] = {
            "state": self.state.value,
            "merge": f"{self.source} → {self.target}",
            "author": self.author,
            "reviewers": ", ".join(self.reviewers) or None,
            "commit": self.commit_id,
        }
        if self.review is not None and self.review.required:
            facts["approvals"] = f"{self.review.missing} of {self.review.required} missing"
        verdicts = self.verdicts if self.review is None else self.review.verdicts
        said = [(each.actor, _describe(each), format_time(each.at)) for each in verdicts]
        comments = [(each.actor, each.text, format_time(each.at)) for each in self.comments]
        grids = [
            Grid(("reviewer", "verdict", "at"), said),
            Grid(("by", "comment", "at"), comments),
        ]
        title = f"merge request {self.number}: {self.title}"
        return Sheet(title, facts, [each for each in grids if each.rows])

    __repr__ = show_text
    _repr_html_ = show_html


class RequestList(list[MergeRequest]):
    """Merge requests, newest first."""

    def make_sheet(self) -> Sheet:
        rows = [
            (each.number, each.state.value, each.source, each.target, each.author, each.title)
            for each in self
        ]
        columns = "number", "state", "source", "target", "author", "title"
        return Sheet(count_noun(len(self), "merge request"), {}, [Grid(columns, rows)])

    __repr__ = show_text
    _repr_html_ = show_html


def _describe(verdict: Verdict) -> str:
    words = verdict.verdict.replace("_", " ")
    return f"{words} (stale)" if verdict.is_stale else words


FindMerge = Callable[[Attempt], Merged | None]
"""What brought the head of an attempt into its target; None when it is not there."""


def read_request(
    number: int, events: Sequence[RequestEvent], find_merge: FindMerge
) -> MergeRequest:
    """What the events of a request come to. There is at least the first."""
    request = _fold(number, events)
    if request.state is RequestState.MERGED:
        return request
    for attempt in request.attempts:
        merged = find_merge(attempt)
        if merged is not None:
            return replace(
                request,
                state=RequestState.MERGED,
                commit_id=merged.commit_id,
                outcome=merged.outcome,
            )
    return request


def _fold(number: int, events: Sequence[RequestEvent]) -> MergeRequest:
    opened = events[0]
    facts: dict[str, Any] = dict(opened.facts)
    state, merged = RequestState.OPEN, dict[str, Any]()
    verdicts: dict[str | None, Verdict] = {}
    comments: list[RequestComment] = []
    attempts: list[Attempt] = []
    for event in events:
        said = event.facts
        match event.kind:
            case EventKind.EDITED:
                facts |= said
            case EventKind.COMMENTED:
                place = said.get("type"), said.get("id"), said.get("property")
                comment = event.sequence, event.actor, event.at, said["text"]
                comments.append(RequestComment(*comment, *place))
            case EventKind.APPROVED | EventKind.CHANGES_REQUESTED:
                verdicts[event.actor] = Verdict(
                    event.actor,
                    event.kind,
                    event.at,
                    said["head"],
                    said["target"],
                    said.get("text"),
                )
            case EventKind.APPROVAL_WITHDRAWN:
                verdicts.pop(event.actor, None)
            case EventKind.MERGING:
                attempts.append(Attempt(said["source_head"], said["target"]))
            case EventKind.MERGED:
                state, merged = RequestState.MERGED, dict(said)
            case EventKind.CLOSED | EventKind.REOPENED if state is not RequestState.MERGED:
                is_closed = event.kind == EventKind.CLOSED
                state = RequestState.CLOSED if is_closed else RequestState.OPEN
    return MergeRequest(
        number=number,
        title=facts["title"],
        description=facts["description"],
        state=state,
        source=facts["source"],
        target=facts["target"],
        author=opened.actor,
        reviewers=tuple(facts["reviewers"]),
        created_at=opened.at,
        updated_at=events[-1].at,
        commit_id=merged.get("commit_id"),
        outcome=merged.get("outcome"),
        verdicts=tuple(verdicts.values()),
        comments=tuple(comments),
        events=tuple(events),
        source_id=facts["source_id"],
        attempts=tuple(reversed(attempts)),
    )


def select_events(
    request: MergeRequest, after: int, limit: int
) -> tuple[Sequence[RequestEvent], int | None]:
    """The events after a sequence, and the sequence to go on from; None after the last."""
    shown = request.events[after : after + limit]
    last = after + len(shown)
    return shown, last if last < len(request.events) else None
