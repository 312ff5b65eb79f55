"""One plain exchange of MCP: a request of the handshake protocol, answered without a transport.

The SDK's transport makes streams, tasks and a dispatcher for each request without a session; they
cost more than the query that a tool sends. Here the SDK's models read the message, its kernel
(`serve_one`) checks and answers it, and its models write the answer. What is not a plain request is
left to the transport: `initialize`, notifications, other protocol versions, and everything that it
refuses. tests/mcp/test_exchange.py holds the two to the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import anyio
import pydantic_core
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp.types import (
    DEFAULT_NEGOTIATED_VERSION,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

_JSON: Final = "application/json"
_TRANSPORT: Final = TransportContext(kind="streamable-http", can_send_request=False)
_UNKNOWN_FAILURE: Final = 0
"""The code of the SDK's transport for what its kernel raises without one."""

log = logging.getLogger("omnigraph.server.mcp")


async def exchange(server: Server[Any], request: Request, body: bytes) -> Response | None:
    """The answer to a plain request; None where the SDK's transport has to decide."""
    version = _version_of(request)
    message = None if version is None else _read(body)
    if version is None or message is None:
        return None
    answer = await _answer(server, request, message, version)
    return Response(
        answer.model_dump_json(by_alias=True, exclude_unset=True),
        headers={"Content-Type": _JSON},
    )


def _version_of(request: Request) -> str | None:
    """The protocol version of a request whose headers the SDK's transport accepts."""
    versions = request.headers.getlist("mcp-protocol-version")
    if len(versions) > 1 or request.headers.getlist("content-type") != [_JSON]:
        return None
    has_json, _ = check_accept_headers(request)
    version = versions[0] if versions else DEFAULT_NEGOTIATED_VERSION
    return version if has_json and version in HANDSHAKE_PROTOCOL_VERSIONS else None


def _read(body: bytes) -> JSONRPCRequest | None:
    try:
        message = JSONRPCRequest.model_validate(pydantic_core.from_json(body), by_name=False)
    except (ValidationError, ValueError):
        return None
    return None if message.method == "initialize" else message


async def _answer(
    server: Server[Any], request: Request, message: JSONRPCRequest, version: str
) -> JSONRPCResponse | JSONRPCError:
    context = _Context(message.id, request)
    connection = Connection.from_envelope(version, None, None)
    try:
        result = await serve_one(
            server,
            context,
            message.method,
            message.params,
            connection=connection,
            lifespan_state={},
        )
    except Exception as error:
        return JSONRPCError(jsonrpc="2.0", id=message.id, error=_describe(error))
    return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)


def _describe(error: Exception) -> ErrorData:
    known = handler_exception_to_error_data(error)
    if known is None:
        log.error("unexpected error in a request of MCP", exc_info=error)
        return ErrorData(code=_UNKNOWN_FAILURE, message=str(error))
    return known


class _Context:
    """What the kernel knows of a request. The answer is one body, so nothing else is sent."""

    __slots__ = ("cancel_requested", "message_metadata", "request_id")

    transport = _TRANSPORT
    can_send_request = False

    def __init__(self, request_id: RequestId, request: Request) -> None:
        self.request_id = request_id
        self.message_metadata = ServerMessageMetadata(
            request_context=request, can_send_request=False
        )
        self.cancel_requested = anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> NoReturn:
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Drop a notification, as the transport does where answers are JSON."""

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Drop a report of progress, which is a notification."""
