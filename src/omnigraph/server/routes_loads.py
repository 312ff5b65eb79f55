"""Operations that load: `load`, its old name, raw `load/ndjson`, `load/files`; and `embed`."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from omnigraph.commit_note import CommitNote, parse_metadata, read_note
from omnigraph.errors import BadRequestError
from omnigraph.graph.loads import parse_option
from omnigraph.pipeline.model import LoadMode
from omnigraph.pipeline.spooled import SpooledFiles
from omnigraph.policy import Action
from omnigraph.server.bodies import BATCH_BYTES, read_bytes, read_json_bytes
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.http_errors import HttpError
from omnigraph.server.jobs import DEFAULT_MODE, Embed, Load, LoadDocument, LoadFiles, LoadLines
from omnigraph.server.request_models import EmbedRequest, resolve_branch
from omnigraph.server.routes_reads import mark_deprecated
from omnigraph.server.uploads import receive_upload
from omnigraph.server.url_parameters import list_parameter, one_parameter

NDJSON = "application/x-ndjson"
EMBED_BYTES = 256
"""What a run of `embed` counts for: it has no body to speak of, and is not free."""


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
    with call.admit(declared_size(call, limits.load_bytes_max)):
        content_type = call.request.headers.get("content-type", "")
        if content_type.partition(";")[0].strip().lower() != NDJSON:
            raise HttpError(415, f"content type is '{content_type[:80]}', expected {NDJSON}")
        data = await read_bytes(call.request, limits, limits.load_bytes_max, BATCH_BYTES)
        done = await call.run_job(LoadLines(wanted, limits.line_bytes_max), data)
    del done["uri"]
    return json_response(done)


async def load_files(call: Call) -> Response:
    """Load files of a form, of any format, as one commit; or see what that would change."""
    wanted = _read_load(call)
    is_preview = _read_flag(call, "dry_run", "false")
    await call.run_read(permit_load, call, wanted)
    limits = call.serving.settings.limits
    with call.admit(declared_size(call, limits.upload_bytes_max)):
        spooled = SpooledFiles.make()
        try:
            upload = await receive_upload(call, spooled)
        except BaseException:
            spooled.remove()
            raise
        job = LoadFiles(wanted, upload, is_preview)
        done = await call.run_job(job, when_ended=spooled.remove)
    del done["uri"]
    return json_response(done)


async def embed(call: Call) -> Response:
    """Make the `@embed` vectors that are missing, in one commit or several."""
    request = await call.body(EmbedRequest, is_optional=True)
    branch = resolve_branch(request.branch)
    call.permit(branch=branch)
    types = None if request.type_names is None else tuple(request.type_names)
    with call.admit(EMBED_BYTES):
        job = Embed(branch, types, request.reembed_all, call.actor, request.note)
        done = await call.run_job(job)
    return json_response(done)


def declared_size(call: Call, limit: int) -> int:
    """How long the body says it is; the limit where it does not say."""
    declared = call.request.headers.get("content-length", "")
    return min(int(declared), limit) if declared.isdecimal() else limit


def _read_flag(call: Call, name: str, default: str) -> bool:
    given = one_parameter(call.request, name) or default
    if given not in ("true", "false"):
        raise BadRequestError(f"{name} is '{given[:80]}', expected true or false")
    return given == "true"


def _read_load(call: Call) -> Load:
    """The load that the parameters of the URL describe."""
    base = one_parameter(call.request, "from")
    given = one_parameter(call.request, "mode") or DEFAULT_MODE
    mode = parse_option("load mode", given[:80], LoadMode)
    return Load(
        resolve_branch(one_parameter(call.request, "branch")),
        None if base is None else resolve_branch(base),
        mode,
        _read_flag(call, "embed", "true"),
        call.actor,
        read_url_note(call),
    )


def read_url_note(call: Call) -> CommitNote:
    """What the parameters `message` and `meta`, each `key=value`, say of the commit."""
    entries = list_parameter(call.request, "meta") or []
    return read_note(one_parameter(call.request, "message"), parse_metadata(entries))


def permit_load(call: Call, wanted: Load) -> None:
    """Check the policy for the change, and for the branch if the load would create it."""
    call.permit(branch=wanted.branch)
    if wanted.base is None or call.graph.gate.policy is None:
        return
    if wanted.branch not in call.graph.graph.branches():
        call.permit(action=Action.BRANCH_CREATE, branch=wanted.base, target_branch=wanted.branch)
