"""A member that a writing body does not know is refused with the one that was meant, everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph.config import StoredEntry
from omnigraph.policy import Action
from omnigraph.server.operation import Operation
from omnigraph.server.operations import OPERATIONS
from tests.http.serving import INSERT, Client, make_graph, served, single

pytestmark = pytest.mark.slow

READS = {Action.READ, Action.EXPORT, Action.VERIFY, None}
WRITING = [each for each in OPERATIONS if each.takes is not None and each.action not in READS]
VALUES = {"string": "x", "integer": 1, "boolean": True, "array": [], "object": {}}
PARTS = {"name": "add", "number": "1", "branch": "side", "tag": "side", "job_id": "x"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("members")
    (folder / "add.gq").write_text(INSERT)
    queries = {"add": StoredEntry(folder / "add.gq")}
    with (
        served(single(make_graph(folder / "graph"), queries=queries)) as server,
        server.client() as client,
    ):
        client.post("/branches", {"name": "side"})
        client.mutate(INSERT, params={"slug": "x"}, branch="side")
        client.post("/merge-requests", {"source": "side", "title": "Review"})
        yield client


def make_body(schema: dict[str, Any]) -> dict[str, Any]:
    """The required members, each of its type."""
    kinds = {
        name: schema["properties"][name].get("type", "string")
        for name in schema.get("required", [])
    }
    return {name: "" if name == "data" else VALUES[kind] for name, kind in kinds.items()}


def test_most_writing_operations_take_a_body() -> None:
    assert len(WRITING) > 15


@pytest.mark.parametrize("operation", WRITING, ids=lambda each: each.operation_id)
def test_a_misspelt_member_is_refused_with_the_one_that_was_meant(
    client: Client, operation: Operation
) -> None:
    assert operation.takes is not None
    schema = operation.takes.model_json_schema(by_alias=True)
    path = re.sub(r"\{(\w+)(:path)?\}", lambda part: PARTS[part[1]], operation.path)
    headers = {"Omnigraph-If-Graph-Commit": "x"} if "if-graph-commit" in path else {}
    before = client.get("/log").json(), client.get("/branches").json()
    for known in schema["properties"]:
        body = {**make_body(schema), f"{known}s": VALUES["string"]}
        answer = client.send(operation.method, path, json=body, headers=headers)

        error = answer.json()["error"]
        assert (answer.status_code, f"did you mean `{known}`?" in error) == (400, True), error
    assert (client.get("/log").json(), client.get("/branches").json()) == before
