"""Traces: one span per request and per piece of engine work, by OpenTelemetry.

Made only where `omnigraph[otel]` is installed and the environment says where spans go, in the
variables of OpenTelemetry itself. Spans have routes, graphs, actors and statuses, and like the log
no query, parameter or value.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from starlette.types import Scope

from omnigraph.errors import BadRequestError
from omnigraph.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NO_SPAN = nullcontext()
_SDK, _OTLP = "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"


class Traces:
    """Makes spans; without a tracer it makes none, at no cost."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer

    @property
    def is_on(self) -> bool:
        return self._tracer is not None

    def request(self, scope: Scope) -> AbstractContextManager[Span | None]:
        """Be the span of a request, below that of the client which sent a `traceparent`."""
        if self._tracer is None:
            return _NO_SPAN
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        span: AbstractContextManager[Span] = self._tracer.start_as_current_span(
            scope["method"][:20], context=extract(headers), kind=SpanKind.SERVER
        )
        return span

    def step(self, name: str) -> AbstractContextManager[Span | None]:
        """Be the span of one piece of work of a request."""
        return _NO_SPAN if self._tracer is None else self._tracer.start_as_current_span(name)


NO_TRACES = Traces()


def finish_request(
    span: Any, method: str, route: str, status: int, facts: Mapping[str, Any]
) -> None:
    """Say in the span of a request what it was, once that is known."""
    from opentelemetry.trace import Status, StatusCode

    span.update_name(f"{method} {route}")
    span.set_attributes(
        {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
            **{f"omnigraph.{name}": value for name, value in facts.items() if value is not None},
        }
    )
    if status >= 500:
        span.set_status(Status(StatusCode.ERROR))


def traces_from(environment: Mapping[str, str]) -> Traces:
    """Traces as the environment asks for them.

    Raises:
        BadRequestError: It asks for traces that this installation cannot send.
    """
    if not any(environment.get(name) for name in ENDPOINTS):
        return NO_TRACES
    if is_missing(_SDK) or is_missing(_OTLP):
        raise BadRequestError(
            f"{ENDPOINTS[0]} is set, but traces are not installed — "
            "run `pip install 'omnigraph[otel]'`, or unset it"
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return make_traces(OTLPSpanExporter())


def make_traces(exporter: SpanExporter, *, is_batched: bool = True) -> Traces:
    """Traces that an exporter gets."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    process = BatchSpanProcessor if is_batched else SimpleSpanProcessor
    resource = Resource.create({"service.name": "omnigraph", "service.version": __version__})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(process(exporter))
    return Traces(provider.get_tracer("omnigraph", __version__))


def is_missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True
