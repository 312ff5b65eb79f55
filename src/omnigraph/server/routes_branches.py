"""Operations on branches: list, create, delete, merge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from omnigraph.branch.merge import MergeResult
from omnigraph.errors import OmnigraphError
from omnigraph.manifest.branch_names import is_internal
from omnigraph.policy import Action
from omnigraph.server.admission import BRANCH_WORK_BYTES
from omnigraph.server.call import Call, branch_of
from omnigraph.server.envelope import json_response
from omnigraph.server.graphs import OpenGraph
from omnigraph.server.request_models import BranchCreateRequest, BranchMergeRequest
from omnigraph.wire import branch_created_to_json, branch_deleted_to_json, merge_to_json


async def list_branches(call: Call) -> Response:
    """Every branch by name."""
    call.permit()
    found = await call.reading(call.graph.graph.branches)
    return json_response({"branches": sorted(name for name in found if not is_internal(name))})


async def create_branch(call: Call) -> Response:
    """Make a branch that shows what another one shows now."""
    body = await call.body(BranchCreateRequest)
    name, source = branch_of(body.name), branch_of(body.from_)
    call.permit(branch=source, target_branch=name)
    with call.admit(BRANCH_WORK_BYTES):
        graph = call.graph.graph
        made = await call.writing(graph.create_branch, name, source, actor=call.actor)
    return json_response(branch_created_to_json(call.graph.uri, source, made.branch, call.actor))


async def delete_branch(call: Call) -> Response:
    """Remove a branch and what only it holds."""
    name = branch_of(call.request.path_params["branch"])
    call.permit(target_branch=name)
    with call.admit(BRANCH_WORK_BYTES):
        await call.writing(call.graph.graph.delete_branch, name, actor=call.actor)
    return json_response(branch_deleted_to_json(call.graph.uri, name, call.actor))


async def merge_branches(call: Call) -> Response:
    """Bring what one branch did into another, as one commit or not at all."""
    body = await call.body(BranchMergeRequest)
    source, target = branch_of(body.source), branch_of(body.target)
    call.permit(branch=source, target_branch=target)
    with call.admit(BRANCH_WORK_BYTES):
        result = await call.writing(
            _merge, call.graph, source, target, call.actor, deletes=body.delete_branch
        )
    return json_response(result)


def _merge(
    opened: OpenGraph, source: str, target: str, actor: str | None, *, deletes: bool
) -> dict[str, Any]:
    merged = opened.graph.merge(source, target, actor=actor)
    assert isinstance(merged, MergeResult)
    return merge_to_json(_delete_source(opened, merged, actor) if deletes else merged)


def _delete_source(opened: OpenGraph, merged: MergeResult, actor: str | None) -> MergeResult:
    """Remove the source, if the actor may. The merge stands, whatever comes of this."""
    try:
        opened.gate.require(actor, Action.BRANCH_DELETE, target_branch=merged.source)
        opened.graph.delete_branch(merged.source, actor=actor)
    except OmnigraphError as error:
        return replace(merged, branch_deleted=False, branch_delete_error=str(error))
    return replace(merged, branch_deleted=True)
