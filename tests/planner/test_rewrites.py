"""Every rewrite shows the plan before and after it in its file, and that is what it does."""

from __future__ import annotations

import re
import sys
from textwrap import dedent

import pytest

from omnigraph import build_catalog, compile_query, parse_schema
from omnigraph import planner as package
from omnigraph.compiler import require_read
from omnigraph.planner import Plan, Statistics, format_plan
from omnigraph.planner.make_plan import REWRITES
from omnigraph.planner.plan import Rewrite
from omnigraph.planner.read_pipeline import read_pipeline

SCHEMA = "\n".join(re.findall(r"(?m)^    (?:node|edge) .*$", str(package.__doc__)))
CATALOG = build_catalog(parse_schema(SCHEMA))
COUNTS = Statistics(
    {
        "node:Person": 100_000,
        "node:Town": 50,
        "edge:Knows": 1_000_000,
        "edge:LivesIn": 100_000,
    }
)


def section(document: str, name: str, following: str) -> str:
    found = re.search(rf"(?ms)^ *{name}\n(.*?)(?={following})", document)
    assert found is not None, f"no {name!r} in the docstring"
    return dedent(found.group(1)).strip()


def first_plan(document: str) -> Plan:
    query = re.search(r"(?m)^ *(match .*)$", document)
    assert query is not None
    return read_pipeline(require_read(compile_query(f"query q() {{ {query.group(1)} }}", CATALOG)))


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda each: each.__name__)
def test_a_rewrite_does_what_its_example_shows(rewrite: Rewrite) -> None:
    document = str(sys.modules[rewrite.__module__].__doc__)
    plan = first_plan(document)
    for earlier in REWRITES[: REWRITES.index(rewrite)]:
        plan = earlier(plan, CATALOG, COUNTS)

    assert format_plan(plan) == section(document, "before", "^ *after\n")
    after = rewrite(plan, CATALOG, COUNTS)
    assert format_plan(after) == section(document, "after", r"\Z")
    assert after != plan


def test_the_first_plan_is_the_pipeline() -> None:
    document = str(sys.modules[read_pipeline.__module__].__doc__)
    shown = section(document, r"match [^\n]*", r"\n\n\S")

    assert format_plan(first_plan(document)) == shown
