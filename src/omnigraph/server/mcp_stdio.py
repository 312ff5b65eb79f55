"""MCP over standard input and output: for agents that start the server themselves.

The graph is in a store, which is then served inside this process, or behind a server.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterable
from functools import partial
from typing import Any
from urllib.parse import quote

import anyio
import httpx
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError

from omnigraph.server.app import create_app
from omnigraph.server.auth import NO_TOKENS, Tokens
from omnigraph.server.mcp_server import Answer, Caller, May, Requester, make_server
from omnigraph.server.mcp_tool import Sent
from omnigraph.server.operations import OPERATIONS
from omnigraph.server.routes_mcp import request_app
from omnigraph.server.settings import ServedGraph, ServerSettings

ANSWER_SECONDS = 600.0


def serve_store(served: ServedGraph, actor: str | None) -> None:
    """Serve a graph in a store until the input ends.

    With a policy, `actor` is who calls; without one the caller may do everything.

    Raises:
        OmnigraphError: The graph cannot be opened.
    """
    token = secrets.token_urlsafe()
    has_policy = served.policy_text is not None and actor is not None
    tokens = Tokens.from_pairs([(actor or "", token)]) if has_policy else NO_TOKENS
    app = create_app(ServerSettings((served,), tokens=tokens, unauthenticated=not has_policy))
    headers = [(b"authorization", f"Bearer {token}".encode())] if has_policy else []
    gate = app.serving.graphs.find(served.graph_id).gate

    def may(operation_id: str) -> bool:
        action = _ACTIONS[operation_id]
        return action is None or gate.may(actor if has_policy else None, action)

    try:
        anyio.run(_serve, partial(request_app, app, "", headers), may)
    finally:
        app.serving.close()


def serve_remote(base: str, token: str | None) -> None:
    """Serve a graph behind a server until the input ends; that decides what is allowed."""
    anyio.run(_serve_remote, base, token)


async def _serve_remote(base: str, token: str | None) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=ANSWER_SECONDS) as client:
        await _serve(partial(_request_server, client, base), lambda _: True)


async def _request_server(client: httpx.AsyncClient, base: str, sent: Sent) -> Answer:
    first, *rest = sent.path  # the first is a path of ours, the others are names
    path = "/".join([first, *(quote(part, safe="") for part in rest)])
    try:
        response = await client.request(
            sent.method,
            f"{base}/{path}",
            params=sent.params,
            json=sent.body,
            headers=dict(sent.headers),
        )
        return response.status_code, response.json()
    except (httpx.HTTPError, ValueError) as error:
        reason = str(error) or type(error).__name__
        return 502, {"error": f"no answer from {base}: {reason} — is the server up?"}


async def _serve(send: Requester, may: May) -> None:
    caller = Caller(send, may)
    server = make_server(lambda: caller)
    passed_on, understood = anyio.create_memory_object_stream[SessionMessage | Exception]()
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
        group.start_soon(_refuse_malformed, incoming, passed_on, outgoing)
        await server.run(understood, outgoing, server.create_initialization_options())


async def _refuse_malformed(
    incoming: AsyncIterable[SessionMessage | Exception],
    passed_on: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: Any,
) -> None:
    """Pass messages on. What is none is answered: the SDK drops it, and its sender would wait."""
    async with passed_on:
        async for message in incoming:
            if isinstance(message, Exception):
                error = ErrorData(code=PARSE_ERROR, message="the line is no message of JSON-RPC")
                refusal = JSONRPCError(jsonrpc="2.0", id=None, error=error)
                await outgoing.send(SessionMessage(refusal))
            else:
                await passed_on.send(message)


_ACTIONS = {each.operation_id: each.action for each in OPERATIONS}
