"""The operation that streams a branch out, in the form that `load` reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from starlette.responses import Response

from omnigraph.graph import Graph
from omnigraph.pipeline.export import to_line
from omnigraph.server.call import Call
from omnigraph.server.readable_types import permit_selection
from omnigraph.server.request_models import ExportRequest, resolve_branch
from omnigraph.server.streaming import stream


async def export(call: Call) -> Response:
    """Every record of a branch as it is now, one per line. Refusals come before 200."""
    body = await call.body(ExportRequest)
    branch = resolve_branch(body.branch)
    call.permit(branch=branch)
    types = [*(body.type_names or []), *(body.table_keys or [])]
    await permit_selection(call, branch, types)
    return await stream(call, partial(_export, call.graph.graph, branch, types))


def _export(graph: Graph, branch: str, types: list[str]) -> Iterator[bytes]:
    yield from map(to_line, graph.export(branch=branch, types=types))
