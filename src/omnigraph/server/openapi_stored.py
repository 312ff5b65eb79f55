"""OpenAPI of stored queries: each one a path with its own parameters and columns.

The paths are those of `invoke_query` with the name filled in. They are made for every request, so
that a reload or a new schema shows at once, and hold what the caller may invoke and no more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from omnigraph.compiler.describe import ResultField
from omnigraph.config.registry import StoredParam, StoredQuery
from omnigraph.server.branch_bound import BranchBound
from omnigraph.server.graphs import Graphs
from omnigraph.server.openapi import GRAPHS, describe_operation, model_schema, reference
from omnigraph.server.operations import OPERATIONS
from omnigraph.server.request_models import InvokeRequest
from omnigraph.server.response_models import ChangeOutput, ReadOutput

Json = dict[str, Any]
TAG = "stored queries"
_INVOKE = next(each for each in OPERATIONS if each.operation_id == "invoke_query")
_OF_READS = ("snapshot", "schema_of")
_OF_MUTATIONS = ("message", "metadata")
_WHOLE = {"type": ["integer", "string"], "pattern": "^-?\\d+$"}
_TYPES: dict[str, Json] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "bigint": {"type": "integer"},
    "float": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "blob": {"type": "string", "contentEncoding": "base64"},
}


def stored_paths(
    graphs: Graphs, actor: str | None, bound: BranchBound | None, *, is_single: bool, is_open: bool
) -> dict[str, Json]:
    """The paths of every stored query that is listed for this caller."""
    paths: dict[str, Json] = {}
    for graph in graphs:
        base = "" if is_single else f"{GRAPHS}{graph.graph_id}"
        prefix = "stored" if is_single else f"stored_{graph.graph_id}"
        for query in graph.registry.queries.values():
            if query.expose and graph.may_invoke(query, actor, bound):
                described = _describe(query, f"{prefix}_{query.name}", is_open=is_open)
                paths[f"{base}/queries/{query.name}"] = {"post": described}
    return paths


def _describe(query: StoredQuery, operation_id: str, *, is_open: bool) -> Json:
    described = describe_operation(_INVOKE, _INVOKE.path, is_open=is_open)
    described["operationId"] = operation_id
    described["summary"] = query.description or f"The stored query {query.name}."
    if query.instruction is not None:
        described["description"] = query.instruction
    described["tags"] = [TAG]
    described["parameters"] = [each for each in described["parameters"] if each["in"] != "path"]
    described["requestBody"] = _body(query)
    success = described["responses"][str(_INVOKE.success)]
    success["content"] = {_INVOKE.gives_media: {"schema": _answer(query)}}
    return described


def _body(query: StoredQuery) -> Json:
    model = model_schema(InvokeRequest)
    hidden = {"expect_mutation", *(_OF_READS if query.mutation else _OF_MUTATIONS)}
    members = {name: each for name, each in model["properties"].items() if name not in hidden}
    params = _params(query.params)
    is_required = bool(params["required"])
    schema = {
        "type": "object",
        "properties": members | {"params": params},
        "required": ["params"] if is_required else [],
    }
    return {"required": is_required, "content": {"application/json": {"schema": schema}}}


def _params(params: Iterable[StoredParam]) -> Json:
    return {
        "type": "object",
        "properties": {each.name: _param(each) for each in params},
        "required": [each.name for each in params if not each.nullable and each.default is None],
    }


def _param(param: StoredParam) -> Json:
    fields = _fields(param)
    schema = _or_null(_type_of(param, fields, _WHOLE), is_nullable=param.nullable)
    if param.default is None:
        return schema
    try:
        return schema | {"default": json.loads(param.default, strict=False)}
    except ValueError:  # an expression such as `now() - days(30)` is no value yet
        return schema | {"description": f"{param.default} when left out"}


def _fields(param: StoredParam) -> Json | None:
    """An object of a declared shape refuses fields that it does not know."""
    return _params(param.fields) | {"additionalProperties": False} if param.fields else None


def _answer(query: StoredQuery) -> Json:
    """The envelope of the query's kind, with its columns."""
    row = {
        "type": "object",
        "properties": {each.name: _column(each) for each in query.result},
        "required": [each.name for each in query.result],
    }
    rows = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}}
    return {"allOf": [reference(ChangeOutput if query.mutation else ReadOutput), rows]}


def _column(column: ResultField) -> Json:
    fields = None
    if column.fields:
        fields = {
            "type": "object",
            "properties": {each.name: _column(each) for each in column.fields},
            "required": [each.name for each in column.fields],
        }
    schema = _type_of(column, fields, _TYPES["bigint"])
    return _or_null(schema, is_nullable=column.nullable)


def _type_of(value: StoredParam | ResultField, fields: Json | None, whole: Json) -> Json:
    match value.kind:
        case "list":
            return {"type": "array", "items": fields or _kind(value.item_kind or "", whole)}
        case "vector":
            size = value.vector_dim
            items = {"type": "number"}
            return {"type": "array", "items": items, "minItems": size, "maxItems": size}
        case kind:
            return fields or _kind(kind, whole)


def _kind(kind: str, whole: Json) -> Json:
    # A bare node of a result is an `object` without fields: its value is the id.
    return whole if kind == "bigint" else _TYPES.get(kind, _TYPES["string"])


def _or_null(schema: Json, *, is_nullable: bool) -> Json:
    return {"anyOf": [schema, {"type": "null"}]} if is_nullable else schema
