"""Merge request models: the bodies that operations on merge requests take, and what they answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from omnigraph.server.request_models import StrictModel
from omnigraph.server.response_models import BranchMergeOutput, Outcome, ResponseModel
from omnigraph.server.undo_models import Resolve

State = Literal["open", "merged", "closed"]
Presence = Literal["present", "deleted", "replaced"]
_TIME = "Microseconds since 1970-01-01, UTC."


class OpenMergeRequest(StrictModel):
    """A branch to review, and where it should go."""

    source: str = Field(description="The branch whose changes are to be brought in.")
    target: str | None = Field(None, description="The branch to take them; `main` by default.")
    title: str = Field(description="One line; it becomes the message of the commit.")
    description: str | None = Field(None, description="What there is to know.")
    reviewers: list[str] = Field([], description="Actors who are asked to review it.")


class EditMergeRequest(StrictModel):
    """What to change; the rest stays."""

    title: str | None = None
    description: str | None = Field(None, description="An empty text removes it.")
    reviewers: list[str] | None = Field(None, description="All of them from now on.")
    target: str | None = Field(None, description="Approvals of another target do not count.")


class CommentRequest(StrictModel):
    """A comment on a merge request, or on a part of the graph that it changes."""

    text: str
    type: str | None = Field(None, description="The type of nodes or edges it is about.")
    id: str | None = Field(None, description="The node or edge it is about.")
    property: str | None = Field(None, description="The property it is about.")


class ApproveRequest(StrictModel):
    """An approval of the source as it is."""

    head: str | None = Field(None, description="Only while this commit is the head of the source.")
    text: str | None = None


class SayRequest(StrictModel):
    """Why, if there is a reason to give."""

    text: str | None = None


class CompleteRequestBody(StrictModel):
    """How to merge."""

    head: str | None = Field(None, description="Only while this commit is the head of the source.")
    resolve: Resolve = None
    delete_branch: bool = Field(
        False, description="Whether to delete the source branch afterwards."
    )


class MergeRequestSummary(ResponseModel):
    number: int
    title: str
    description: str | None
    state: State
    source: str
    target: str
    author: str | None
    reviewers: list[str]
    created_at: int = Field(description=_TIME)
    updated_at: int = Field(description=_TIME)
    commit_id: str | None = Field(description="The commit that merged it.")
    outcome: Outcome | None
    comment_count: int


class MergeRequestsOutput(ResponseModel):
    merge_requests: list[MergeRequestSummary]
    next_before: int | None = Field(description="The `before` of the next page.")


class VerdictItem(ResponseModel):
    actor: str | None
    verdict: Literal["approved", "changes_requested"]
    at: int = Field(description=_TIME)
    head: str
    target: str
    text: str | None
    is_stale: bool
    counts: bool


class ReviewItem(ResponseModel):
    head: str | None = Field(description="The head of the source now.")
    source_state: Presence
    target_state: Presence
    verdicts: list[VerdictItem]
    required: int = Field(description="How many approvals the policy asks for.")
    missing: int
    objectors: list[str]
    approvers: list[str] = Field(description="Who may still approve.")
    is_approved: bool


class CommentItem(ResponseModel):
    sequence: int
    actor: str | None
    at: int = Field(description=_TIME)
    text: str | None
    type: str | None
    id: str | None
    property: str | None
    is_hidden: bool = Field(description="It is about a type that the caller may not read.")


class RequestEventItem(ResponseModel):
    sequence: int
    kind: str
    at: int = Field(description=_TIME)
    actor: str | None
    facts: dict[str, Any]


class MergeRequestOutput(MergeRequestSummary):
    review: ReviewItem | None = Field(description="Null when the request is not open.")
    comments: list[CommentItem]
    events: list[RequestEventItem]
    event_count: int
    next_after: int | None = Field(description="The `after` of the next events.")


class MergeRequestDoneOutput(BranchMergeOutput):
    number: int
