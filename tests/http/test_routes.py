"""Every operation answers, flat and nested, and everything that goes wrong has the envelope."""

from __future__ import annotations

import httpx
import pytest
from starlette.routing import Match, Route

from omnigraph.server.openapi import GRAPH_BASE, NESTED_PREFIX, TITLE, list_operations
from omnigraph.server.operations import OPERATIONS
from tests.http.serving import ADA, INSERT, PEOPLE, SCHEMA, Client, Served, ndjson

SPECIFIED_IDS = {
    "health",
    "listGraphs",
    "getSnapshot",
    "query",
    "read",
    "mutate",
    "change",
    "mutate_if_graph_commit",
    "load",
    "loadNdjson",
    "ingest",
    "export",
    "getSchema",
    "applySchema",
    "listBranches",
    "createBranch",
    "deleteBranch",
    "mergeBranches",
    "listCommits",
    "getCommit",
    "list_queries",
    "invoke_query",
    "invoke_query_if_graph_commit",
}
BASES = pytest.mark.parametrize("base", ["", "/graphs/default"], ids=["flat", "nested"])


def is_envelope(response: httpx.Response, status: int, code: str) -> bool:
    assert response.status_code == status, response.text
    body = response.json()
    return body["code"] == code and isinstance(body["error"], str)


@BASES
def test_every_core_operation_answers_on_flat_and_nested_paths(own: Served, base: str) -> None:
    with own.client(base=base) as client:
        head = client.get("/commits").json()["commits"][0]["graph_commit_id"]
        answers = [
            client.get("/healthz"),
            client.get("/snapshot"),
            client.query(),
            client.post("/read", {"query_source": PEOPLE}),
            client.mutate(INSERT, params={"slug": "a"}),
            client.post("/change", {"query_source": INSERT, "params": {"slug": "b"}}),
            client.load([ADA]),
            client.post("/ingest", {"data": ndjson([ADA])}),
            client.send(
                "POST",
                "/load/ndjson",
                content=ndjson([ADA]),
                headers={"Content-Type": "application/x-ndjson"},
            ),
            client.post("/export", {}),
            client.get("/schema"),
            client.post("/schema/apply", {"schema_source": SCHEMA}),
            client.get("/branches"),
            client.post("/branches", {"name": "review/x"}),
            client.post("/branches/merge", {"source": "review/x"}),
            client.send("DELETE", "/branches/review%2Fx"),
            client.get("/commits"),
            client.get(f"/commits/{head}"),
            client.get("/queries"),
            client.get("/diff?from=main"),
            client.get("/log"),
            client.post("/explain", {"query": PEOPLE}),
            client.post("/branches", {"name": "other"}),
            client.post("/branches/merge/preview", {"source": "other"}),
        ]

    assert [answer.status_code for answer in answers] == [200] * len(answers)


@BASES
def test_everything_that_goes_wrong_has_the_envelope(client: Client, base: str) -> None:
    as_json = {"Content-Type": "application/json"}

    def send(path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        return client.send("POST", f"{base}{path}", content=body, headers=headers)

    assert is_envelope(client.get(f"{base}/nothing/here"), 404, "not_found")
    assert is_envelope(client.send("PUT", f"{base}/query"), 405, "method_not_allowed")
    assert is_envelope(send("/query", b"{}", {"Content-Type": "text/plain"}), 415, "bad_request")
    assert is_envelope(send("/query", b"{}", {}), 415, "bad_request")
    assert is_envelope(send("/query", b"{", as_json), 400, "bad_request")
    assert is_envelope(send("/query", b"", as_json), 400, "bad_request")
    assert is_envelope(send("/query", b"[]", as_json), 400, "bad_request")
    assert is_envelope(send("/query", b"x" * 1_048_577, as_json), 413, "bad_request")
    assert is_envelope(send("/load/ndjson", b"", as_json), 415, "bad_request")


@pytest.mark.accepts("S-007")
@BASES
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["/runs", "/runs/01ABC", "/runs/01ABC/publish", "/runs/abort"])
def test_there_are_no_run_endpoints(client: Client, base: str, method: str, path: str) -> None:
    assert is_envelope(client.send(method, f"{base}{path}"), 404, "not_found")
    assert not any("/runs" in path for path in client.document["paths"])


def test_the_operations_have_the_ids_that_clients_are_generated_from(shared: Served) -> None:
    document = shared.document
    ids = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]

    assert len(set(ids)) == len(ids)
    assert set(ids) >= SPECIFIED_IDS - {"listGraphs"}
    assert {f"{NESTED_PREFIX}{name}" for name in SPECIFIED_IDS - {"listGraphs"}} <= set(ids)
    assert document["info"]["title"] == TITLE
    assert document["openapi"].startswith("3.1")


def test_a_nested_operation_declares_the_graph_it_is_about(shared: Served) -> None:
    for path, operations in shared.document["paths"].items():
        for operation in operations.values():
            names = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            assert ("graph_id" in names) == path.startswith(GRAPH_BASE)
            assert all(f"{{{name}}}" in path for name in names)


def test_deprecated_operations_say_so(shared: Served) -> None:
    marked = {
        operation["operationId"]
        for path in shared.document["paths"].values()
        for operation in path.values()
        if operation.get("deprecated")
    }

    old = {"read", "change", "ingest"}
    assert marked == old | {f"{NESTED_PREFIX}{name}" for name in old}


def test_every_route_is_an_operation_and_few_have_no_action(shared: Served) -> None:
    """An operation without an action is served without a policy check."""
    names = {route.name for route in shared.app.routes if isinstance(route, Route)} - {"openapi"}

    assert names == {operation.operation_id for operation in OPERATIONS} - {"server_mcp"}
    unchecked = {each.operation_id for each in OPERATIONS if each.action is None}
    assert unchecked == {"health", "ready", "home", "getAsset", "metrics"}


def test_the_document_announces_exactly_what_is_routed(shared: Served) -> None:
    announced = {
        (path, method.upper())
        for path, operations in shared.document["paths"].items()
        for method in operations
    }
    routed = {
        (path.replace(":path}", "}"), operation.method)
        for path, operation in list_operations(is_single=True)
        if operation.operation_id != "listGraphs" and operation.is_described
    }

    assert announced == routed


def test_a_browser_gets_a_page_and_a_proxy_learns_when_to_stop_sending(own: Served) -> None:
    with own.client() as client:
        page = client.get("/")
        before = client.get("/readyz")
        own.serving.events.close()
        after = client.get("/readyz")

        assert page.headers["content-type"].startswith("text/html")
        assert "Omnigraph" in page.text
        body = before.json()
        assert (before.status_code, body["status"], body["graphs"]) == (200, "ready", 1)
        assert body["configuration"]["state"] == "current"
        assert after.status_code == 503
        assert client.get("/healthz").status_code == 200, "it still answers"


def test_health_says_what_the_server_speaks_and_stores(client: Client) -> None:
    body = client.get("/healthz").json()

    assert body["status"] == "ok"
    assert body["version"].count(".") == 2
    assert body["internal_schema_version"] == 5


def test_a_request_id_comes_back_and_a_strange_one_is_replaced(client: Client) -> None:
    kept = client.send("GET", "/healthz", headers={"X-Request-Id": "abc-1"})
    replaced = client.send("GET", "/healthz", headers={"X-Request-Id": "a b{}"})

    assert kept.headers["x-request-id"] == "abc-1"
    assert replaced.headers["x-request-id"] not in ("", "a b{}")


def test_a_server_of_one_graph_has_no_list_of_graphs(client: Client) -> None:
    assert is_envelope(client.get("/graphs"), 405, "method_not_allowed")


@pytest.mark.parametrize(
    ("graph_id", "status"),
    [
        ("other", 404),
        ("policies", 400),
        ("a_b", 400),
        ("x" * 65, 400),
        ("%2e%2e", 400),
    ],
)
def test_a_graph_id_is_checked_before_it_is_looked_for(
    client: Client, graph_id: str, status: int
) -> None:
    answer = client.get(f"/graphs/{graph_id}/snapshot")

    assert answer.status_code == status
    if graph_id == "other":
        assert answer.json()["error"] == "graph 'other' not found"


def test_metrics_count_by_route_and_hold_no_data(shared: Served, client: Client) -> None:
    client.query()
    client.get("/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV")

    text = client.get("/metrics").text

    assert 'omnigraph_http_requests_total{method="POST",route="/query",status="200"}' in text
    assert 'route="/commits/{commit_id}",status="404"' in text
    assert "omnigraph_http_request_seconds_bucket" in text
    assert "omnigraph_http_requests_in_flight 1.0" in text
    assert "omnigraph_admission_rejections_total 0.0" in text
    assert "01ARZ3" not in text
    assert "ada" not in text


@pytest.mark.parametrize("graph_id", ["default", "{graph_id}", "a b", "", "query"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_lookup_finds_the_route_of_starlette(shared: Served, method: str, graph_id: str) -> None:
    paths = [path for path, _ in list_operations(is_single=True)] + ["/graphs/x", "/nothing", "/"]
    looked_up = 0
    for template in paths:
        path = template.replace("{graph_id}", graph_id).replace("{branch:path}", "a/b")
        scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
        found = shared.app._look_up(scope)
        if found is not None:
            looked_up += 1
            matches = ((route, *route.matches(scope)) for route in shared.app.routes)
            route, child = next((r, child) for r, match, child in matches if match is Match.FULL)
            assert route is found
            assert child["path_params"] == scope.get("path_params", {})
    assert looked_up >= 5 or method == "DELETE"
