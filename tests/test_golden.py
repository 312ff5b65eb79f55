"""Golden cases: schema, query and the exact answer in one readable file.

A case is sections that start with `--- name`. `make golden` rewrites the answers, and the diff is
the review.

    inputs     schema, query; of a migration `desired`; of a plan `counts`, the rows of each table;
               of a run `data`, `params`, and a `mutation` that comes before the query
    answers    tree, catalog, ir, plan, rows, error; of lint `findings`
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import omnigraph as og
from omnigraph import build_catalog, compile_query, parse_query, parse_schema, plan_migration
from omnigraph.compiler import require_read
from omnigraph.compiler.lint import lint
from omnigraph.errors import OmnigraphError
from omnigraph.ir import format_ir
from omnigraph.planner import Statistics, format_plan, make_plan
from omnigraph.testing.format import format_value

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(GOLDEN.rglob("*.case"))
Sections = dict[str, str]


def read_case(path: Path) -> Sections:
    parts = re.split(r"(?m)^--- (\w+)\n", path.read_text(encoding="utf-8"))
    return {"claim": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def write_case(path: Path, sections: Sections) -> None:
    texts = [sections["claim"]]
    texts += [f"--- {name}\n{text}" for name, text in sections.items() if name != "claim"]
    path.write_text("".join(texts), encoding="utf-8")


def tree_of(case: Sections) -> str:
    if "query" in case:
        return format_value(parse_query(case["query"], name="case.gq").queries)
    return format_value(parse_schema(case["schema"], name="case.pg").declarations)


def catalog_of(case: Sections) -> str:
    catalog = build_catalog(parse_schema(case["schema"], name="case.pg"))
    return format_value((*catalog.interfaces.values(), *catalog.entities()))


def plan_of(case: Sections) -> str:
    catalog = build_catalog(parse_schema(case["schema"], name="case.pg"))
    if "desired" in case:
        migration = plan_migration(catalog, parse_schema(case["desired"], name="desired.pg"))
        return "\n".join([f"supported: {migration.supported}", *map(str, migration.steps)])
    counts = [line.split() for line in case.get("counts", "").splitlines()]
    ir = require_read(compile_query(case["query"], catalog, source_name="case.gq"))
    plan = make_plan(ir, catalog, Statistics({table: int(rows) for table, rows in counts}))
    return format_plan(plan) + ("\n(a point read)" if plan.is_point else "")


def ir_of(case: Sections) -> str:
    catalog = build_catalog(parse_schema(case["schema"], name="case.pg"))
    return format_ir(compile_query(case["query"], catalog, source_name="case.gq").ir)


def rows_of(case: Sections) -> str:
    """The rows of a query on a graph with this data, one JSON object per line."""
    params = json.loads(case.get("params", "{}"))
    data = [json.loads(line) for line in case["data"].splitlines()]
    with (
        TemporaryDirectory() as folder,
        og.init(Path(folder) / "graph", schema=case["schema"], durability="process") as graph,
    ):
        graph.load(data, mode="overwrite")
        if "mutation" in case:
            graph.mutate(case["mutation"], params=params)
            params = {}
        rows = graph.query(case["query"], params=params).rows() if "query" in case else []
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def error_of(case: Sections) -> str:
    answers = {"data": rows_of, "query": ir_of, "desired": plan_of, "schema": catalog_of}
    answer = next(answers[name] for name in answers if name in case)
    try:
        answer(case)
    except OmnigraphError as error:
        return error.render()
    return "(no error)"


def findings_of(case: Sections) -> str:
    """What lint says of the file, then of each of its queries."""
    catalog = build_catalog(parse_schema(case["schema"], name="case.pg"))
    report = lint(catalog, case["query"], query_path="case.gq", schema_source={"kind": "case"})
    lines = [f"{each.severity} {each.code}: {each.message}" for each in report.findings]
    for each in report.results:
        lines += [] if each.error is None else [f"query '{each.name}' cannot run: {each.error}"]
        lines += [f"query '{each.name}': {warning}" for warning in each.warnings]
    return "\n".join(lines) or "(no findings)"


ANSWERS: dict[str, Callable[[Sections], str]] = {
    "tree": tree_of,
    "catalog": catalog_of,
    "plan": plan_of,
    "ir": ir_of,
    "rows": rows_of,
    "findings": findings_of,
    "error": error_of,
}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.relative_to(GOLDEN).as_posix())
def test_case(path: Path) -> None:
    """The answers in the file are the answers that Omnigraph gives."""
    case = read_case(path)
    answers = {name: f"{ANSWERS[name](case).rstrip()}\n" for name in case if name in ANSWERS}
    assert answers, f"{path.name} has no answer section"

    if os.environ.get("OMNIGRAPH_GOLDEN") == "write":
        write_case(path, case | answers)
        return

    assert {name: case[name] for name in answers} == answers


@pytest.mark.parametrize(("folder", "least"), [("plan", 25), ("run", 15)])
def test_there_are_cases(folder: str, least: int) -> None:
    assert len(list((GOLDEN / folder).glob("*.case"))) >= least
