"""The operation that streams a branch out, in the form that `load` reads."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import Response

from omnigraph.server.call import Call
from omnigraph.server.graphs import OpenGraph
from omnigraph.server.request_models import ExportRequest, resolve_branch
from omnigraph.server.streaming import ExportStream, chunks_of


async def export(call: Call) -> Response:
    """Every record of a branch as it is now, one per line. Refusals come before 200."""
    body = await call.body(ExportRequest)
    branch = resolve_branch(body.branch)
    call.permit(branch=branch)
    serving, opened = call.serving, call.graph
    types = [*(body.type_names or []), *(body.table_keys or [])]
    await serving.slots.take(opened)
    try:
        first, chunks = await serving.exporters.run(_begin, opened, branch, types)
    except BaseException:
        serving.slots.release(opened)
        raise
    return ExportStream(first, chunks, serving, opened)


def _begin(
    opened: OpenGraph, branch: str, types: list[str]
) -> tuple[bytes | None, Iterator[bytes]]:
    """Pin the snapshot and make the first chunk, so that what fails there fails before 200."""
    chunks = chunks_of(opened.graph.export(branch=branch, types=types))
    return next(chunks, None), chunks
