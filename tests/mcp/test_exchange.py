"""A plain request of MCP is answered without the SDK's transport, and as that would answer it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from starlette.requests import Request

from omnigraph.server.mcp_exchange import exchange
from omnigraph.server.mcp_server import Answer, Caller, make_server
from omnigraph.server.mcp_tool import Sent
from tests.http.serving import PEOPLE, Client, make_graph, served, single
from tests.mcp.test_hostile import INITIALIZE, MALFORMED

pytestmark = pytest.mark.xdist_group("mcp-exchange")

JSON = "application/json"
BY_TRANSPORT = "application/json; charset=utf-8"
"""A content type that says no more, but is left to the SDK's transport."""


def message(method: str, params: Any = None, id_: Any = 1) -> bytes:
    given = {} if params is None else {"params": params}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, **given}).encode()


def tool(name: str, arguments: Any = None, **more: Any) -> bytes:
    return message("tools/call", {"name": name, "arguments": arguments, **more})


MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
MESSAGES = [
    tool("query", {"query": PEOPLE}),
    tool("query", {"query": PEOPLE}, _meta={"progressToken": 7}),
    tool("query", {"query": PEOPLE}, task={"ttl": 1}),
    tool("query", {"query": PEOPLE}, **MODERN),
    tool("query", {"query": "nonsense"}),
    tool("query"),
    tool("nonsense"),
    tool("schema_get", {}),
    message("tools/call", {"name": "schema_get"}, "a text"),
    message("tools/call", {"name": "schema_get"}, True),
    message("tools/call", {"name": "schema_get"}, 1.5),
    message("tools/call", {"name": "schema_get"}, None),
    message("ping"),
    message("tools/list"),
    message("tools/list", {"cursor": 7}),
    message("resources/read", {"uri": "omnigraph://secrets"}),
    message("prompts/list"),
    message("prompts/get", {"name": "x"}),
    message("logging/setLevel", {"level": "info"}),
    message("server/discover"),
    message("initialize", INITIALIZE),
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    *(each for each in MALFORMED if len(each) < 4_000),
]
VERSIONS = [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "nonsense"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = make_graph(tmp_path_factory.mktemp("mcp") / "graph")
    with served(single(path)) as server, server.client() as client:
        yield client


def send(client: Client, body: bytes, media: str, **headers: str) -> tuple[int, str | None, Any]:
    accepted = {"Accept": f"{JSON}, text/event-stream", "Content-Type": media, **headers}
    answer = client.http.post("/mcp", content=body, headers=accepted)
    return answer.status_code, answer.headers.get("content-type"), answer.content


@pytest.mark.parametrize("body", MESSAGES, ids=range(len(MESSAGES)))
def test_an_answer_without_a_transport_is_the_one_with_it(client: Client, body: bytes) -> None:
    assert send(client, body, JSON) == send(client, body, BY_TRANSPORT)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_protocol_version_is_answered_as_by_the_transport(
    client: Client, version: str | None
) -> None:
    headers = {} if version is None else {"MCP-Protocol-Version": version}
    for body in (tool("query", {"query": PEOPLE}), message("tools/list"), message("prompts/get")):
        assert send(client, body, JSON, **headers) == send(client, body, BY_TRANSPORT, **headers)


@pytest.mark.parametrize("accept", ["*/*", JSON, "text/event-stream", "", "application/*;q=1"])
def test_an_accept_header_is_answered_as_by_the_transport(client: Client, accept: str) -> None:
    body = tool("query", {"query": PEOPLE})

    assert send(client, body, JSON, Accept=accept) == send(
        client, body, BY_TRANSPORT, Accept=accept
    )


@pytest.mark.parametrize(
    ("body", "headers", "is_plain"),
    [
        (message("ping"), {}, True),
        (tool("health", {}), {"mcp-protocol-version": "2025-06-18"}, True),
        (tool("health", {}), {"mcp-protocol-version": "2026-07-28"}, False),
        (message("initialize", INITIALIZE), {}, False),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', {}, False),
        (b"[]", {}, False),
        (message("ping"), {"content-type": "text/plain"}, False),
        (message("ping"), {"accept": "text/html"}, False),
    ],
)
def test_only_plain_requests_go_without_a_transport(
    body: bytes, headers: dict[str, str], is_plain: bool
) -> None:
    async def answer(sent: Sent) -> Answer:
        return 200, {"path": sent.path}

    given = {"content-type": JSON, "accept": JSON, **headers}
    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    request = Request({"type": "http", "method": "POST", "path": "/mcp", "headers": raw})
    server = make_server(lambda: Caller(answer, lambda _: True))

    found = anyio.run(exchange, server, request, body)

    assert (found is not None) is is_plain
