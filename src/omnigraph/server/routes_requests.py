"""Operations on merge requests: list, show, open, discuss, approve, merge.

A caller has to be able to read both branches. Comments on a type that the caller may not read are
shown without their content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from starlette.responses import Response

from omnigraph.branch.merge_request import EventKind, MergeRequest, select_events
from omnigraph.errors import MergeConflicts, MergeRequestNotFound, NotFoundError, PolicyError
from omnigraph.graph import Graph
from omnigraph.graph import merge_requests as verbs
from omnigraph.graph.graph import get_session
from omnigraph.graph.session import Session
from omnigraph.policy import Action
from omnigraph.server.admission import BRANCH_WORK_BYTES
from omnigraph.server.call import Call
from omnigraph.server.envelope import JSON, json_response
from omnigraph.server.jobs import CompleteRequest
from omnigraph.server.json_parts import encode_parts
from omnigraph.server.merge_request_models import (
    ApproveRequest,
    CommentRequest,
    CompleteRequestBody,
    EditMergeRequest,
    OpenMergeRequest,
    SayRequest,
)
from omnigraph.server.readable_types import hide_comments, hide_conflicts, permit_selection
from omnigraph.server.request_models import resolve_branch
from omnigraph.server.routes_branches import refuse_delete
from omnigraph.server.streaming import stream
from omnigraph.server.url_parameters import check_parameters, integer_parameter, one_parameter
from omnigraph.wire import merge_requests_to_json, request_preview_to_json

LIST_LIMIT = 50
EVENTS_LIMIT = 100
LIMIT_MAX = 1_000

Verb = Callable[[Session, verbs.Permit], MergeRequest]


async def list_merge_requests(call: Call) -> Response:
    """Merge requests between branches that the caller may read, newest first."""
    check_parameters(call.request, ("state", "limit", "before"))
    if call.may(Action.READ):
        call.leave_permit_to_parts()  # each request is shown to who may read its branches
    else:
        call.permit()
    state = one_parameter(call.request, "state") or "open"
    limit = min(integer_parameter(call.request, "limit") or LIST_LIMIT, LIMIT_MAX)
    before = integer_parameter(call.request, "before")
    gate = call.graph.gate

    def is_shown(request: MergeRequest) -> bool:
        branches = request.source, request.target
        return all(gate.may_read(call.actor, each) for each in branches)

    session = get_session(call.graph.graph)
    asked = partial(verbs.list_requests, session, state, before=before, is_shown=is_shown)
    return json_response(merge_requests_to_json(await call.run_read(asked, limit=limit + 1), limit))


async def get_merge_request(call: Call) -> Response:
    """A merge request: what was said, which approvals count, what is missing."""
    check_parameters(call.request, ("after", "limit"))
    found = await _find(call)
    after = integer_parameter(call.request, "after", least=0) or 0
    limit = min(integer_parameter(call.request, "limit") or EVENTS_LIMIT, LIMIT_MAX)
    return await _answer(call, found, after, limit)


async def preview_merge_request(call: Call) -> Response:
    """What merging a request would do now, and what stands in its way. Writes nothing."""
    check_parameters(call.request, ("changes_max",))
    found = await _find(call)
    for branch in (found.source, found.target):
        await permit_selection(call, branch, None, action=Action.READ)
    wanted = integer_parameter(call.request, "changes_max", least=0)
    return await stream(call, partial(_encode, call.graph.graph, found.number, wanted), JSON)


def _encode(graph: Graph, number: int, changes_max: int | None) -> Iterator[bytes]:
    value = request_preview_to_json(graph.preview_merge_request(number))
    value["changes"]["changes"] = islice(value["changes"]["changes"], changes_max)
    yield from encode_parts(value)


async def open_merge_request(call: Call) -> Response:
    """Ask for a branch to be reviewed and merged into another."""
    body = await call.body(OpenMergeRequest)
    source, target = resolve_branch(body.source), resolve_branch(body.target)
    call.permit(branch=source, target_branch=target)
    for branch in (source, target):
        call.permit(branch=branch, action=Action.READ)
    with call.admit(BRANCH_WORK_BYTES):
        made = await call.run_write(
            call.graph.graph.open_merge_request,
            source,
            target,
            title=body.title,
            description=body.description,
            reviewers=body.reviewers,
            actor=call.actor,
        )
    return await _answer(call, made)


async def edit_merge_request(call: Call) -> Response:
    """Change the title, description, reviewers or target of an open request."""
    body = await call.body(EditMergeRequest)
    number, changed = _number(call), body.model_dump()
    if body.target is not None:
        call.permit(branch=resolve_branch(body.target), action=Action.READ)
    return await _say(
        call, lambda session, permit: verbs.edit_request(session, number, permit, changed)
    )


async def comment_on_merge_request(call: Call) -> Response:
    """Comment on a merge request, or on a type, a node or edge, or a property of it."""
    body = await call.body(CommentRequest)
    number, anchor = _number(call), (body.type, body.id, body.property)
    if body.type is not None:
        found = await _find(call)
        await permit_selection(call, found.source, [body.type], action=Action.READ)
    return await _say(
        call,
        lambda session, permit: verbs.comment_on_request(
            session, number, permit, body.text, anchor
        ),
    )


async def approve_merge_request(call: Call) -> Response:
    """Approve the source of a request as it is now."""
    body, number = await call.body(ApproveRequest, is_optional=True), _number(call)
    return await _say(
        call,
        lambda session, permit: verbs.give_verdict(
            session, number, permit, EventKind.APPROVED, head=body.head, text=body.text
        ),
    )


async def request_changes(call: Call) -> Response:
    """Object to a merge until changes are made."""
    body, number = await call.body(SayRequest, is_optional=True), _number(call)
    return await _say(
        call,
        lambda session, permit: verbs.give_verdict(
            session, number, permit, EventKind.CHANGES_REQUESTED, text=body.text
        ),
    )


async def withdraw_approval(call: Call) -> Response:
    """Take back what the caller has approved or objected to."""
    number = _number(call)
    return await _say(call, lambda session, permit: verbs.withdraw_verdict(session, number, permit))


async def close_merge_request(call: Call) -> Response:
    """Close a request that is not to be merged."""
    body, number = await call.body(SayRequest, is_optional=True), _number(call)
    return await _say(
        call, lambda session, permit: verbs.close_request(session, number, permit, body.text)
    )


async def reopen_merge_request(call: Call) -> Response:
    """Open a closed request again."""
    body, number = await call.body(SayRequest, is_optional=True), _number(call)
    return await _say(
        call, lambda session, permit: verbs.reopen_request(session, number, permit, body.text)
    )


async def complete_merge_request(call: Call) -> Response:
    """Merge the source of a request, as one commit or not at all."""
    body = await call.body(CompleteRequestBody, is_optional=True)
    found = await _find(call)
    call.permit(branch=found.source, target_branch=found.target)
    job = CompleteRequest(
        found.number,
        found.source,
        found.target,
        call.actor,
        head=body.head,
        deletes=body.delete_branch,
        resolution=body.resolve,
        delete_refusal=refuse_delete(call, found.source) if body.delete_branch else None,
    )
    with call.admit(BRANCH_WORK_BYTES):
        before = await call.run_read(lambda: call.graph.graph.catalog)
        try:
            done = await call.run_job(job)
        except MergeConflicts as error:
            raise hide_conflicts(call, error, found.target) from None
        await call.run_read(call.graph.check_queries_if_changed, before)
        return json_response(done)


async def _say(call: Call, verb: Verb) -> Response:
    """Add to a request, once the caller may: what was permitted is what is added to."""
    found = await _find(call)
    _permit(call, found)
    session = get_session(call.graph.graph)
    with call.admit(BRANCH_WORK_BYTES):
        return await _answer(call, await call.run_write(verb, session, partial(_permit, call)))


def _permit(call: Call, request: MergeRequest) -> str | None:
    call.permit(branch=request.source, target_branch=request.target)
    return call.actor


async def _find(call: Call) -> MergeRequest:
    """The request that the path names, once the caller may read both of its branches."""
    try:
        found = await call.run_read(call.graph.graph.merge_request, _number(call))
    except MergeRequestNotFound:
        # A caller who may read nothing does not learn which requests there are.
        if not call.may(Action.READ):
            raise PolicyError("the caller may not read merge requests") from None
        raise
    for branch in (found.source, found.target):
        call.permit(branch=branch, action=Action.READ)
    return found


def _number(call: Call) -> int:
    text = call.request.path_params["number"]
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise NotFoundError(f"no merge request '{text[:40]}' — they have numbers, from 1 on")
    return int(text)


async def _answer(
    call: Call, request: MergeRequest, after: int = 0, limit: int = EVENTS_LIMIT
) -> Response:
    shown = await call.run_read(hide_comments, call, request)
    return json_response(shown.to_page(*select_events(shown, after, limit)))
