"""Operations that undo: revert commits, make them again elsewhere, restore a state.

What rows were before is part of an answer with conflicts, so a caller has to be able to read both
the branch and where the commits were made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import cast

from starlette.responses import Response

from omnigraph.branch.merge import MergePreview
from omnigraph.errors import MergeConflicts
from omnigraph.graph import Graph
from omnigraph.graph.graph import get_session
from omnigraph.manifest import GraphCommit
from omnigraph.manifest.revisions import find_commit
from omnigraph.policy import Action
from omnigraph.server.admission import BRANCH_WORK_BYTES
from omnigraph.server.call import Call
from omnigraph.server.envelope import JSON, json_response
from omnigraph.server.jobs import Undo
from omnigraph.server.json_parts import encode_parts
from omnigraph.server.readable_types import hide_conflicts, permit_selection
from omnigraph.server.request_models import NotedModel
from omnigraph.server.states import permit_state
from omnigraph.server.streaming import stream
from omnigraph.server.undo_models import (
    PickPreviewRequest,
    PickRequest,
    RestorePreviewRequest,
    RestoreRequest,
    RevertPreviewRequest,
    RevertRequest,
)
from omnigraph.undo_calls import RestoreCall, UndoCall
from omnigraph.wire import merge_preview_to_json


async def revert(call: Call) -> Response:
    """Take back what commits did to a branch, as one commit or not at all."""
    body = await call.body(RevertRequest)
    return await _undo(call, body.to_call(), body)


async def preview_revert(call: Call) -> Response:
    """What a revert would do, and what stands in its way. Writes nothing."""
    body = await call.body(RevertPreviewRequest)
    return await _preview(call, body.to_call(), body.changes_max)


async def cherry_pick(call: Call) -> Response:
    """Make the changes of commits again on another branch, as one commit or not at all."""
    body = await call.body(PickRequest)
    return await _undo(call, body.to_call(), body)


async def preview_cherry_pick(call: Call) -> Response:
    """What a cherry-pick would do, and what stands in its way. Writes nothing."""
    body = await call.body(PickPreviewRequest)
    return await _preview(call, body.to_call(), body.changes_max)


async def restore(call: Call) -> Response:
    """Make a branch, or some types or ids of it, what an earlier state shows."""
    body = await call.body(RestoreRequest)
    return await _undo(call, body.to_call(), body)


async def preview_restore(call: Call) -> Response:
    """What a restore would do, and what stands in its way. Writes nothing."""
    body = await call.body(RestorePreviewRequest)
    return await _preview(call, body.to_call(), body.changes_max)


async def _undo(call: Call, asked: UndoCall, body: NotedModel) -> Response:
    call.permit(branch=asked.branch, action=Action.CHANGE)
    permitted = await _permit_reading(call, asked)
    job = Undo(permitted, call.actor, body.note)
    with call.admit(BRANCH_WORK_BYTES):
        try:
            return json_response(await call.run_job(job))
        except MergeConflicts as error:
            raise hide_conflicts(call, error, asked.branch) from None


async def _preview(call: Call, asked: UndoCall, changes_max: int | None) -> Response:
    permitted = await _permit_reading(call, asked)
    chosen = asked.types if isinstance(asked, RestoreCall) else None
    await permit_selection(call, asked.branch, chosen, action=Action.READ)
    return await stream(call, partial(_encode, call.graph.graph, permitted, changes_max), JSON)


def _encode(graph: Graph, asked: UndoCall, changes_max: int | None) -> Iterator[bytes]:
    found = asked.ask(graph, None, preview=True)
    value = merge_preview_to_json(cast("MergePreview", found))
    value["changes"]["changes"] = islice(value["changes"]["changes"], changes_max)
    yield from encode_parts(value)


async def _permit_reading(call: Call, asked: UndoCall) -> UndoCall:
    """Check that the caller may read all of it; what was permitted is what is used."""
    call.permit(branch=asked.branch, action=Action.READ)
    if isinstance(asked, RestoreCall):
        state = await permit_state(call, asked.revision)
        return replace(asked, revision=state.head.commit_id)
    commits = await call.run_read(_find_commits, call.graph.graph, asked.commits)
    for branch in {each.branch for each in commits}:
        call.permit(branch=branch, action=Action.READ)
    return replace(asked, commits=[each.commit_id for each in commits])


def _find_commits(graph: Graph, revisions: Sequence[str]) -> list[GraphCommit]:
    session = get_session(graph)
    session.read_contract()
    return [find_commit(session.coordinator, each) for each in revisions]
