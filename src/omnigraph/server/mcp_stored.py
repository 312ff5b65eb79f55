"""Stored queries as tools: named, described and typed by what the queries declare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from omnigraph.server.mcp_tool import LIST_ITEMS, Json, Sent, Tool

_BRANCH = {"type": "string", "description": "The branch; main by default."}
_SCHEMAS: dict[str, Json] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "bigint": {"type": "string", "pattern": "^-?\\d+$"},
    "float": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "blob": {"type": "string", "contentEncoding": "base64"},
    "object": {"type": "object"},
}


def stored_tools(queries: Iterable[Json], taken: Collection[str]) -> Iterator[Tool]:
    """A tool for each stored query whose name is free."""
    for query in queries:
        if query["tool_name"] not in taken:
            yield _to_tool(query)


def _to_tool(query: Json) -> Tool:
    params = _to_object(query["params"])
    parts = (query.get("description"), query.get("instruction"))
    described = " ".join(each for each in parts if each) or f"The stored query {query['name']}."
    return Tool(
        query["tool_name"],
        described,
        "invoke_query",
        _invoke(query["name"]),
        {"params": params, "branch": _BRANCH},
        ("params",) if params["required"] else (),
        is_read=not query["mutation"],
        items=0 if query["mutation"] else LIST_ITEMS,
    )


def _to_object(members: Iterable[Json]) -> Json:
    return {
        "type": "object",
        "properties": {each["name"]: to_schema(each) for each in members},
        "required": [each["name"] for each in members if _is_required(each)],
        "additionalProperties": False,
    }


def _is_required(param: Json) -> bool:
    return not param["nullable"] and "default" not in param


def _invoke(name: str) -> Callable[[Json], Sent]:
    def build(given: Json) -> Sent:
        body: Json = {each: given[each] for each in ("params", "branch") if each in given}
        return Sent("POST", ("queries", name), body=body)

    return build


def to_schema(param: Json) -> Json:
    """The JSON schema of a parameter of a stored query."""
    found = _to_type(param)
    if "default" in param:
        # The text of an expression: `now() - days(30)` is no value yet.
        found = found | {"description": f"{param['default']} when left out"}
    return found


def _to_type(param: Json) -> Json:
    match param["kind"]:
        case "list" if param.get("fields"):
            return {"type": "array", "items": _to_object(param["fields"])}
        case "list":
            return {"type": "array", "items": _SCHEMAS.get(param.get("item_kind", ""), {})}
        case "object" if param.get("fields"):
            return _to_object(param["fields"])
        case "vector":
            dimension = param["vector_dim"]
            items = {"type": "number"}
            return {"type": "array", "items": items, "minItems": dimension, "maxItems": dimension}
        case kind:
            return _SCHEMAS.get(kind, {})
