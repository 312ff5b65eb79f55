"""Operations on tags: list, set, remove."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.manifest.revisions import TAG_PREFIX
from omnigraph.manifest.tags import check_tag_name
from omnigraph.server.admission import BRANCH_WORK_BYTES
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.request_models import TagRequest
from omnigraph.server.states import find_origin
from omnigraph.wire import removed_to_json, tags_to_json


async def list_tags(call: Call) -> Response:
    """Every tag by name."""
    call.permit()
    return json_response(tags_to_json(await call.run_read(call.graph.graph.tags)))


async def create_tag(call: Call) -> Response:
    """Give a commit a name; its state stays as long as the tag."""
    body = await call.body(TagRequest)
    name = check_tag_name(body.name)
    branch, commit_id = await find_origin(call, body.at)
    call.permit(branch=branch, target_branch=f"{TAG_PREFIX}{name}")
    with call.admit(BRANCH_WORK_BYTES):
        made = await call.run_write(
            call.graph.graph.tag, name, commit_id, body.message, actor=call.actor
        )
    return json_response(made.to_json())


async def delete_tag(call: Call) -> Response:
    """Remove a tag; what only it kept goes with the next cleanup."""
    name = check_tag_name(call.request.path_params["tag"])
    call.permit(target_branch=f"{TAG_PREFIX}{name}")
    with call.admit(BRANCH_WORK_BYTES):
        await call.run_write(call.graph.graph.delete_tag, name, actor=call.actor)
    return json_response(removed_to_json(call.graph.uri, name, call.actor))
