"""Operations for an editor in a browser: what may be written, and what is wrong with a text.

They answer from the same functions as the language server, so both say the same.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from omnigraph.catalog import Catalog
from omnigraph.compiler import compile_query
from omnigraph.compiler.compile import parse_file
from omnigraph.config.registry import describe_params
from omnigraph.errors import BadRequestError, OmnigraphError
from omnigraph.ir.query import QueryIR
from omnigraph.lsp.complete_query import complete_query
from omnigraph.lsp.diagnose import diagnose_queries
from omnigraph.server.call import Call
from omnigraph.server.catalogs import read_catalog
from omnigraph.server.envelope import json_response
from omnigraph.server.pictures import describe_picture
from omnigraph.server.request_models import CompleteRequest, EditorRequest
from omnigraph.server.routes_schema import read_schema

Json = dict[str, Any]


async def complete(call: Call) -> Response:
    """What may be written at an offset of a query text."""
    body = await call.body(CompleteRequest)
    schema = await read_schema(call, body.branch)
    if not 0 <= body.offset <= len(body.text):
        raise BadRequestError(f"offset {body.offset} is outside of a text of {len(body.text)}")
    return json_response(await call.run_read(_complete, schema, body.text, body.offset))


async def check(call: Call) -> Response:
    """What is wrong with a query text, and which queries it has. Runs nothing."""
    body = await call.body(EditorRequest)
    schema = await read_schema(call, body.branch)
    return json_response(await call.run_read(_check, schema, body.text))


def _complete(schema: str, text: str, offset: int) -> Json:
    found = complete_query(text, offset, read_catalog(schema))
    items = [
        {"label": each.label, "kind": each.kind, "detail": each.detail, "doc": each.doc}
        for each in found.items
    ]
    return {"start": found.start, "items": items}


def _check(schema: str, text: str) -> Json:
    catalog = read_catalog(schema)
    diagnostics = [
        {
            "start": each.span.start,
            "end": each.span.end,
            "severity": each.severity,
            "message": each.message,
            "code": each.code,
        }
        for each in diagnose_queries(text, catalog)
    ]
    return {"diagnostics": diagnostics, "queries": _queries(text, catalog)}


def _queries(text: str, catalog: Catalog) -> list[Json]:
    """The queries that would run as they are; the diagnostics say why another would not."""
    try:
        parsed = parse_file(text, "query.gq").queries
    except OmnigraphError:
        return []
    found = []
    for each in parsed:
        try:
            compiled = compile_query(text, catalog, each.name)
        except OmnigraphError:
            continue
        found.append(
            {
                "name": each.name,
                "mutation": compiled.kind == "mutation",
                "start": each.span.start,
                "end": each.span.end,
                "params": [param.to_json() for param in describe_params(compiled.params)],
                "picture": (
                    describe_picture(each, catalog) if isinstance(compiled.ir, QueryIR) else None
                ),
            }
        )
    return found
