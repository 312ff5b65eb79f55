"""App: settings → an application that serves them. The graphs are open when it is returned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from omnigraph.errors import OmnigraphError
from omnigraph.policy import load_policy
from omnigraph.server.admission import Admission
from omnigraph.server.call import Call, Serving
from omnigraph.server.envelope import error_response, error_status, json_response
from omnigraph.server.events import EventReaders
from omnigraph.server.freed_memory import FreedMemory
from omnigraph.server.gate import Gate
from omnigraph.server.graphs import open_graphs
from omnigraph.server.http_errors import HttpError
from omnigraph.server.metrics import Metrics
from omnigraph.server.observe import Observe
from omnigraph.server.openapi import GRAPH_BASE, GRAPHS, list_operations, openapi_document
from omnigraph.server.openapi_stored import stored_paths
from omnigraph.server.operation import Operation
from omnigraph.server.query_runner import QueryRunner
from omnigraph.server.readable_types import hide_rows
from omnigraph.server.reload import Reloader, Source, configuration_at_start
from omnigraph.server.settings import ServerSettings
from omnigraph.server.streaming import ExportSlots
from omnigraph.server.traces import NO_TRACES, Traces
from omnigraph.server.upkeep_runner import UpkeepRunner
from omnigraph.server.worker_pool import WorkerPool
from omnigraph.server.write_process import WriteProcess

log = logging.getLogger("omnigraph.server")


class Application:
    """The ASGI application. A path whose only parameter is the graph is found by one look-up.

    Starlette routes all other paths, and refuses those that no operation has.
    """

    def __init__(self, serving: Serving, source: Source | None = None) -> None:
        is_single, is_open = serving.settings.is_single, serving.settings.is_open
        self.serving = serving
        self.reloader = None if source is None else Reloader(serving, source)
        self.document = openapi_document(is_single=is_single, is_open=is_open)
        self.routes = [
            Route("/openapi.json", self._send_document, name="openapi"),
            *(_route(*served, serving) for served in list_operations(is_single=is_single)),
        ]
        self._fixed: dict[tuple[str, str], Route] = {}
        self._of_graph: dict[tuple[str, str], Route] = {}
        for route in self.routes:
            for method in route.methods or ():
                if not route.param_convertors:
                    self._fixed[method, route.path] = route
                elif [*route.param_convertors] == ["graph_id"]:
                    self._of_graph[method, route.path.removeprefix(GRAPH_BASE)] = route
        self._starlette = Starlette(
            routes=self.routes,
            exception_handlers={HTTPException: _http_error},
            lifespan=self._lifespan,
        )
        self._starlette.router.redirect_slashes = False
        freed = FreedMemory(serving.exporters)
        self._observed = Observe(self._dispatch, serving.metrics, freed.count_sent, serving.traces)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["omnigraph.app"] = self  # what answers a request by making others
        await self._observed(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._look_up(scope) if scope["type"] == "http" else None
        if route is None:
            await self._starlette(scope, receive, send)
            return
        scope["route"] = route
        response = await route.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    def _look_up(self, scope: Scope) -> Route | None:
        method, path = scope["method"], scope["path"]
        found = self._fixed.get((method, path))
        if found is None and path.startswith(GRAPHS):
            graph_id, slash, rest = path.removeprefix(GRAPHS).partition("/")
            found = self._of_graph.get((method, slash + rest)) if graph_id else None
            if found is not None:
                scope["path_params"] = {"graph_id": graph_id}
        return found

    async def _send_document(self, request: Request) -> Response:
        """The document, with the stored queries that this caller may invoke."""
        serving = self.serving
        actor = bound = None
        if serving.settings.tokens and "authorization" in request.headers:
            try:
                holder = serving.settings.tokens.holder_of(request.headers["authorization"])
            except OmnigraphError as error:
                return error_response(error)
            actor, bound = holder.actor, holder.bound
        is_single, is_open = serving.settings.is_single, serving.settings.is_open
        if actor is None and not is_open:
            return json_response(self.document)
        stored = stored_paths(serving.graphs, actor, bound, is_single=is_single, is_open=is_open)
        return json_response(self.document | {"paths": self.document["paths"] | stored})

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        watch = None if self.reloader is None else asyncio.create_task(self.reloader.run())
        yield
        if watch is not None:
            watch.cancel()
        self.serving.close()


def create_app(
    settings: ServerSettings, source: Source | None = None, traces: Traces = NO_TRACES
) -> Application:
    """Open the graphs and build the application that serves them.

    With a `source`, tokens, policies and stored queries are read again when they change.

    Raises:
        OmnigraphError: The settings are refused, or a graph that is needed cannot be served.
    """
    settings.check()
    return Application(_serving(settings, traces), source)


def _route(path: str, operation: Operation, serving: Serving) -> Route:
    endpoint = _endpoint(operation, serving)
    route = Route(path, endpoint, methods=[operation.method], name=operation.operation_id)
    route.methods = {operation.method}  # Starlette adds HEAD to GET, which no operation announces
    return route


def _serving(settings: ServerSettings, traces: Traces) -> Serving:
    metrics = Metrics()
    limits = settings.limits
    text, name = settings.server_policy_text, settings.server_policy_name
    server_policy = None if text is None else load_policy(text, name=name, resource=None)
    graphs = open_graphs(settings)
    readers = WorkerPool(limits.read_threads, "omnigraph-read")
    write_process = WriteProcess(settings, graphs, metrics)
    return Serving(
        settings=settings,
        graphs=graphs,
        gate=Gate(settings.is_open, server_policy),
        admission=Admission(limits, metrics.rejected.inc),
        metrics=metrics,
        slots=ExportSlots(limits, metrics),
        events=EventReaders(limits.event_streams_max),
        readers=readers,
        query_runner=QueryRunner(readers),
        writers=WorkerPool(settings.write_threads, "omnigraph-write"),
        exporters=WorkerPool(limits.exports_max, "omnigraph-export"),
        write_process=write_process,
        upkeep=UpkeepRunner(write_process, metrics),
        traces=traces,
        configuration=configuration_at_start(),
    )


def _endpoint(operation: Operation, serving: Serving) -> Callable[[Request], Awaitable[Response]]:
    """Build the endpoint of one operation; every error becomes an envelope."""
    only_graph = serving.settings.graphs[0].graph_id

    async def endpoint(request: Request) -> Response:
        call = Call(serving, operation, request)
        try:
            if operation.action is not None:
                call.identify()
                request.scope["omnigraph.actor"] = call.actor
                if not operation.is_of_server:
                    graph_id = request.path_params.get("graph_id", only_graph)
                    call.choose_graph(graph_id)
                    request.scope["omnigraph.graph"] = graph_id
            response = await operation.handler(call)
            assert call.is_permit_checked, (
                f"{operation.operation_id} was answered without a check of the policy"
            )
            return response
        except OmnigraphError as error:
            if error_status(error) >= 500:
                log.error("%s", error, extra={"facts": _facts(request)}, exc_info=error)
            return error_response(hide_rows(call, error))
        except RecursionError:
            return error_response(HttpError(400, "the request is nested too deeply"))
        except Exception as error:
            log.error("unexpected error", extra={"facts": _facts(request)}, exc_info=error)
            return _internal(request)

    return endpoint


def _facts(request: Request) -> dict[str, Any]:
    return {"request_id": request.scope.get("omnigraph.request_id")}


def _internal(request: Request) -> Response:
    request_id = request.scope.get("omnigraph.request_id")
    text = f"internal error — see the log of the server for request id {request_id}"
    return json_response({"error": text, "code": "internal"}, 500)


async def _http_error(request: Request, error: Exception) -> Response:
    """Answer what the router refuses with the envelope."""
    assert isinstance(error, HTTPException)
    match error.status_code:
        case 404:
            text = f"path '{request.url.path[:200]}' not found"
        case 405:
            text = f"method {request.method[:20]} not allowed on '{request.url.path[:200]}'"
        case _:
            text = str(error.detail)
    return error_response(HttpError(error.status_code, text, error.headers))
