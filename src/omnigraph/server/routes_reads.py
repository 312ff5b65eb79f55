"""Operations that read rows: `query`, the frozen `read`, `snapshot`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import orjson
from starlette.responses import Response

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.graph import Graph
from omnigraph.policy import Action
from omnigraph.server.call import Call, query_text
from omnigraph.server.envelope import JSON, json_response
from omnigraph.server.readable_types import hide_tables, permit_query
from omnigraph.server.request_models import QueryRequest, ReadRequest, resolve_branch
from omnigraph.server.states import permit_state
from omnigraph.server.url_parameters import one_parameter
from omnigraph.wire import frozen_read_to_json, read_target, read_to_json, snapshot_to_json


@dataclass(frozen=True, slots=True)
class Read:
    """What to run, and over which state of the graph."""

    source: str
    name: str | None
    params: dict[str, Any] | None
    branch: str | None
    snapshot: str | None
    schema_of: str = "commit"
    is_frozen: bool = False
    skip: int = 0
    limit: int | None = None


async def query(call: Call) -> Response:
    """Run a read over one snapshot."""
    body = await call.body(QueryRequest)
    source = query_text(body.query)
    wanted = Read(
        source,
        body.name,
        body.params,
        body.branch,
        body.snapshot,
        body.schema_of,
        skip=body.rows_skip,
        limit=body.rows_max,
    )
    return await answer(call, wanted)


async def read(call: Call) -> Response:
    """Run a read; the body has these members in this order and never any other."""
    body = await call.body(ReadRequest)
    source = query_text(body.query_source)
    wanted = Read(source, body.query_name, body.params, body.branch, body.snapshot, is_frozen=True)
    return mark_deprecated(await answer(call, wanted), "query")


async def answer(call: Call, wanted: Read) -> Response:
    """Check that the caller may read there, and read."""
    if wanted.branch is not None and wanted.snapshot is not None:
        raise BadRequestError("request may specify branch or snapshot, not both")
    graph = call.graph.graph
    branch = resolve_branch(wanted.branch)
    if wanted.snapshot is not None and call.graph.gate.policy is not None:
        # A commit is as readable as the branch it was made on; what is read is what was permitted.
        commit = await call.run_read(graph.commit, wanted.snapshot)
        branch, wanted = commit.branch, replace(wanted, snapshot=commit.commit_id)
    call.permit(branch=branch, action=Action.READ)
    if call.graph.gate.limits_types:
        await permit_query(
            call, wanted.source, wanted.name, branch, wanted.snapshot, wanted.schema_of
        )
    query_key = hash((wanted.source, wanted.name, branch, wanted.snapshot, wanted.schema_of))
    engine = call.serving.settings.query_engine
    data = await call.run_query(query_key, partial(run_read, graph, wanted, branch, engine))
    return Response(data, media_type=JSON)


def run_read(graph: Graph, wanted: Read, branch: str, engine: str) -> bytes:
    """Read and encode."""
    result = graph.query(
        wanted.source,
        wanted.name,
        wanted.params,
        branch=branch,
        commit=wanted.snapshot,
        schema=wanted.schema_of,
        engine=engine,
    )
    shape = frozen_read_to_json if wanted.is_frozen else read_to_json
    target = read_target(result, wanted.snapshot)
    if not wanted.skip and wanted.limit is None:
        return orjson.dumps(shape(result, target))
    page = replace(result, table=result.table.slice(wanted.skip, wanted.limit))
    return orjson.dumps({**shape(page, target), "row_count": len(result)})


async def get_snapshot(call: Call) -> Response:
    """Which version of each table a branch or a commit shows."""
    revision = one_parameter(call.request, "snapshot")
    name = one_parameter(call.request, "branch")
    if revision is not None:
        if name is not None:
            raise BadRequestError("request may specify branch or snapshot, not both")
        shown = await permit_state(call, revision)
    else:
        branch = resolve_branch(name)
        call.permit(branch=branch)
        shown = await call.run_read(call.graph.graph.snapshot, branch)
    return json_response(snapshot_to_json(await hide_tables(call, shown)))


def mark_deprecated(response: Response, successor: str) -> Response:
    """Mark the answer of an old name; the link is relative, so that it holds under any base."""
    response.headers["Deprecation"] = "true"
    response.headers["Link"] = f'<{successor}>; rel="successor-version"'
    return response
