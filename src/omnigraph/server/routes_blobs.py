"""The operations on one Blob: read it, whole or in part, and write it; never all in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from starlette.responses import Response

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.graph.blob_reader import BlobReader
from omnigraph.pipeline.spooled import SpooledFiles
from omnigraph.policy import Action
from omnigraph.server.bodies import stream_bytes
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.http_errors import HttpError
from omnigraph.server.jobs import PutBlob
from omnigraph.server.readable_types import permit_selection
from omnigraph.server.request_models import resolve_branch
from omnigraph.server.routes_loads import declared_size, read_url_note
from omnigraph.server.states import permit_state
from omnigraph.server.streaming import stream
from omnigraph.server.uploads import UPLOAD_BYTES
from omnigraph.server.url_parameters import check_parameters, one_parameter, require_parameter

BYTES = "application/octet-stream"
PARAMETERS = ("entity", "type", "id", "property", "branch", "snapshot")
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes `start` to `end` of a Blob, `end` not included."""

    start: int
    end: int
    is_whole: bool = True


async def get_blob(call: Call) -> Response:
    """The bytes of one Blob of a node or edge, or one range of them."""
    blob, headers = await _open(call)
    if _is_known(call.request.headers, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    part = _read_range(call.request.headers, headers["ETag"], blob.size)
    headers["Content-Length"] = str(part.end - part.start)
    if not part.is_whole:
        headers["Content-Range"] = f"bytes {part.start}-{part.end - 1}/{blob.size}"
    response = await stream(call, partial(blob.read_parts, part.start, part.end), BYTES)
    response.status_code = 200 if part.is_whole else 206
    response.headers.update(headers)
    return response


async def head_blob(call: Call) -> Response:
    """What `getBlob` would answer, without the bytes."""
    blob, headers = await _open(call)
    if _is_known(call.request.headers, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(headers={**headers, "Content-Length": str(blob.size)}, media_type=BYTES)


async def put_blob(call: Call) -> Response:
    """Make the body the bytes of one Blob of a node or edge, as one commit."""
    request = call.request
    check_parameters(request, (*PARAMETERS[:5], "message", "meta"))
    names = [require_parameter(request, name) for name in PARAMETERS[:4]]
    branch = resolve_branch(one_parameter(request, "branch"))
    call.permit(branch=branch)
    note = read_url_note(call)
    limits = call.serving.settings.limits
    with call.admit(declared_size(call, limits.upload_bytes_max)):
        spooled = SpooledFiles.make()
        try:
            path, size = await _receive(call, spooled)
        except BaseException:
            spooled.remove()
            raise
        wanted = request.headers.get("if-match")
        cell = names[0], names[1], names[2], names[3]
        if_match = None if wanted is None else wanted.strip().strip('"')
        job = PutBlob(cell, path, size, branch, if_match, call.actor, note)
        done = await call.run_job(job, when_ended=spooled.remove)
    return json_response(done, headers={"ETag": f'"{done["etag"]}"'})


async def _receive(call: Call, spooled: SpooledFiles) -> tuple[str, int]:
    """Keep the body in a file while it arrives; its path and size."""
    limits = call.serving.settings.limits
    limit, size = limits.upload_bytes_max, 0
    with spooled.create("blob") as file:
        async for chunk in stream_bytes(call.request, limits, limit, UPLOAD_BYTES):
            size += len(chunk)
            await call.run_read(file.write, chunk)
    return file.name, size


async def _open(call: Call) -> tuple[BlobReader, dict[str, str]]:
    """Open the Blob that the parameters name, with the headers that every answer has."""
    request = call.request
    check_parameters(request, PARAMETERS)
    names = [require_parameter(request, name) for name in PARAMETERS[:4]]
    branch, snapshot = one_parameter(request, "branch"), one_parameter(request, "snapshot")
    if branch is not None and snapshot is not None:
        raise BadRequestError("request may specify branch or snapshot, not both")
    shown_on = resolve_branch(branch)
    if snapshot is None:
        call.permit(branch=shown_on, action=Action.READ)
    else:
        shown_on = (await permit_state(call, snapshot)).branch
    await permit_selection(call, shown_on, [names[1]], action=Action.READ)
    return await call.run_read(_find, call, names, resolve_branch(branch), snapshot)


def _find(
    call: Call, names: list[str], branch: str, snapshot: str | None
) -> tuple[BlobReader, dict[str, str]]:
    graph = call.graph.graph
    commit_id = snapshot or graph.snapshot(branch).head.commit_id
    kind, type_name, id_, property_name = names
    blob = graph.read_blob(kind, type_name, id_, property_name, commit=commit_id)
    return blob, {
        "Accept-Ranges": "bytes",
        "ETag": f'"{blob.etag}"',
        "Omnigraph-Snapshot-Id": commit_id,
    }


def _is_known(headers: Mapping[str, str], etag: str) -> bool:
    """Whether the caller has these bytes already (`If-None-Match`).

    Raises:
        HttpError: `If-Match` names other bytes (412).
    """
    wanted = headers.get("if-match")
    if wanted is not None and not _names(wanted, etag):
        raise HttpError(412, "the bytes have changed: their ETag is not the one of If-Match")
    known = headers.get("if-none-match")
    return known is not None and _names(known, etag)


def _names(listed: str, etag: str) -> bool:
    tags = [each.strip() for each in listed.split(",")]
    return "*" in tags or etag in tags


def _read_range(headers: Mapping[str, str], etag: str, size: int) -> Part:
    """The part that is asked for; a range that makes no sense is all of it.

    Raises:
        HttpError: The range begins behind the end (416).
    """
    whole = Part(0, size)
    found = _RANGE.fullmatch(headers.get("range", "").strip())
    same = headers.get("if-range")
    if found is None or found[1] == found[2] == "" or (same is not None and same != etag):
        return whole
    first, last = found[1], found[2]
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1 if last else size, size)
        if last and int(last) < start:
            return whole
    if start >= end:
        text = f"the range begins behind the last of {size} bytes"
        raise HttpError(416, text, {"Content-Range": f"bytes */{size}"})
    return Part(start, end, is_whole=False)
