"""Operations on the schema: read it, change it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from omnigraph.catalog import build_catalog
from omnigraph.config.registry import load_registry
from omnigraph.manifest import MAIN
from omnigraph.server.call import Call
from omnigraph.server.catalogs import catalog_to_json, read_catalog
from omnigraph.server.envelope import json_response
from omnigraph.server.graphs import OpenGraph, refuse_broken
from omnigraph.server.request_models import SchemaApplyRequest, resolve_branch
from omnigraph.server.url_parameters import one_parameter
from omnigraph.syntax import parse_schema
from omnigraph.wire import schema_applied_to_json


async def get_schema(call: Call) -> Response:
    """The accepted schema of a branch, as it was written."""
    return json_response({"schema_source": await read_schema(call, _branch(call))})


async def get_catalog(call: Call) -> Response:
    """The accepted schema of a branch as checked types, with properties, keys and indexes."""
    return json_response(catalog_to_json(read_catalog(await read_schema(call, _branch(call)))))


def _branch(call: Call) -> str | None:
    return one_parameter(call.request, "branch")


async def read_schema(call: Call, named: str | None) -> str:
    """The accepted schema of a branch, or of the graph, once the caller may read there."""
    graph = call.graph.graph
    if named is None:
        call.permit()
        return await call.run_read(lambda: graph.schema)
    branch = resolve_branch(named)
    call.permit(branch=branch)
    return await call.run_read(graph.branch_schema, branch)


async def apply_schema(call: Call) -> Response:
    """Make a text the schema of a branch, or change nothing."""
    body = await call.body(SchemaApplyRequest)
    call.permit(target_branch=resolve_branch(body.branch))
    with call.admit(len(body.schema_source)):
        return json_response(await call.run_write(_apply, call.graph, body, call.actor))


def _apply(opened: OpenGraph, wanted: SchemaApplyRequest, actor: str | None) -> dict[str, Any]:
    branch = resolve_branch(wanted.branch)
    if opened.served.queries and branch == MAIN:
        desired = build_catalog(parse_schema(wanted.schema_source))
        after = load_registry(opened.served.queries, desired)
        refuse_broken(after, f"graph '{opened.graph_id}'")
    result = opened.graph.apply_schema(
        wanted.schema_source,
        branch=branch,
        allow_data_loss=wanted.allow_data_loss,
        actor=actor,
        message=wanted.message,
        metadata=wanted.metadata,
    )
    opened.check_queries()
    return schema_applied_to_json(result, opened.uri)
