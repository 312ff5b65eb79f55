"""A real server on a real socket, and a client that holds every answer against its OpenAPI."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import uvicorn

import omnigraph as og
from omnigraph.server.app import Application, create_app
from omnigraph.server.auth import Tokens
from omnigraph.server.call import Serving
from omnigraph.server.reload import Source
from omnigraph.server.settings import ServedGraph, ServerSettings
from omnigraph.server.traces import NO_TRACES, Traces
from tests.http import warm_writes  # noqa: F401 — how the servers here start their processes

SCHEMA = """
node Person { slug: String @key  name: String?  age: I32?  born: Date? }
node Company { slug: String @key  name: String? }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company
"""
ADA = {"type": "Person", "data": {"slug": "ada", "name": "Ada", "age": 36}}
GRACE = {"type": "Person", "data": {"slug": "grace", "name": "Grace", "age": 45}}
ACME = {"type": "Company", "data": {"slug": "acme", "name": "Acme"}}
KNOWS = {"edge": "Knows", "from": "ada", "to": "grace", "data": {"since": "2020-01-01"}}
RECORDS = [ADA, GRACE, ACME, KNOWS]

PEOPLE = "query people() { match { $p: Person } return { $p.slug, $p.age } order { $p.slug } }"
INSERT = "query add($slug: String, $age: I32?) { insert Person { slug: $slug, age: $age } }"
UPDATE = (
    "query grow($slug: String, $age: I32) { update Person set { age: $age } where slug = $slug }"
)
DELETE = "query drop($slug: String) { delete Person where slug = $slug }"


def ndjson(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def make_graph(path: Path) -> Path:
    """The small graph of these tests, closed: a copy, which is quicker than making it again."""
    return Path(shutil.copytree(_template(), path))


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-http-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = new_graph(folder / "graph", SCHEMA, RECORDS)
    # The first open after a write lists its commits: here, once for all the copies.
    og.open(made, durability="process", self_care=False).close()
    return made


def new_graph(path: Path, schema: str, records: Any) -> Path:
    """A graph on disk, closed again."""
    with og.init(path, schema=schema, durability="process") as graph:
        if records:
            graph.load(records, mode="overwrite")
    return path


def single(path: Path, **settings: Any) -> ServerSettings:
    """One graph, open to everybody unless tokens are given."""
    tokens = settings.pop("tokens", None)
    policy = settings.pop("policy_text", None)
    stored = {
        name: settings.pop(name) for name in ("queries", "query_directory") if name in settings
    }
    served = ServedGraph("default", str(path), policy_text=policy, **stored)
    return ServerSettings(
        graphs=(served,),
        tokens=Tokens.from_pairs((tokens or {}).items()),
        unauthenticated=tokens is None,
        **settings,
    )


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is up."""

    app: Application
    url: str
    port: int

    @property
    def serving(self) -> Serving:
        return self.app.serving

    @property
    def document(self) -> dict[str, Any]:
        return self.app.document

    def client(self, token: str | None = None, *, base: str = "") -> Client:
        return Client(self, token, base)


@contextmanager
def served(
    settings: ServerSettings, source: Source | None = None, traces: Traces = NO_TRACES
) -> Iterator[Served]:
    """Serve in a thread of this process, on a free port."""
    app = create_app(settings, source, traces)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        lifespan="on",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=10,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        yield Served(app, f"http://127.0.0.1:{port}", port)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


class Client:
    """Sends requests. Every answer has to be one that the OpenAPI document announces."""

    def __init__(self, server: Served, token: str | None, base: str) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.document = server.document
        # No request here is encrypted: reading certificates would take longer than most of them.
        self.http = httpx.Client(
            base_url=server.url, headers=headers, timeout=60, trust_env=False, verify=False
        )
        self._base = base

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self.http.request(method, f"{self._base}{path}", **options)
        check_answer(self.document, response)
        return response

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.send("GET", path, params=params or None)

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.send("POST", path, json=body, **options)

    def query(self, source: str = PEOPLE, **members: Any) -> httpx.Response:
        return self.post("/query", {"query": source, **members})

    def mutate(self, source: str, **members: Any) -> httpx.Response:
        return self.post("/mutate", {"query": source, **members})

    def rows(self, source: str = PEOPLE, **members: Any) -> list[dict[str, Any]]:
        response = self.query(source, **members)
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()["rows"]
        return found

    def load(self, records: list[dict[str, Any]], **members: Any) -> httpx.Response:
        return self.post("/load", {"data": ndjson(records), **members})

    def export(self, **members: Any) -> str:
        response = self.post("/export", members)
        assert response.status_code == 200, response.text
        return response.text

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()


def check_answer(document: dict[str, Any], response: httpx.Response) -> None:
    """Hold an answer against the document: its status, its content type, its body."""
    assert "x-request-id" in response.headers
    operation = _operation(document, response.request)
    media = response.headers["content-type"].partition(";")[0]
    if operation is None or str(response.status_code) not in operation["responses"]:
        # The router's own answers (404, 405) are those of no operation.
        assert response.status_code in (404, 405), response.text
        schema: Mapping[str, Any] = {"$ref": "#/components/schemas/ErrorOutput"}
        assert media == "application/json"
    else:
        content = operation["responses"][str(response.status_code)]["content"]
        assert media in content, f"{response.status_code} answered {media}"
        schema = content[media]["schema"]
    if media == "application/json":
        _validator(schema, document).validate(response.json())


def _validator(
    schema: Mapping[str, Any], document: dict[str, Any]
) -> jsonschema_rs.Draft202012Validator:
    key = json.dumps(schema), id(document)
    if key not in _validators:
        whole = {**schema, "components": document["components"]}
        # With the document, so that no other one gets its id.
        _validators[key] = document, jsonschema_rs.Draft202012Validator(whole)
    return _validators[key][1]


_validators: dict[tuple[str, int], tuple[Any, jsonschema_rs.Draft202012Validator]] = {}


def _operation(document: dict[str, Any], request: httpx.Request) -> Any:
    path = request.url.raw_path.decode().partition("?")[0]
    # The longest template first: `/mutate/if-graph-commit` before `/mutate`.
    for template in sorted(document["paths"], key=lambda each: each.count("{")):
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path):
            found = document["paths"][template].get(request.method.lower())
            if found is not None:
                return found
    return None
