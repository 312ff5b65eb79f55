"""Operations on branches: list, create, delete, merge."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.manifest.branch_names import is_internal
from omnigraph.server.admission import BRANCH_WORK_BYTES
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.jobs import Merge
from omnigraph.server.request_models import BranchCreateRequest, BranchMergeRequest, resolve_branch
from omnigraph.wire import branch_created_to_json, branch_deleted_to_json


async def list_branches(call: Call) -> Response:
    """Every branch by name."""
    call.permit()
    found = await call.run_read(call.graph.graph.branches)
    return json_response({"branches": sorted(name for name in found if not is_internal(name))})


async def create_branch(call: Call) -> Response:
    """Make a branch that shows what another one shows now."""
    body = await call.body(BranchCreateRequest)
    name, source = resolve_branch(body.name), resolve_branch(body.from_)
    call.permit(branch=source, target_branch=name)
    with call.admit(BRANCH_WORK_BYTES):
        graph = call.graph.graph
        made = await call.run_write(graph.create_branch, name, source, actor=call.actor)
    return json_response(branch_created_to_json(call.graph.uri, source, made.branch, call.actor))


async def delete_branch(call: Call) -> Response:
    """Remove a branch and what only it holds."""
    name = resolve_branch(call.request.path_params["branch"])
    call.permit(target_branch=name)
    with call.admit(BRANCH_WORK_BYTES):
        await call.run_write(call.graph.graph.delete_branch, name, actor=call.actor)
    return json_response(branch_deleted_to_json(call.graph.uri, name, call.actor))


async def merge_branches(call: Call) -> Response:
    """Bring what one branch did into another, as one commit or not at all."""
    body = await call.body(BranchMergeRequest)
    source, target = resolve_branch(body.source), resolve_branch(body.target)
    call.permit(branch=source, target_branch=target)
    job = Merge(source, target, call.actor, deletes=body.delete_branch)
    with call.admit(BRANCH_WORK_BYTES):
        return json_response(await call.run_job(job))
