"""The language conformance files: cases with their expected rows, steps, findings or errors."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import build_catalog, compile_query, lint, parse_schema, plan_migration
from omnigraph.errors import OmnigraphError

Case = dict[str, Any]

FOLDER = Path(__file__).parent / "conformance"
NOW_VALID = {
    "parse-negative-literal",
    "parse-contains-in-where",
    "t8-min-date",
    "t1-interface-not-queryable",
    "t16-update-edge",
    "t23-binding-with-bounds",
}
"""Cases of the first file whose error is gone."""


def read_cases(name: str) -> list[Case]:
    return [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]


FIRST = read_cases("language.jsonl")
SECOND = read_cases("language-2.jsonl")
CASES = [*(case for case in FIRST if case["id"] not in NOW_VALID), *SECOND]

FOLDABLE = {"bad_request", "constraint", "params", "migration", "load"}
"""Classes that may stand for one another, as long as the text matches."""


def includes(actual: Any, expected: Any) -> bool:
    """Whether `actual` has every member that `expected` names."""
    if isinstance(expected, dict):
        return all(name in actual and includes(actual[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(includes, actual, expected))
    return bool(actual == expected)


class Graphs:
    """Graphs with the schema and data of a case: loaded once, read by every case with both."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[str, og.Graph] = {}
        self._numbers = itertools.count()

    def load(self, case: Case) -> og.Graph:
        """Make the graph from nothing; it belongs to this case."""
        graph = og.init(self._place(), schema=case["schema"], durability="process")
        if case.get("data"):
            graph.load(case["data"], mode="overwrite")
        return graph

    def share(self, case: Case) -> og.Graph:
        """A graph for cases that do not write."""
        key = json.dumps([case["schema"], case.get("data")])
        if key not in self._loaded:
            self._loaded[key] = self.load(case)
        return self._loaded[key]

    def copy(self, case: Case) -> og.Graph:
        """A graph that the case may write to."""
        shared = self.share(case)
        place = self._place()
        shutil.copytree(shared.uri, place)
        return og.open(place, durability="process")

    def _place(self) -> Path:
        return self._folder / f"{next(self._numbers)}.omni"


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    return Graphs(tmp_path_factory.mktemp("conformance"))


def run_schema(case: Case, _: Graphs) -> None:
    build_catalog(parse_schema(case["schema"]))


def run_check(case: Case, _: Graphs) -> None:
    compile_query(case["query"], build_catalog(parse_schema(case["schema"])), case["name"])


def run_plan(case: Case, _: Graphs) -> None:
    plan = plan_migration(
        build_catalog(parse_schema(case["schema"])), parse_schema(case["desired"])
    )

    expect = case["expect"]
    assert plan.supported is expect["supported"]
    if "steps" in expect:
        assert includes([step.to_json() for step in plan.steps], expect["steps"])


def run_lint(case: Case, _: Graphs) -> None:
    report = lint(
        build_catalog(parse_schema(case["schema"])),
        case["query"],
        query_path="case.gq",
        schema_source={"kind": "file", "path": "case.pg"},
    ).to_json()

    expect = dict(case["expect"])
    findings = expect.pop("findings")
    assert includes(report, expect)
    # An error finding that only repeats the parse failure has more members than the case names.
    assert includes(report["findings"], findings)


def run_load(case: Case, graphs: Graphs) -> None:
    graphs.load(case)


def run_read(case: Case, graphs: Graphs) -> None:
    result = graphs.share(case).query(case["query"], case["name"], case.get("params"))

    expect_rows(result, case["expect"])


def run_mutate(case: Case, graphs: Graphs) -> None:
    graph = graphs.copy(case)
    try:
        result = graph.mutate(case["query"], case["name"], case.get("params"))
        for count in ("affected_nodes", "affected_edges"):
            if count in case["expect"]:
                assert getattr(result, count) == case["expect"][count]
        if "rows" in case["expect"]:
            assert result.returned is not None
            expect_rows(result.returned, case["expect"])
    finally:
        # What must hold after a mutation, also after one that failed.
        for after in case.get("after", ()):
            reopened = og.open(graph.uri, durability="process")
            answer = reopened.query(after["query"], after.get("name"), after.get("params"))
            expect_rows(answer, after["expect"])


def expect_rows(result: og.QueryResult, expect: Case) -> None:
    rows, wanted = result.rows(), expect["rows"]
    if expect.get("ordered"):
        assert rows == wanted
    else:
        assert as_bag(rows) == as_bag(wanted)


def as_bag(rows: list[Case]) -> list[str]:
    """Rows in no order; numbers compare by value."""
    return sorted(json.dumps(_plain(row), sort_keys=True) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


RUNNERS: dict[str, Callable[[Case, Graphs], None]] = {
    "schema": run_schema,
    "check": run_check,
    "plan": run_plan,
    "lint": run_lint,
    "load": run_load,
    "read": run_read,
    "mutate": run_mutate,
}


@pytest.mark.accepts("S-165")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_case(case: Case, graphs: Graphs) -> None:
    """The case gives exactly the answer, or exactly the class of error, that it states."""
    run = RUNNERS[case["kind"]]
    wanted = case.get("error")

    if wanted is None:
        run(case, graphs)
    else:
        with pytest.raises(OmnigraphError) as caught:
            run(case, graphs)
        error = caught.value
        assert wanted["contains"] in str(error)
        assert error.kind == wanted["class"] or {error.kind, wanted["class"]} <= FOLDABLE


def test_the_conformance_files_are_complete() -> None:
    """No case went missing, and no kind is left out."""
    assert (len(FIRST), len(SECOND)) == (265, 431)
    assert {case["kind"] for case in FIRST} == set(RUNNERS)
