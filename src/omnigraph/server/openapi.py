"""OpenAPI: the document of what this server serves, made of the table of operations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from omnigraph.server.operation import Operation, Parameter
from omnigraph.server.operations import OPERATIONS
from omnigraph.server.response_models import ErrorOutput
from omnigraph.server.uploads import FORM
from omnigraph.version import __version__

TITLE = "Omnigraph API"
SECURITY_SCHEME = "bearer_token"
GRAPHS = "/graphs/"
GRAPH_BASE = GRAPHS + "{graph_id}"
NESTED_PREFIX = "cluster_"
_REF = "#/components/schemas/{model}"
_GRAPH_ID = Parameter("graph_id", "path", "The id of the graph.", is_required=True)
STATUS_TEXTS = {
    202: "It is accepted, and written down.",
    206: "A range of the bytes.",
    304: "The caller has these bytes.",
    400: "The request cannot be served as it stands.",
    401: "There is no bearer token, or an unknown one.",
    403: "The actor may not do that.",
    404: "What the request names is not there.",
    405: "The path has no such method.",
    408: "The body stalled.",
    409: "A concurrent write came first, or values conflict. Nothing was done.",
    410: "A cleanup removed what was not read yet.",
    412: "The commit named is not the head. Nothing was done.",
    413: "Larger than a limit. Nothing was done.",
    415: "The content type is another one.",
    416: "The range begins behind the end.",
    429: "The actor has too much under way. Nothing was done.",
    500: "The server or its store failed.",
    503: "A write has to be recovered first.",
}


def list_operations(*, is_single: bool) -> list[tuple[str, Operation]]:
    """Every served path with its operation: flat, nested, or both."""
    found: list[tuple[str, Operation]] = []
    for operation in OPERATIONS:
        if operation.operation_id == "server_mcp" and is_single:
            continue  # the flat path is that of the graph
        is_health = operation.operation_id == "health"
        if is_single or operation.is_of_server or is_health:
            found.append((operation.path, operation))
        if not operation.is_of_server:
            found.append((GRAPH_BASE + operation.path, operation))
    return found


_FORM: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "description": "Files: each field is named after the type of its rows, or is `data` or "
    "`mapping`. `directory` is where the files of a mapping are, `models` what made the vectors "
    "of an export.",
    "properties": {"directory": {"type": "string"}},
    "additionalProperties": {"type": "string", "format": "binary"},
}


@cache  # one for each kind of server; it is never changed
def openapi_document(*, is_single: bool, is_open: bool) -> dict[str, Any]:
    """The document of a server of one graph or of several, that asks for tokens or does not."""
    paths: dict[str, dict[str, Any]] = {}
    for path, operation in list_operations(is_single=is_single):
        is_hidden = operation.operation_id == "listGraphs" and is_single  # there to say 405
        if is_hidden or not operation.is_described:
            continue
        described = describe_operation(operation, path, is_open=is_open)
        paths.setdefault(path.replace(":path}", "}"), {})[operation.method.lower()] = described
    components: dict[str, Any] = {"schemas": _schemas()}
    if not is_open:
        components["securitySchemes"] = {SECURITY_SCHEME: {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": __version__},
        "paths": paths,
        "components": components,
    }


def describe_operation(operation: Operation, path: str, *, is_open: bool) -> dict[str, Any]:
    """One operation as the document has it."""
    is_nested = path.startswith(GRAPH_BASE)
    parameters = [_GRAPH_ID, *operation.parameters] if is_nested else operation.parameters
    described: dict[str, Any] = {
        "operationId": f"{NESTED_PREFIX if is_nested else ''}{operation.operation_id}",
        "summary": operation.summary,
        "parameters": [each.to_openapi() for each in parameters],
        "responses": _responses(operation),
    }
    if operation.is_deprecated:
        described["deprecated"] = True
    if operation.takes is not None or operation.method in ("POST", "PUT"):
        described["requestBody"] = _request_body(operation)
    if not is_open and operation.action is not None:
        described["security"] = [{SECURITY_SCHEME: []}]
    return described


def _request_body(operation: Operation) -> dict[str, Any]:
    raw = _FORM if operation.takes_media == FORM else {"type": "string"}
    schema = raw if operation.takes is None else reference(operation.takes)
    if not operation.is_body_required:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return {
        "required": operation.is_body_required,
        "content": {operation.takes_media: {"schema": schema}},
    }


def _responses(operation: Operation) -> dict[str, Any]:
    match operation.outputs:
        case ():
            schema: dict[str, Any] = {"type": "string"}
        case (model,):
            schema = reference(model)
        case models:
            schema = {"anyOf": [reference(model) for model in models]}
    content = {operation.gives_media: {"schema": schema}}
    content |= {
        media: {"schema": {"type": "string"}} for media in map(_bare, operation.other_media)
    }
    text = STATUS_TEXTS.get(operation.success, "It is done.")
    responses: dict[str, Any] = {str(operation.success): {"description": text, "content": content}}
    for status in operation.other_successes:
        responses[str(status)] = {"description": STATUS_TEXTS[status]}
    for status in sorted(operation.errors):
        responses[str(status)] = {
            "description": STATUS_TEXTS[status],
            "content": {"application/json": {"schema": reference(ErrorOutput)}},
        }
    return responses


def reference(model: type[BaseModel]) -> dict[str, Any]:
    """Name a model of the document."""
    return {"$ref": _REF.format(model=model.__name__)}


def model_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model of the document."""
    found: dict[str, Any] = _schemas()[model.__name__]
    return found


@cache
def _schemas() -> dict[str, Any]:
    takes = _models(each.takes for each in OPERATIONS)
    gives = _models([*(model for each in OPERATIONS for model in each.outputs), ErrorOutput])
    _, definitions = models_json_schema(
        [
            *((model, "validation") for model in takes),
            *((model, "serialization") for model in gives),
        ],
        ref_template=_REF,
    )
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas


def _models(found: Iterable[type[BaseModel] | None]) -> list[type[BaseModel]]:
    return list(dict.fromkeys(model for model in found if model is not None))


def _bare(media: str) -> str:
    """A media type without its parameters."""
    return media.partition(";")[0]
