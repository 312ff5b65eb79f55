"""Operations on branches: list, create, reset, delete, merge."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from starlette.responses import Response

from omnigraph.errors import MergeConflicts, PolicyError
from omnigraph.graph import Graph
from omnigraph.manifest.branch_names import is_internal
from omnigraph.policy import Action
from omnigraph.server.admission import BRANCH_WORK_BYTES
from omnigraph.server.call import Call
from omnigraph.server.envelope import JSON, json_response
from omnigraph.server.jobs import Merge
from omnigraph.server.json_parts import encode_parts
from omnigraph.server.readable_types import hide_conflicts, permit_selection
from omnigraph.server.request_models import (
    BranchCreateRequest,
    BranchMergeRequest,
    BranchResetRequest,
    MergePreviewRequest,
    resolve_branch,
)
from omnigraph.server.states import find_origin, permit_state
from omnigraph.server.streaming import stream
from omnigraph.wire import (
    branch_created_to_json,
    merge_preview_to_json,
    removed_to_json,
    reset_to_json,
)


async def list_branches(call: Call) -> Response:
    """Every branch by name."""
    call.permit()
    found = await call.run_read(call.graph.graph.branches)
    return json_response({"branches": sorted(name for name in found if not is_internal(name))})


async def create_branch(call: Call) -> Response:
    """Make a branch that shows what another one shows now, or a commit or tag."""
    body = await call.body(BranchCreateRequest)
    name = resolve_branch(body.name)
    source, origin = await find_origin(call, body.from_)
    call.permit(branch=source, target_branch=name)
    with call.admit(BRANCH_WORK_BYTES):
        graph = call.graph.graph
        made = await call.run_write(graph.create_branch, name, origin, actor=call.actor)
    started = body.from_ or source
    return json_response(branch_created_to_json(call.graph.uri, started, made.branch, call.actor))


async def delete_branch(call: Call) -> Response:
    """Remove a branch and what only it holds."""
    name = resolve_branch(call.request.path_params["branch"])
    call.permit(target_branch=name)
    with call.admit(BRANCH_WORK_BYTES):
        await call.run_write(call.graph.graph.delete_branch, name, actor=call.actor)
    return json_response(removed_to_json(call.graph.uri, name, call.actor))


async def reset_branch(call: Call) -> Response:
    """Take a branch that no other branch uses back to an earlier commit; later ones are dropped."""
    body = await call.body(BranchResetRequest)
    name = resolve_branch(body.branch)
    call.permit(target_branch=name)
    state = await permit_state(call, body.to)
    with call.admit(BRANCH_WORK_BYTES):
        done = await call.run_write(
            call.graph.graph.reset_branch,
            name,
            state.head.commit_id,
            if_commit=body.if_commit,
            preview=body.preview,
            actor=call.actor,
        )
    return json_response(reset_to_json(done, call.actor))


async def merge_branches(call: Call) -> Response:
    """Bring what one branch did into another, as one commit or not at all."""
    body = await call.body(BranchMergeRequest)
    if body.preview:
        return await _preview(call, body)
    source, target = resolve_branch(body.source), resolve_branch(body.target)
    call.permit(branch=source, target_branch=target)
    job = Merge(
        source,
        target,
        call.actor,
        deletes=body.delete_branch,
        resolution=body.resolve,
        note=body.note,
        delete_refusal=refuse_delete(call, source) if body.delete_branch else None,
    )
    with call.admit(BRANCH_WORK_BYTES):
        before = await call.run_read(lambda: call.graph.graph.catalog)
        try:
            done = await call.run_job(job)
        except MergeConflicts as error:
            raise hide_conflicts(call, error, target) from None
        await call.run_read(call.graph.check_queries_if_changed, before)
        return json_response(done)


def refuse_delete(call: Call, branch: str) -> str | None:
    """Why the caller may not delete a branch; None if nothing speaks against it."""
    try:
        call.permit(action=Action.BRANCH_DELETE, target_branch=branch)
    except PolicyError as error:
        return str(error)
    return None


async def preview_merge(call: Call) -> Response:
    """What a merge would do, and what stands in its way. Writes nothing."""
    return await _preview(call, await call.body(MergePreviewRequest))


async def _preview(call: Call, body: MergePreviewRequest) -> Response:
    source, target = resolve_branch(body.source), resolve_branch(body.target)
    for branch in (source, target):
        call.permit(branch=branch, action=Action.READ)
        await permit_selection(call, branch, None, action=Action.READ)
    work = partial(_encode_preview, call.graph.graph, source, target, body)
    return await stream(call, work, JSON)


def _encode_preview(
    graph: Graph, source: str, target: str, wanted: MergePreviewRequest
) -> Iterator[bytes]:
    found = graph.merge(source, target, preview=True, resolve=wanted.resolve)
    value = merge_preview_to_json(found)
    value["changes"]["changes"] = islice(value["changes"]["changes"], wanted.changes_max)
    yield from encode_parts(value)
