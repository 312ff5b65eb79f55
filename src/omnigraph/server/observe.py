"""Observe: around each request, give it an id, count it, time it and log it.

Plain ASGI: it keeps nothing of a body, so streams stay streams.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph.server.metrics import Metrics
from omnigraph.server.traces import NO_TRACES, Traces, finish_request

UNKNOWN_ROUTE = "(none)"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SAFE_ID = re.compile(rb"[\w.-]{1,64}", re.ASCII)
_IDS = random.Random()
"""Reading the system's source for each id would release the interpreter lock each time."""

log = logging.getLogger("omnigraph.server.requests")


class Observe:
    """Wraps an application. A client's own request id is kept when it is a harmless text."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        count_sent: Callable[[int], None],
        traces: Traces = NO_TRACES,
    ) -> None:
        self._app = app
        self._count_sent = count_sent
        self._metrics = metrics
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        request_id = _request_id(scope)
        scope["omnigraph.request_id"] = request_id.decode()
        status = 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            else:
                self._count_sent(len(message.get("body", b"")))
            await send(message)

        self._metrics.in_flight.inc()
        with self._traces.request(scope) as span:
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                self._metrics.in_flight.dec()
                self._finish(scope, status, perf_counter() - started, span)

    def _finish(self, scope: Scope, status: int, seconds: float, span: Any) -> None:
        route = getattr(scope.get("route"), "path_format", UNKNOWN_ROUTE)
        # Unknown methods share one label; otherwise clients could create unlimited metric series.
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._metrics.count_request(method, route, status, seconds)
        if span is not None:
            names = ("request_id", "actor", "graph")
            facts = {name: scope.get(f"omnigraph.{name}") for name in names}
            finish_request(span, method, route, status, facts)
        if log.isEnabledFor(logging.INFO):
            log.info(
                "%s %s %d",
                method,
                route,
                status,
                extra={
                    "facts": {
                        "request_id": scope["omnigraph.request_id"],
                        "actor": scope.get("omnigraph.actor"),
                        "graph": scope.get("omnigraph.graph"),
                        "milliseconds": round(1_000 * seconds, 3),
                    }
                },
            )


def _request_id(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SAFE_ID.fullmatch(value):
            return bytes(value)
    return b"%016x" % _IDS.getrandbits(64)
