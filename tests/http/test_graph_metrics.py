"""Metrics of each graph, for those who may know them, and traces where they are installed."""

from __future__ import annotations

import gzip
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import omnigraph as og
from omnigraph.errors import BadRequestError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.server.app import create_app
from omnigraph.server.auth import Tokens
from omnigraph.server.settings import ServedGraph, ServerSettings
from omnigraph.server.traces import ENDPOINTS, NO_TRACES, make_traces, traces_from
from omnigraph.storage.counters import PROCESS
from omnigraph.testing.inside import inside
from tests.http.serving import INSERT, PEOPLE, make_graph, served, single
from tests.http.test_exports import until
from tests.http.test_process import started

pytestmark = pytest.mark.slow

TOKENS = {"act-ops": "ops-token", "act-bob": "bob-token"}
POLICY = """
version: 1
groups: { ops: [act-ops], all: [act-bob, act-ops] }
rules:
  - { id: watch, allow: { actors: { group: ops }, actions: [verify] } }
  - { id: read, allow: { actors: { group: all }, actions: [read] } }
"""


def read_gauges(text: str) -> dict[tuple[str, str], float]:
    """(name without its prefix, graph) → value."""
    return {
        (sample.name.removeprefix("omnigraph_graph_"), sample.labels["graph"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("omnigraph_graph_")
    }


def test_the_gauges_are_the_figures_of_the_graph(graph_path: Path) -> None:
    with served(single(graph_path)) as server, server.client() as client:
        client.mutate(INSERT, params={"slug": "x"})
        client.post("/branches", {"name": "side"})
        client.rows()
        found = read_gauges(client.get("/metrics").text)
        client.mutate(INSERT, params={"slug": "y"})
        later = read_gauges(client.get("/metrics").text)
    with og.open(graph_path, mode="r") as graph:
        report = graph.doctor()

    assert later["rows", "default"] == found["rows", "default"] + 1 == 6
    assert later["commits", "default"] == found["commits", "default"] + 1 == report.commits
    assert later["branches", "default"] == report.branches == 2
    assert later["fragments", "default"] == sum(table.fragments for table in report.tables)
    assert found["up", "default"] == 1
    assert found["pending_recoveries", "default"] == 0
    assert 0 < found["cache_bytes", "default"] < found["cache_budget_bytes", "default"]


def test_a_scrape_opens_the_tables_that_changed_and_no_others(graph_path: Path) -> None:
    with served(single(graph_path)) as server, server.client() as client:
        opens = []
        tables = inside(server.serving.graphs.find("default").graph).store.tables
        for write in (None, None, "x", None):
            if write is not None:
                client.mutate(INSERT, params={"slug": write})
            tables.forget()  # as with more tables than are kept open
            before = PROCESS.opens
            found = read_gauges(client.get("/metrics").text)
            opens.append(PROCESS.opens - before)
        with og.open(graph_path, mode="r") as graph:
            fragments = sum(table.fragments for table in graph.doctor().tables)

    assert opens == [4, 0, 1, 0]
    assert found["fragments", "default"] == fragments


def test_pending_recovery_and_an_unreadable_graph_are_seen(graph_path: Path) -> None:
    with served(single(graph_path)) as server, server.client() as client:
        with (
            og.open(graph_path) as graph,
            arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: "raise"}),
            pytest.raises(FailpointError),
        ):
            graph.mutate(INSERT, params={"slug": "x"})
        pending = read_gauges(client.get("/metrics").text)
        shutil.rmtree(graph_path / "__manifest")
        gone = client.get("/metrics")

        assert pending["pending_recoveries", "default"] == 1
        assert gone.status_code == 200
        assert read_gauges(gone.text)["up", "default"] == 0


def test_only_a_caller_who_may_verify_sees_a_graph(tmp_path: Path) -> None:
    graphs = (
        ServedGraph("alpha", str(make_graph(tmp_path / "a")), policy_text=POLICY),
        ServedGraph("beta", str(make_graph(tmp_path / "b"))),
    )
    tokens = Tokens.from_pairs(TOKENS.items())
    with served(ServerSettings(graphs, is_single=False, tokens=tokens)) as server:
        texts = {}
        for token in (None, "bob-token", "ops-token"):
            with server.client(token) as client:
                texts[token] = client.get("/metrics").text
        with server.client("wrong") as client:
            refused = client.get("/metrics").status_code

    seen = {token: {graph for _, graph in read_gauges(text)} for token, text in texts.items()}
    assert seen == {None: set(), "bob-token": set(), "ops-token": {"alpha"}}
    assert all("omnigraph_http_requests_total" in text for text in texts.values())
    assert refused == 401


def test_a_request_is_a_span_with_its_work_below_it(graph_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    settings = single(graph_path, tokens={"act-ada": "ada-token"})
    with (
        served(settings, traces=make_traces(exporter, is_batched=False)) as server,
        server.client("ada-token") as ada,
    ):
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        ada.post("/query", {"query": PEOPLE}, headers={"traceparent": parent})
        ada.get("/commits/nope-secret-id")
        ada.mutate(INSERT, params={"slug": "private"})

    spans = {span.name: span for span in exporter.get_finished_spans()}
    query = spans["POST /query"]
    assert f"{query.context.trace_id:032x}" == parent[3:35]
    assert f"{query.parent.span_id:016x}" == parent[36:52]
    assert query.attributes["http.response.status_code"] == 200
    assert query.attributes["omnigraph.graph"] == "default"
    assert query.attributes["omnigraph.actor"] == "act-ada"
    assert spans["query"].parent.span_id == query.context.span_id
    assert spans["GET /commits/{commit_id}"].attributes["http.response.status_code"] == 404
    assert spans["POST /mutate"].attributes["http.response.status_code"] == 403
    texts = str([(span.name, dict(span.attributes or {})) for span in spans.values()])
    for private in ("private", "secret", "Person", "ada-token"):
        assert private not in texts


class Collector(ThreadingHTTPServer):
    """A receiver of OTLP over HTTP, on loopback: keeps the names and attributes of spans."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), CollectorRequest)
        self.spans: dict[str, dict[str, str]] = {}
        self.services: set[str] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class CollectorRequest(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        data = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        assert self.path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
            facts = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.server.services.add(facts["service.name"])
            for scope in resource.scope_spans:
                for span in scope.spans:
                    found = {each.key: each.value.string_value for each in span.attributes}
                    self.server.spans[span.name] = found
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing on the console of the tests."""


def test_spans_arrive_at_a_collector(tmp_path: Path) -> None:
    """A server process, told by the environment, sends what it did to a receiver of OTLP."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    make_graph(tmp_path / "graph")
    with Collector() as collector:
        environment = {ENDPOINTS[0]: collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        with started(tmp_path, "graph", "--unauthenticated", **environment) as (_, url):
            assert httpx.post(f"{url}/query", json={"query": PEOPLE}).status_code == 200
            until(lambda: "POST /query" in collector.spans)
        collector.shutdown()

    assert collector.services == {"omnigraph"}
    assert collector.spans["POST /query"]["omnigraph.graph"] == "default"
    assert "query" in collector.spans


def test_without_an_endpoint_there_are_no_traces(graph_path: Path) -> None:
    app = create_app(single(graph_path))
    app.serving.close()

    assert not app.serving.traces.is_on
    assert traces_from({}) is NO_TRACES


def test_traces_that_cannot_be_sent_are_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("omnigraph.server.traces.is_missing", lambda _: True)

    with pytest.raises(BadRequestError, match=r"pip install 'omnigraph\[otel\]'"):
        traces_from({ENDPOINTS[0]: "http://127.0.0.1:4318"})
