"""Operations on checks: list, apply, run."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.manifest.checks import Check
from omnigraph.server.admission import BRANCH_WORK_BYTES
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.readable_types import permit_selection
from omnigraph.server.request_models import ChecksRequest, resolve_branch
from omnigraph.server.url_parameters import one_parameter
from omnigraph.wire import check_failures_to_json, checks_to_json


async def list_checks(call: Call) -> Response:
    """The queries that have to hold on a branch."""
    branch = resolve_branch(one_parameter(call.request, "branch"))
    call.permit(branch=branch)
    return json_response(checks_to_json(await call.run_read(call.graph.graph.checks, branch)))


async def apply_checks(call: Call) -> Response:
    """Make queries the checks of a branch, once they hold; others that it has go."""
    body = await call.body(ChecksRequest)
    branch = resolve_branch(body.branch)
    call.permit(target_branch=branch)
    wanted = [
        Check(each.name, each.query, tuple(each.expected), each.every_commit)
        for each in body.checks
    ]
    with call.admit(BRANCH_WORK_BYTES):
        done = await call.run_write(
            lambda: call.graph.graph.apply_checks(
                wanted,
                branch=branch,
                actor=call.actor,
                message=body.message,
                metadata=body.metadata,
            )
        )
    return json_response(done.to_json())


async def run_checks(call: Call) -> Response:
    """The checks that do not hold now, with their rows; who may not read a type may not ask."""
    branch = resolve_branch(one_parameter(call.request, "branch"))
    call.permit(branch=branch)
    await permit_selection(call, branch, None)
    found = await call.run_read(call.graph.graph.run_checks, branch)
    return json_response(check_failures_to_json(found))
