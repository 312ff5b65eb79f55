"""Operations that load records: `load`, its old name, and raw `load/ndjson`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    ExpectedVersionMismatch,
    NotFoundError,
)
from omnigraph.graph import Graph
from omnigraph.pipeline.ranges import is_text
from omnigraph.policy import Action
from omnigraph.server.bodies import BATCH_BYTES, read_bytes
from omnigraph.server.call import Call, branch_of, one_parameter
from omnigraph.server.envelope import json_response
from omnigraph.server.fence import with_heads
from omnigraph.server.http_errors import HttpError
from omnigraph.server.request_models import IngestRequest
from omnigraph.server.routes_reads import deprecated
from omnigraph.server.routes_writes import published
from omnigraph.server.strict_lines import check_lines
from omnigraph.wire import load_to_json

NDJSON = "application/x-ndjson"
DEFAULT_MODE = "merge"


@dataclass(frozen=True, slots=True)
class Load:
    """Where records go and how they meet what is there."""

    branch: str
    base: str | None
    mode: str
    embed: bool
    actor: str | None


async def load(call: Call) -> Response:
    """Load records as one commit, or nothing."""
    body = await call.body(IngestRequest, limit=call.serving.settings.limits.load_bytes_max)
    base = None if body.from_ is None else branch_of(body.from_)
    wanted = Load(branch_of(body.branch), base, body.mode or DEFAULT_MODE, body.embed, call.actor)
    await permit_load(call, wanted)
    with call.admit(len(body.data)):
        return json_response(await call.writing(run_load, call.graph.graph, wanted, body.data))


async def ingest(call: Call) -> Response:
    """The old name of `load`."""
    return deprecated(await load(call), "load")


async def load_ndjson(call: Call) -> Response:
    """Load records sent as they are, one a line, by the strict grammar."""
    wanted = _load_of(call)
    await permit_load(call, wanted)
    limits = call.serving.settings.limits
    declared = call.request.headers.get("content-length", "")
    size = int(declared) if declared.isdecimal() else limits.load_bytes_max
    with call.admit(min(size, limits.load_bytes_max)):
        content_type = call.request.headers.get("content-type", "")
        if content_type.partition(";")[0].strip().lower() != NDJSON:
            raise HttpError(415, f"content type is '{content_type[:80]}', expected {NDJSON}")
        data = await read_bytes(call.request, limits, limits.load_bytes_max, BATCH_BYTES)
        graph = call.graph.graph
        done = await call.writing(run_strict_load, graph, wanted, data, limits.line_bytes_max)
    del done["uri"]
    return json_response(done)


def _load_of(call: Call) -> Load:
    """The load that the parameters of the URL describe."""
    base = one_parameter(call.request, "from")
    mode = one_parameter(call.request, "mode") or DEFAULT_MODE
    if mode not in ("overwrite", "append", "merge"):
        raise BadRequestError(f"mode is '{mode[:80]}', expected overwrite, append or merge")
    embed = one_parameter(call.request, "embed") or "true"
    if embed not in ("true", "false"):
        raise BadRequestError(f"embed is '{embed[:80]}', expected true or false")
    return Load(
        branch_of(one_parameter(call.request, "branch")),
        None if base is None else branch_of(base),
        mode,
        embed == "true",
        call.actor,
    )


async def permit_load(call: Call, wanted: Load) -> None:
    """Ask for the change, and for the branch when the load would have to make it."""
    call.permit(branch=wanted.branch)
    if wanted.base is None or call.graph.gate.policy is None:
        return
    if wanted.branch not in await call.reading(call.graph.graph.branches):
        call.permit(action=Action.BRANCH_CREATE, branch=wanted.base, target_branch=wanted.branch)


def run_strict_load(
    graph: Graph, wanted: Load, data: bytes | bytearray, line_bytes_max: int
) -> dict[str, Any]:
    return run_load(graph, wanted, check_lines(bytes(data), line_bytes_max))


def run_load(graph: Graph, wanted: Load, data: str) -> dict[str, Any]:
    """Load text. What is not records must not be taken for the path of a file.

    Raises:
        NotFoundError: The branch is not there and nothing says what to make it from.
    """
    if not is_text(data):
        raise BadRequestError("`data` should be records, one JSON object a line")
    try:
        seen = graph.snapshot(wanted.branch if wanted.base is None else wanted.base)
    except BranchNotFound as missing:
        if wanted.base is not None:
            raise
        raise NotFoundError(
            f"branch '{missing.branch}' not found; pass `from` to create it"
        ) from None
    try:
        result = graph.load(
            data,
            mode=wanted.mode,
            branch=wanted.branch,
            base=wanted.base,
            actor=wanted.actor,
            embed=wanted.embed,
        )
    except ExpectedVersionMismatch as error:
        raise (with_heads(error, graph, seen) if wanted.base is None else error) from None
    commit = published(graph, result.commit_id)
    return load_to_json(result, graph.uri, commit, wanted.actor)
