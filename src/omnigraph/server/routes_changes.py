"""Operations of the change feed: what commits changed, in pages or as events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from starlette.responses import Response

from omnigraph.graph import Graph
from omnigraph.graph.calls.changes import poll_small_pages
from omnigraph.pipeline.export import to_line
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.events import EVENT_BYTES, EVENTS, LAST_EVENT, open_events, read_event_id
from omnigraph.server.readable_types import permit_selection
from omnigraph.server.request_models import BaselineRequest, resolve_branch
from omnigraph.server.streaming import stream
from omnigraph.server.url_parameters import (
    check_parameters,
    integer_parameter,
    list_parameter,
    one_parameter,
)

FILTERS = ("kind", "type", "op")
PLACES = ("cursor", "start", "page_token")


async def get_commit_changes(call: Call) -> Response:
    """What one commit changed against its first parent, with both images, in pages."""
    request = call.request
    check_parameters(request, ("page_token", "limit", *FILTERS))
    graph, commit_id = call.graph.graph, request.path_params["commit_id"]
    # A commit is as readable as the branch it was made on.
    found = await call.run_read(graph.commit, commit_id)
    call.permit(branch=found.branch)
    await _permit_types(call, found.branch)
    token, limit = one_parameter(request, "page_token"), integer_parameter(request, "limit")
    page = await call.run_read(
        graph.commit_changes, commit_id, page_token=token, limit=limit, **_read_filters(call)
    )
    return json_response(page.to_json())


async def poll_changes(call: Call) -> Response:
    """What the commits of a branch changed since a cursor, in pages or as events."""
    request = call.request
    check_parameters(request, ("branch", "limit", *PLACES, *FILTERS))
    branch = resolve_branch(one_parameter(request, "branch"))
    call.permit(branch=branch)
    await _permit_types(call, branch)
    place: dict[str, Any] = {name: one_parameter(request, name) for name in PLACES}
    limit = integer_parameter(request, "limit")
    graph, wanted = call.graph.graph, {"limit": limit, **_read_filters(call)}
    if EVENTS not in request.headers.get("accept", ""):
        page = await call.run_read(graph.poll_changes, branch, **wanted, **place)
        return json_response(page.to_json())
    poll = partial(poll_small_pages, graph, branch, page_bytes=EVENT_BYTES, **wanted)
    if (last := request.headers.get(LAST_EVENT)) is not None:
        place = read_event_id(last)
    first = await call.run_read(poll, **place)  # what is refused is refused before 200
    return open_events(call, poll, first)


async def capture_baseline(call: Call) -> Response:
    """The records of a branch, and behind them the cursor of what comes after them."""
    body = await call.body(BaselineRequest, is_optional=True)
    branch = resolve_branch(body.branch)
    call.permit(branch=branch)
    await permit_selection(call, branch, body.type, kinds=body.kind)
    wanted = {"kinds": body.kind, "types": body.type, "ops": body.op}
    return await stream(call, partial(_read_baseline, call.graph.graph, branch, wanted))


def _read_baseline(graph: Graph, branch: str, wanted: dict[str, Any]) -> Iterator[bytes]:
    yield from map(to_line, graph.change_baseline(branch, **wanted).to_stream())


async def _permit_types(call: Call, branch: str) -> None:
    kinds, types = (list_parameter(call.request, name) for name in ("kind", "type"))
    await permit_selection(call, branch, types, kinds=kinds)


def _read_filters(call: Call) -> dict[str, Any]:
    return {f"{name}s": list_parameter(call.request, name) for name in FILTERS}
