"""Operations that load records: `load`, its old name, and raw `load/ndjson`."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from omnigraph.errors import BadRequestError
from omnigraph.policy import Action
from omnigraph.server.bodies import BATCH_BYTES, read_bytes, read_json_bytes
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.http_errors import HttpError
from omnigraph.server.jobs import DEFAULT_MODE, Load, LoadDocument, LoadLines
from omnigraph.server.request_models import resolve_branch
from omnigraph.server.routes_reads import mark_deprecated
from omnigraph.server.url_parameters import one_parameter

NDJSON = "application/x-ndjson"


async def load(call: Call) -> Response:
    """Load records as one commit, or nothing."""
    limits = call.serving.settings.limits
    data = await read_json_bytes(call.request, limits, limits.load_bytes_max)
    job = LoadDocument(call.actor, limits.json_depth_max)
    with call.admit(len(data)):
        return json_response(await call.run_job(job, data, partial(permit_load, call)))


async def ingest(call: Call) -> Response:
    """The old name of `load`."""
    return mark_deprecated(await load(call), "load")


async def load_ndjson(call: Call) -> Response:
    """Load records sent as they are, one per line, by the strict grammar."""
    wanted = _read_load(call)
    await call.run_read(permit_load, call, wanted)
    limits = call.serving.settings.limits
    declared = call.request.headers.get("content-length", "")
    size = int(declared) if declared.isdecimal() else limits.load_bytes_max
    with call.admit(min(size, limits.load_bytes_max)):
        content_type = call.request.headers.get("content-type", "")
        if content_type.partition(";")[0].strip().lower() != NDJSON:
            raise HttpError(415, f"content type is '{content_type[:80]}', expected {NDJSON}")
        data = await read_bytes(call.request, limits, limits.load_bytes_max, BATCH_BYTES)
        done = await call.run_job(LoadLines(wanted, limits.line_bytes_max), data)
    del done["uri"]
    return json_response(done)


def _read_load(call: Call) -> Load:
    """The load that the parameters of the URL describe."""
    base = one_parameter(call.request, "from")
    mode = one_parameter(call.request, "mode") or DEFAULT_MODE
    if mode not in ("overwrite", "append", "merge"):
        raise BadRequestError(f"mode is '{mode[:80]}', expected overwrite, append or merge")
    embed = one_parameter(call.request, "embed") or "true"
    if embed not in ("true", "false"):
        raise BadRequestError(f"embed is '{embed[:80]}', expected true or false")
    return Load(
        resolve_branch(one_parameter(call.request, "branch")),
        None if base is None else resolve_branch(base),
        mode,
        embed == "true",
        call.actor,
    )


def permit_load(call: Call, wanted: Load) -> None:
    """Check the policy for the change, and for the branch if the load would create it."""
    call.permit(branch=wanted.branch)
    if wanted.base is None or call.graph.gate.policy is None:
        return
    if wanted.branch not in call.graph.graph.branches():
        call.permit(action=Action.BRANCH_CREATE, branch=wanted.base, target_branch=wanted.branch)
