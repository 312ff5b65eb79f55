"""Operations on the schema: read it, change it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from omnigraph.catalog import build_catalog
from omnigraph.config.registry import load_registry
from omnigraph.manifest import MAIN
from omnigraph.server.call import Call
from omnigraph.server.envelope import json_response
from omnigraph.server.graphs import OpenGraph, refuse_broken
from omnigraph.server.request_models import SchemaApplyRequest
from omnigraph.syntax import parse_schema
from omnigraph.wire import schema_applied_to_json


async def get_schema(call: Call) -> Response:
    """The accepted schema, as it was written."""
    call.permit()
    graph = call.graph.graph
    return json_response({"schema_source": await call.run_read(lambda: graph.schema)})


async def apply_schema(call: Call) -> Response:
    """Make a text the schema of the graph, or change nothing."""
    body = await call.body(SchemaApplyRequest)
    call.permit(target_branch=MAIN)
    with call.admit(len(body.schema_source)):
        return json_response(await call.run_write(_apply, call.graph, body, call.actor))


def _apply(opened: OpenGraph, wanted: SchemaApplyRequest, actor: str | None) -> dict[str, Any]:
    if opened.served.queries:
        desired = build_catalog(parse_schema(wanted.schema_source))
        after = load_registry(opened.served.queries, desired)
        refuse_broken(after, f"graph '{opened.graph_id}'")
    result = opened.graph.apply_schema(
        wanted.schema_source,
        allow_data_loss=wanted.allow_data_loss,
        actor=actor,
        message=wanted.message,
        metadata=wanted.metadata,
    )
    opened.check_queries()
    return schema_applied_to_json(result, opened.uri)
