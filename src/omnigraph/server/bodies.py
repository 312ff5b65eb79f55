"""Bodies: read the body of a request, within its limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.types import Receive

from omnigraph.server.http_errors import BodyTooLarge, HttpError
from omnigraph.server.json_values import parse_json
from omnigraph.server.settings import Limits

REQUEST_BYTES = "request_body_bytes"
BATCH_BYTES = "graph_batch_request_bytes"

PAUSE_SECONDS = 0.001
"""Between chunks of a long body, which would otherwise starve the threads of queries."""

_CLOSE = {"Connection": "close"}


async def read_json(request: Request, limits: Limits, *, may_be_empty: bool) -> Any:
    """The JSON value of the body.

    Raises:
        HttpError: The content type is not JSON (415).
        BodyTooLarge: It is longer than `body_bytes_max`.
        BadRequestError: It is not JSON, or nested beyond reason.
    """
    limit = limits.body_bytes_max
    data = await read_json_bytes(request, limits, limit, may_be_empty=may_be_empty)
    if may_be_empty and not data.strip():
        return None
    return parse_json(data, limits.json_depth_max)


async def read_json_bytes(
    request: Request, limits: Limits, limit: int, *, may_be_empty: bool = False
) -> bytes | bytearray:
    """The bytes of a body whose content type is JSON; they are not parsed yet."""
    content_type = request.headers.get("content-type", "")
    if not is_json_type(content_type) and not (may_be_empty and not content_type):
        raise HttpError(415, f"content type is '{content_type[:80]}', expected application/json")
    return await read_bytes(request, limits, limit, REQUEST_BYTES)


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
    # Collected chunk by chunk: joining a long body at the end would block the event loop.
    data: bytes | bytearray = b""
    has_more = True
    while has_more and size <= limit:
        chunk, has_more = await _next(request.receive, limits.stall_seconds)
        if not data:
            data = bytearray(chunk) if has_more else chunk
        else:
            data += chunk
        size = max(size, len(data))
        if has_more:
            await asyncio.sleep(PAUSE_SECONDS)
    if size > limit:
        data = b""
        if has_more:
            await _drain(request.receive, limits.stall_seconds, limit)
        raise BodyTooLarge(resource, limit=limit, actual=size)
    return data


async def stream_bytes(
    request: Request, limits: Limits, limit: int, resource: str
) -> AsyncIterator[bytes]:
    """The body as it arrives, up to `limit` bytes.

    Raises:
        BodyTooLarge: There is more.
        HttpError: The client stalled (408) or went away (400).
    """
    declared = request.headers.get("content-length", "")
    size, read, has_more = int(declared) if declared.isdecimal() else 0, 0, True
    while has_more and size <= limit:
        chunk, has_more = await _next(request.receive, limits.stall_seconds)
        read += len(chunk)
        size = max(size, read)
        if size <= limit:
            yield chunk
    if size > limit:
        if has_more:
            await _drain(request.receive, limits.stall_seconds, limits.load_bytes_max)
        raise BodyTooLarge(resource, limit=limit, actual=size)


async def _next(receive: Receive, stall_seconds: float) -> tuple[bytes, bool]:
    """The next chunk of a body, and whether there are more."""
    try:
        async with asyncio.timeout(stall_seconds):
            message = await receive()
    except TimeoutError:
        text = f"request body stalled for {stall_seconds:g} s"
        raise HttpError(408, text, headers=_CLOSE) from None
    if message["type"] == "http.disconnect":
        raise HttpError(400, "client disconnected before its body was read")
    return message.get("body", b""), message.get("more_body", False)


async def _drain(receive: Receive, stall_seconds: float, limit: int) -> None:
    """Discard some of a body that is too long: a client that sends does not read the answer."""
    left, has_more = limit, True
    with suppress(HttpError):
        while has_more and left > 0:
            chunk, has_more = await _next(receive, stall_seconds)
            left -= len(chunk)
