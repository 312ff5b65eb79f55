"""Bodies: what a client sent, read within its limit and checked against its model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import Receive

from omnigraph.errors import BadRequestError
from omnigraph.server.http_errors import BodyTooLarge, HttpError
from omnigraph.server.settings import Limits

Model = TypeVar("Model", bound=BaseModel)

REQUEST_BYTES = "request_body_bytes"
BATCH_BYTES = "graph_batch_request_bytes"

_CLOSE = {"Connection": "close"}
_LONG_BODY_BYTES = 1 << 20


async def read_json(request: Request, limits: Limits, limit: int, *, may_be_empty: bool) -> Any:
    """The JSON value of the body.

    Raises:
        HttpError: The content type is not JSON (415).
        BodyTooLarge: It is longer than `limit`.
        BadRequestError: It is not JSON, or nested beyond reason.
    """
    content_type = request.headers.get("content-type", "")
    if not is_json_type(content_type) and not (may_be_empty and not content_type):
        raise HttpError(415, f"content type is '{content_type[:80]}', expected application/json")
    data = await read_bytes(request, limits, limit, REQUEST_BYTES)
    if may_be_empty and not data.strip():
        return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise BadRequestError(f"the body is not JSON: {_reason(error)} at {where}") from None
    # Looking at every level costs by the objects there are, counting brackets by the bytes.
    is_long = len(data) > _LONG_BODY_BYTES
    if is_long or data.count(b"[") + data.count(b"{") > limits.json_depth_max:
        _refuse_if_deep(value, limits.json_depth_max)
    return value


def is_json_type(content_type: str) -> bool:
    media = content_type.partition(";")[0].strip().lower()
    return media == "application/json" or (
        media.startswith("application/") and media.endswith("+json")
    )


async def read_bytes(
    request: Request, limits: Limits, limit: int, resource: str
) -> bytes | bytearray:
    """The body, of which never more than `limit` is kept.

    Raises:
        BodyTooLarge: There is more.
        HttpError: The client stalled (408) or went away (400).
    """
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isdecimal() else 0
    # Collected piece by piece: joining a long body at the end would hold everybody up.
    data: bytes | bytearray = b""
    has_more = True
    while has_more and size <= limit:
        chunk, has_more = await _next(request.receive, limits.stall_seconds)
        if not data:
            data = bytearray(chunk) if has_more else chunk
        else:
            data += chunk
        size = max(size, len(data))
    if size > limit:
        data = b""
        if has_more:
            await _drain(request.receive, limits.stall_seconds, limit)
        raise BodyTooLarge(resource, limit=limit, actual=size)
    return data


async def _next(receive: Receive, stall_seconds: float) -> tuple[bytes, bool]:
    """The next piece of a body, and whether there are more."""
    try:
        async with asyncio.timeout(stall_seconds):
            message = await receive()
    except TimeoutError:
        text = f"the body stopped coming for {stall_seconds:g} s"
        raise HttpError(408, text, headers=_CLOSE) from None
    if message["type"] == "http.disconnect":
        raise HttpError(400, "the client went away before its body was read")
    return message.get("body", b""), message.get("more_body", False)


async def _drain(receive: Receive, stall_seconds: float, limit: int) -> None:
    """Throw a little of a body away that is too long: a client reads no answer while it sends."""
    left, has_more = limit, True
    with suppress(HttpError):
        while has_more and left > 0:
            chunk, has_more = await _next(receive, stall_seconds)
            left -= len(chunk)


def _refuse_if_deep(value: Any, depth_max: int) -> None:
    level = [value]
    for _ in range(depth_max):
        level = [child for each in level for child in _children(each)]
        if not level:
            return
    raise BadRequestError(f"the body is nested more than {depth_max} levels deep")


def _children(value: Any) -> list[Any]:
    """The objects and lists that are members of one."""
    match value:
        case dict():
            return [child for child in value.values() if isinstance(child, dict | list)]
        case list():
            return [child for child in value if isinstance(child, dict | list)]
        case _:
            return []


def _reason(error: orjson.JSONDecodeError) -> str:
    return error.msg.partition(":")[0]


def validated(model: type[Model], value: Any) -> Model:
    """A JSON value as what the operation takes.

    Raises:
        BadRequestError: A member is missing, unknown or of another kind.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = "; ".join(_problem(each) for each in error.errors(include_url=False)[:3])
        raise BadRequestError(f"the body is not a {model.__name__}: {problems}") from None


def _problem(found: Mapping[str, Any]) -> str:
    words = {
        "missing": "is missing",
        "string_type": "should be a string",
        "bool_type": "should be true or false",
        "dict_type": "should be an object",
        "list_type": "should be a list",
        "extra_forbidden": "is not known here",
        "model_type": "should be an object",
        "literal_error": f"should be {found.get('ctx', {}).get('expected', 'another value')}",
    }
    said = words.get(found["type"], "has a value that is not allowed")
    where = ".".join(str(part) for part in found["loc"])
    return f"`{where}` {said}" if where else f"it {said}"
