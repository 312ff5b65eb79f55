"""A real embedding server on this machine that answers what a test tells it to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from omnigraph.embed.config import EmbedConfig, Provider

KEY = "sk-very-secret-0123456789"


@dataclass(frozen=True)
class Reply:
    """What the server sends: a status, a body (JSON unless it is bytes), headers."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: Any


Answer = Callable[[Request, int], Reply]


@dataclass
class FakeProvider:
    """What was asked, in order; `answer` gets each request and its number from 0."""

    answer: Answer
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    closing: Event = field(default_factory=Event)

    def config(self, provider: Provider = Provider.OPENAI, **settings: Any) -> EmbedConfig:
        defaults = {"timeout_ms": 5_000, "deadline_ms": 20_000, "retry_backoff_ms": 1}
        return EmbedConfig(provider, "m-1", self.url, KEY, **{**defaults, **settings})


@contextmanager
def serving(answer: Answer) -> Iterator[FakeProvider]:
    """Serve until the block ends."""
    provider = FakeProvider(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = json.loads(self.rfile.read(length))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.path, headers, body)
            with provider.lock:
                number = len(provider.requests)
                provider.requests.append(request)
            reply = provider.answer(request, number)
            if reply.hangs:
                provider.closing.wait(30)
                return
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def openai_reply(request: Request, _: int = 0) -> Reply:
    """A vector per text that says how long the text is; out of order, as is allowed."""
    width = request.body["dimensions"]
    items = [
        {"index": place, "embedding": [float(len(text)), *[1.0] * (width - 1)]}
        for place, text in enumerate(request.body["input"])
    ]
    return Reply({"data": items[::-1]})


def gemini_reply(request: Request, _: int = 0) -> Reply:
    text = request.body["content"]["parts"][0]["text"]
    width = request.body["outputDimensionality"]
    return Reply({"embedding": {"values": [float(len(text)), *[1.0] * (width - 1)]}})
