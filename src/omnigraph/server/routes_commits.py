"""Operations on history: the commits of a branch, and one of them."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.request_models import resolve_branch
from omnigraph.server.url_parameters import one_parameter
from omnigraph.wire import commit_to_json, commits_to_json


async def list_commits(call: Call) -> Response:
    """The commits that a branch shows, newest first."""
    branch = resolve_branch(one_parameter(call.request, "branch"))
    call.permit(branch=branch)
    found = await call.run_read(call.graph.graph.commits, branch)
    return json_response(commits_to_json(found))


async def get_commit(call: Call) -> Response:
    """One commit, on whichever branch it is."""
    call.permit()
    found = await call.run_read(call.graph.graph.commit, call.request.path_params["commit_id"])
    return json_response(commit_to_json(found))
