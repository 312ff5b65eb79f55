"""The language conformance file: 265 cases with their expected rows, steps, findings or errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import build_catalog, compile_query, lint, parse_schema, plan_migration
from omnigraph.errors import OmnigraphError

Case = dict[str, Any]

CASES: list[Case] = [
    json.loads(line)
    for line in (Path(__file__).parent / "conformance" / "language.jsonl").read_text().splitlines()
]

FOLDABLE = {"bad_request", "constraint", "params", "migration", "load"}
"""Classes that may stand for one another, as long as the text matches."""


def includes(actual: Any, expected: Any) -> bool:
    """Whether `actual` has every member that `expected` names."""
    if isinstance(expected, dict):
        return all(name in actual and includes(actual[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(includes, actual, expected))
    return bool(actual == expected)


def run_schema(case: Case, _: Path) -> None:
    build_catalog(parse_schema(case["schema"]))


def run_check(case: Case, _: Path) -> None:
    compile_query(case["query"], build_catalog(parse_schema(case["schema"])), case["name"])


def run_plan(case: Case, _: Path) -> None:
    plan = plan_migration(
        build_catalog(parse_schema(case["schema"])), parse_schema(case["desired"])
    )

    expect = case["expect"]
    assert plan.supported is expect["supported"]
    if "steps" in expect:
        assert includes([step.to_json() for step in plan.steps], expect["steps"])


def run_lint(case: Case, _: Path) -> None:
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


def loaded_graph(case: Case, folder: Path) -> og.Graph:
    """A graph with the schema and the data of a case."""
    path = folder / "case.omni"
    if path.exists():
        return og.open(path, durability="process")
    graph = og.init(path, schema=case["schema"], durability="process")
    if case.get("data"):
        graph.load(case["data"], mode="overwrite")
    return graph


def run_load(case: Case, folder: Path) -> None:
    loaded_graph(case, folder)


def run_read(case: Case, folder: Path) -> None:
    result = loaded_graph(case, folder).query(case["query"], case["name"], case.get("params"))

    expect_rows(result, case["expect"])


def run_mutate(case: Case, folder: Path) -> None:
    result = loaded_graph(case, folder).mutate(case["query"], case["name"], case.get("params"))

    for count in ("affected_nodes", "affected_edges"):
        if count in case["expect"]:
            assert getattr(result, count) == case["expect"][count]


def check_afterwards(case: Case, folder: Path) -> None:
    """What must hold after a mutation, also after one that failed."""
    for after in case.get("after", ()):
        result = loaded_graph(case, folder).query(
            after["query"], after.get("name"), after.get("params")
        )
        expect_rows(result, after["expect"])


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


RUNNERS: dict[str, Callable[[Case, Path], None]] = {
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
def test_case(case: Case, tmp_path: Path) -> None:
    """The case gives exactly the answer, or exactly the class of error, that it states."""
    run = RUNNERS[case["kind"]]
    wanted = case.get("error")

    if wanted is None:
        run(case, tmp_path)
    else:
        with pytest.raises(OmnigraphError) as caught:
            run(case, tmp_path)
        error = caught.value
        assert wanted["contains"] in str(error)
        assert error.kind == wanted["class"] or {error.kind, wanted["class"]} <= FOLDABLE

    check_afterwards(case, tmp_path)


def test_the_conformance_file_is_complete() -> None:
    """No case went missing, and no kind is left out."""
    assert len(CASES) == 265
    assert {case["kind"] for case in CASES} == set(RUNNERS)
