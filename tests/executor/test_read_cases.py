"""The conformance cases of kind `read`, against real tables."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph, init
from tests.executor.running import run_query

Case = dict[str, Any]

_FILE = Path(__file__).parents[1] / "conformance" / "language.jsonl"
CASES: list[Case] = [
    case for line in _FILE.read_text().splitlines() if (case := json.loads(line))["kind"] == "read"
]
FOLDABLE = {"bad_request", "constraint", "params", "migration"}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One graph for each schema and data of the file."""

    @cache
    def graph_of(schema: str, data: str) -> Graph:
        graph = init(
            tmp_path_factory.mktemp("case") / "g.omni", schema=schema, durability="process"
        )
        graph.load(json.loads(data), mode="overwrite")
        return graph

    return graph_of


def as_bag(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.accepts("S-165")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_case(case: Case, graphs: Any) -> None:
    """The case gives exactly the rows, or exactly the class of error, that it states."""
    graph = graphs(case["schema"], json.dumps(case["data"]))
    wanted = case.get("error")

    if wanted is not None:
        with pytest.raises(OmnigraphError) as caught:
            run_query(graph, case["query"], case.get("params"), name=case.get("name"))
        assert wanted["contains"] in str(caught.value)
        error = caught.value
        assert error.kind == wanted["class"] or {error.kind, wanted["class"]} <= FOLDABLE
        return

    rows = run_query(graph, case["query"], case.get("params"), name=case.get("name")).rows()

    expect = case["expect"]
    if expect["ordered"]:
        assert rows == expect["rows"]
    else:
        assert as_bag(rows) == as_bag(json.loads(json.dumps(expect["rows"])))


def test_every_read_case_is_run() -> None:
    """No case went missing."""
    assert len(CASES) == 115
