"""Merge requests on an open graph: what each verb checks before it adds its event.

`permit` says who acts, or refuses. It is asked of the request as it is when the event is written:
a request that gets another target meanwhile is not approved for that one by mistake.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from omnigraph.branch.forecast import CheckForecast
from omnigraph.branch.merge import MergeOutcome, MergePreview, MergeResult, preview_merge
from omnigraph.branch.merge_request import EventKind, MergeRequest, RequestList, RequestState
from omnigraph.branch.request_review import require_approvals, review_request
from omnigraph.branch.request_verbs import (
    Requests,
    Said,
    check_reviewers,
    check_text,
    check_title,
    require_open,
    require_source,
)
from omnigraph.commit_note import read_note
from omnigraph.dataclass import dataclass
from omnigraph.display import Sheet, show_html, show_text
from omnigraph.errors import BadRequestError, BranchNotFound, ConflictError, with_suggestion
from omnigraph.failpoints import Failpoint, hit
from omnigraph.graph.merges import delete_source, run_merge
from omnigraph.manifest.branch_names import canonical_branch, is_internal

if TYPE_CHECKING:
    from omnigraph.branch.choices import Resolution
    from omnigraph.graph.session import Session

ALL = "all"

Permit = Callable[[MergeRequest], str | None]
"""Says who acts on a request, or raises PolicyError."""


@dataclass(frozen=True, slots=True)
class RequestPreview:
    """What merging a request would do now."""

    merge: MergePreview

    @property
    def checks(self) -> Sequence[CheckForecast]:
        """The checks that the merge is held to."""
        return self.merge.checks

    def make_sheet(self) -> Sheet:
        return self.merge.make_sheet()

    __repr__ = show_text
    _repr_html_ = show_html


# Reading


def list_requests(
    session: Session,
    state: str,
    *,
    limit: int | None = None,
    before: int | None = None,
    is_shown: Callable[[MergeRequest], bool] = lambda _: True,
) -> RequestList:
    """Requests in a state, or all, newest first; as few as possible are read."""
    known = [ALL, *RequestState]
    if state not in known:
        raise BadRequestError(f"state is {state[:40]!r}, expected one of {', '.join(known)}")
    for name, value in (("limit", limit), ("before", before)):
        if value is not None and value < 1:
            raise BadRequestError(f"{name} is {value}, expected 1 or more")
    session.read_contract()
    wanted = None if state == ALL else RequestState(state)
    found = _requests(session).list_all(wanted, before=before)
    return RequestList(
        islice(filter(is_shown, found), None if limit is None else min(limit, sys.maxsize))
    )


def find_request(session: Session, number: int) -> MergeRequest:
    """A request, and how far it is from being merged."""
    session.read_contract()
    return _with_review(session, _requests(session).find(number))


def preview_request(session: Session, number: int) -> RequestPreview:
    """What merging a request would do now. Nothing is written."""
    session.read_contract()
    request = _requests(session).find(number)
    require_open(request)
    source = require_source(session.coordinator, request, None)
    catalog = session.read_schema(request.target).catalog
    return RequestPreview(
        preview_merge(session.environment(), catalog, source.branch, request.target)
    )


def _with_review(session: Session, request: MergeRequest) -> MergeRequest:
    if request.state is not RequestState.OPEN:
        return request
    return replace(request, review=review_request(session.coordinator, session.policy, request))


# Saying something


def open_request(
    session: Session,
    source: str,
    target: str,
    *,
    title: str,
    description: str | None,
    reviewers: Sequence[str],
    actor: str | None,
) -> MergeRequest:
    """Begin a request. Whether the actor may was asked before."""
    facts = {
        "title": check_title(title),
        "description": check_text("description", description),
        "reviewers": check_reviewers(reviewers),
    }
    if source == target:
        raise BadRequestError(f"cannot merge branch '{source}' into itself")
    session.require_writable()
    state = session.coordinator.fresh(source)
    _require_target(session, target)
    return _with_review(session, _requests(session).open(state, target, facts, actor))


def edit_request(
    session: Session, number: int, permit: Permit, changed: dict[str, Any]
) -> MergeRequest:
    """Change title, description, reviewers or target; what is None stays."""
    checks: dict[str, Callable[[Any], Any]] = {
        "title": check_title,
        "description": lambda text: check_text("description", text),
        "reviewers": check_reviewers,
        "target": canonical_branch,
    }
    wanted = {key: value for key, value in changed.items() if value is not None}
    facts = {key: checks[key](value) for key, value in wanted.items()}

    def decide(request: MergeRequest) -> Said | None:
        require_open(request)
        if "target" in facts:
            _require_target(session, facts["target"])
        if facts.get("target") == request.source:
            raise BadRequestError(f"cannot merge branch '{request.source}' into itself")
        present = {key: getattr(request, key) for key in facts}
        present = present | {"reviewers": list(request.reviewers)}
        new = {key: value for key, value in facts.items() if present[key] != value}
        return Said(EventKind.EDITED, new) if new else None

    return _add(session, number, permit, decide)


def comment_on_request(
    session: Session,
    number: int,
    permit: Permit,
    text: str,
    anchor: tuple[str | None, str | None, str | None],
) -> MergeRequest:
    """Say something about a request, or about a type, an entity or a property of one."""
    checked = check_text("comment", text)
    if checked is None:
        raise BadRequestError("the comment is empty — nothing was done; say something")

    def decide(request: MergeRequest) -> Said:
        names = dict(zip(("type", "id", "property"), anchor, strict=True))
        _check_anchor(session, request, names)
        said = {key: value for key, value in names.items() if value is not None}
        return Said(EventKind.COMMENTED, {"text": checked, **said})

    return _add(session, number, permit, decide)


def give_verdict(
    session: Session,
    number: int,
    permit: Permit,
    kind: EventKind,
    *,
    head: str | None = None,
    text: str | None = None,
) -> MergeRequest:
    """Approve the source as it is, or ask for changes."""
    checked = check_text("text", text)

    def decide(request: MergeRequest) -> Said:
        require_open(request)
        source = require_source(session.coordinator, request, head)
        facts = {"head": source.head.commit_id, "target": request.target}
        return Said(kind, facts if checked is None else {**facts, "text": checked})

    return _add(session, number, permit, decide)


def withdraw_verdict(session: Session, number: int, permit: Permit) -> MergeRequest:
    """Take back what the actor has approved or objected to."""

    def decide(request: MergeRequest) -> Said | None:
        require_open(request)
        mine = [each for each in request.verdicts if each.actor == permit(request)]
        return Said(EventKind.APPROVAL_WITHDRAWN, {}) if mine else None

    return _add(session, number, permit, decide)


def close_request(
    session: Session, number: int, permit: Permit, text: str | None = None
) -> MergeRequest:
    """Close a request that is not to be merged."""
    return _end(session, number, permit, EventKind.CLOSED, RequestState.OPEN, text)


def reopen_request(
    session: Session, number: int, permit: Permit, text: str | None = None
) -> MergeRequest:
    """Open a closed request again."""
    return _end(session, number, permit, EventKind.REOPENED, RequestState.CLOSED, text)


def _end(
    session: Session,
    number: int,
    permit: Permit,
    kind: EventKind,
    state: RequestState,
    text: str | None,
) -> MergeRequest:
    checked = check_text("text", text)

    def decide(request: MergeRequest) -> Said | None:
        if request.state is RequestState.MERGED:
            require_open(request)
        said = {} if checked is None else {"text": checked}
        return Said(kind, said) if request.state is state else None

    return _add(session, number, permit, decide)


# Merging


def complete_request(
    session: Session,
    number: int,
    permit: Permit,
    *,
    head: str | None = None,
    resolution: Resolution | None = None,
    deletes: bool = False,
) -> MergeResult:
    """Merge what was approved, as one commit or not at all.

        written              a crash here leaves
        `merging`            an open request; recovery finishes or undoes the merge
        the merge            a request that is merged: its head is in the history of the target
        `merged`             the same, said
        the source goes      –

    Raises:
        ApprovalsMissing: The policy asks for more approvals of this head.
        SourceMoved: The source moved on. Nothing was merged.
        MergeConflicts, ChecksFailed: The request stays open.
    """
    session.read_contract()
    requests = _requests(session)
    permit(requests.find(number))
    session.require_writable()
    request = requests.complete_record(number)
    who = permit(request)
    require_open(request)
    source = require_source(session.coordinator, request, head)
    merged_head = source.head.commit_id
    require_approvals(session.coordinator, session.policy, request, source)

    def say_merging(target_head: str) -> None:
        facts = {
            "source_head": merged_head,
            "target": request.target,
            "target_head": target_head,
        }

        def decide(now: MergeRequest) -> Said | None:
            require_open(now)
            if now.target != request.target:
                raise ConflictError(
                    f"merge request {number} is into '{now.target}' by now — nothing was merged"
                )
            require_approvals(session.coordinator, session.policy, now, source)
            last = now.events[-1]
            is_said = last.kind == EventKind.MERGING and last.facts == facts
            return None if is_said else Said(EventKind.MERGING, facts)

        hit(Failpoint.MERGE_REQUEST_BEFORE_MERGING)
        requests.add(number, who, decide)
        hit(Failpoint.MERGE_REQUEST_AFTER_MERGING)

    result = run_merge(
        session,
        request.source,
        request.target,
        actor=who,
        note=read_note(request.title, {"merge_request": str(number)}),
        resolution=resolution,
        source_head=merged_head,
        before_publish=say_merging,
    )
    hit(Failpoint.MERGE_REQUEST_BEFORE_MERGED)

    def say_merged(now: MergeRequest) -> Said | None:
        if now.state is RequestState.MERGED:
            return None
        require_open(now)  # all was there already, and it was closed meanwhile
        return Said(EventKind.MERGED, {"commit_id": None, "outcome": result.outcome.value})

    told = requests.add(number, who, say_merged)
    outcome = MergeOutcome(told.outcome or result.outcome)
    result = replace(result, outcome=outcome, commit_id=told.commit_id)
    return delete_source(session, result) if deletes else result


def _add(
    session: Session,
    number: int,
    permit: Permit,
    decide: Callable[[MergeRequest], Said | None],
) -> MergeRequest:
    session.read_contract()
    requests = _requests(session)
    who = permit(requests.find(number))
    session.require_writable()

    def permit_and_decide(request: MergeRequest) -> Said | None:
        permit(request)
        return decide(request)

    return _with_review(session, requests.add(number, who, permit_and_decide))


def _check_anchor(session: Session, request: MergeRequest, names: dict[str, str | None]) -> None:
    """Refuse an anchor that is nowhere: a type of the source, or of the target."""
    if names["type"] is None:
        if names["id"] is not None or names["property"] is not None:
            raise BadRequestError("a comment on an id or a property needs the type — name it")
        return
    known: dict[str, set[str]] = {}
    for branch in (request.source, request.target):
        if session.coordinator.has_branch(branch):
            for entity in session.read_schema(branch).catalog.entities():
                known.setdefault(entity.name, set()).update(entity.properties)
    if names["type"] not in known:
        text = f"there is no type '{names['type'][:80]}' to comment on"
        raise BadRequestError(with_suggestion(text, names["type"], known))
    check_text("id of the comment", names["id"])
    if names["property"] is not None and names["property"] not in known[names["type"]]:
        text = f"{names['type']} has no property '{names['property'][:80]}' to comment on"
        raise BadRequestError(with_suggestion(text, names["property"], known[names["type"]]))


def _require_target(session: Session, target: str) -> str:
    if is_internal(target) or not session.coordinator.has_branch(target):
        raise BranchNotFound(target, session.coordinator.branches())
    return target


def _requests(session: Session) -> Requests:
    return Requests(session.coordinator)
