"""Golden cases: schema, query and the exact answer in one readable file.

A case is sections that start with `--- name`. The inputs are `schema`, `desired` and `query`; the
other sections are answers: `tree`, `catalog`, `plan`, `ir`, `error`. `make golden` rewrites the
answers, and the diff is the review.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph import build_catalog, compile_query, parse_query, parse_schema, plan_migration
from omnigraph.errors import OmnigraphError
from omnigraph.ir import format_ir
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
    accepted = build_catalog(parse_schema(case["schema"], name="case.pg"))
    plan = plan_migration(accepted, parse_schema(case["desired"], name="desired.pg"))
    return "\n".join([f"supported: {plan.supported}", *map(str, plan.steps)])


def ir_of(case: Sections) -> str:
    catalog = build_catalog(parse_schema(case["schema"], name="case.pg"))
    return format_ir(compile_query(case["query"], catalog, source_name="case.gq").ir)


def error_of(case: Sections) -> str:
    needed = ir_of if "query" in case else plan_of if "desired" in case else catalog_of
    try:
        needed(case)
    except OmnigraphError as error:
        return error.render()
    return "(no error)"


ANSWERS: dict[str, Callable[[Sections], str]] = {
    "tree": tree_of,
    "catalog": catalog_of,
    "plan": plan_of,
    "ir": ir_of,
    "error": error_of,
}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.relative_to(GOLDEN).as_posix())
def test_case(path: Path) -> None:
    """The answers in the file are the answers of the compiler."""
    case = read_case(path)
    answers = {name: f"{ANSWERS[name](case).rstrip()}\n" for name in case if name in ANSWERS}
    assert answers, f"{path.name} has no answer section"

    if os.environ.get("OMNIGRAPH_GOLDEN") == "write":
        write_case(path, case | answers)
        return

    assert {name: case[name] for name in answers} == answers


def test_there_are_cases() -> None:
    assert len(CASES) >= 30
