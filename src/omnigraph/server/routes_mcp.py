"""The operations of MCP: streamable HTTP without sessions, one request and one JSON answer."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph.policy import Action
from omnigraph.server.bodies import REQUEST_BYTES, read_bytes
from omnigraph.server.call import Call
from omnigraph.server.mcp_tool import Sent, Tool
from omnigraph.server.mcp_tools import GRAPHS_LIST, HEALTH, TOOLS

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from omnigraph.server.mcp_server import Answer, Caller

_SERVER_TOOLS = (HEALTH, GRAPHS_LIST)
_PASSED_ON = (b"authorization", b"x-request-id")


async def serve_mcp(call: Call) -> Response:
    """Tools for agents, by the Model Context Protocol."""
    return await _answer(call, TOOLS)


async def serve_server_mcp(call: Call) -> Response:
    """Tools for agents that look for a graph, by the Model Context Protocol."""
    return await _answer(call, _SERVER_TOOLS)


async def _answer(call: Call, tools: tuple[Tool, ...]) -> Response:
    call.leave_permit_to_parts()
    limits = call.serving.settings.limits
    # Read here, so that a body that is too long or stalls is refused as on every other route.
    body = await read_bytes(call.request, limits, limits.body_bytes_max, REQUEST_BYTES)
    server = await call.run_read(_load)  # the SDK takes a while to import
    return _McpResponse(call, server, tools, bytes(body))


@cache
def _load() -> Server[Any]:
    from omnigraph.server.mcp_server import make_server

    return make_server(_CALLER.get)


_CALLER: ContextVar[Caller] = ContextVar("the agent whose request is being answered")


class _McpResponse(Response):
    """Hands the request to the SDK, without a session: its kernel alone where that is enough."""

    def __init__(
        self, call: Call, server: Server[Any], tools: tuple[Tool, ...], body: bytes
    ) -> None:
        super().__init__()
        self._body = body
        self._call = call
        self._server = server
        self._tools = tools

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from omnigraph.server.mcp_exchange import exchange
        from omnigraph.server.mcp_server import Caller

        sender = partial(request_app, scope["omnigraph.app"], _base_of(scope), _headers_of(scope))
        token = _CALLER.set(Caller(sender, partial(_may, self._call), self._tools))
        try:
            answer = await exchange(self._server, self._call.request, self._body)
            if answer is None:
                await self._leave_to_transport(scope, receive, send)
            else:
                await answer(scope, receive, send)
        finally:
            _CALLER.reset(token)

    async def _leave_to_transport(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            max_request_body_size=self._call.serving.settings.limits.body_bytes_max,
        )
        async with manager.run():
            await manager.handle_request(scope, _Body(self._body, receive), send)


def _base_of(scope: Scope) -> str:
    return str(scope["path"]).removesuffix("/mcp")


def _headers_of(scope: Scope) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in scope["headers"] if name in _PASSED_ON]


def _may(call: Call, operation_id: str) -> bool:
    """Whether the caller may use an operation somewhere: on main, or on a branch of its own."""
    from omnigraph.server.operations import OPERATIONS

    operation = next(each for each in OPERATIONS if each.operation_id == operation_id)
    if operation.action is None or operation.action is Action.INVOKE_QUERY:
        return True
    return call.may(operation.action)


async def request_app(
    app: ASGIApp, base: str, headers: list[tuple[bytes, bytes]], sent: Sent
) -> Answer:
    """Send a request to an application of this process, as if it came over its socket."""
    path = base + "".join(f"/{part}" for part in sent.path)
    query = urlencode(sent.params, doseq=True)
    own = [(name.lower().encode(), value.encode()) for name, value in sent.headers.items()]
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": sent.method,
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [*headers, *own, (b"content-type", b"application/json")],
        "client": None,
        "server": None,
    }
    body = b"" if sent.body is None else orjson.dumps(sent.body)
    receiver, collected = _Body(body), _Collected()
    await app(scope, receiver, collected)
    return collected.status, orjson.loads(collected.data)


async def _never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("nothing sets that event")


class _Body:
    """The body of a request, all at once; then what becomes of its client."""

    def __init__(self, data: bytes, rest: Receive = _never) -> None:
        self._parts = [data]
        self._rest = rest

    async def __call__(self) -> Message:
        if self._parts:
            return {"type": "http.request", "body": self._parts.pop(), "more_body": False}
        return await self._rest()


class _Collected:
    """The answer to a request."""

    def __init__(self) -> None:
        self.status = 500
        self.data = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
        else:
            self.data += message.get("body", b"")
