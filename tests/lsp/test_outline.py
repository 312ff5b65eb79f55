"""What is told from tokens alone is what the checker finds, and no text is too broken for it."""

from __future__ import annotations

from functools import cache

import pytest

from omnigraph import Catalog, build_catalog, parse_query, parse_schema
from omnigraph.compiler.check_file import check_file
from omnigraph.compiler.typed import TypedPattern, TypedRead
from omnigraph.ir.query import PATH
from omnigraph.lsp.complete_query import complete_query
from omnigraph.lsp.complete_schema import complete_schema
from omnigraph.lsp.define import define_in_query, define_in_schema
from omnigraph.lsp.diagnose import diagnose_queries, diagnose_schema
from omnigraph.lsp.hover import hover_query, hover_schema
from omnigraph.lsp.place import look_around
from tests.depth import depth, sample
from tests.test_conformance import CASES, Case

READS = [case for case in CASES if case["kind"] == "read" and "error" not in case]


@cache
def build(schema: str) -> Catalog:
    return build_catalog(parse_schema(schema))


def types_of(pattern: TypedPattern) -> dict[str, str]:
    """The variables that a pattern introduces, inner blocks too."""
    found = dict((*pattern.nodes, *pattern.edges))
    inner = [*pattern.negations, *pattern.optionals]
    for block in (*inner, *(each for either in pattern.eithers for each in either.alternatives)):
        found = types_of(block) | found
    return found


@pytest.mark.parametrize("case", sample(READS, 4), ids=lambda case: case["id"])
def test_variables_have_the_types_that_the_checker_gives_them(case: Case) -> None:
    catalog = build(case["schema"])
    for checked in check_file(parse_query(case["query"]).queries, catalog):
        if not isinstance(checked.typed, TypedRead):
            continue
        around = look_around(case["query"], checked.query.span.start, catalog)
        for part in (checked.typed.pattern, *(each.pattern for each in checked.typed.stages)):
            for name, expected in types_of(part).items():
                told = around.variables[name]
                if name.startswith("#"):
                    continue
                if expected == PATH:
                    assert told.kind == "path"
                else:
                    types = catalog.types_of(told.type) or (told.type,)
                    assert expected == told.type or expected in types, name


TEXTS = [case["query"] for case in sample(READS, 60)]


@pytest.mark.parametrize("text", TEXTS[: depth(4, 60)])
def test_no_beginning_of_a_query_is_too_short_to_be_asked_about(text: str) -> None:
    """Every feature answers at every position of a text that is being typed."""
    catalog = build(READS[0]["schema"])
    for end in range(0, len(text) + 1, depth(7, 1)):
        typed = text[:end]
        complete_query(typed, end, catalog)
        hover_query(typed, max(0, end - 1), catalog)
        define_in_query(typed, max(0, end - 1), catalog, None)
        diagnose_queries(typed, catalog)


def test_no_beginning_of_a_schema_is_too_short_to_be_asked_about() -> None:
    text = READS[-1]["schema"]
    for end in range(0, len(text) + 1, depth(17, 1)):
        complete_schema(text[:end], end)
        hover_schema(text[:end], end, None)
        define_in_schema(text[:end], end, None)
        diagnose_schema(text[:end])


@pytest.mark.parametrize(
    "text", ["$", "$.", "query", "query q(", "{" * 200, '"', "/*", "\x00", "🐙$", "@"]
)
def test_odd_texts_are_answered(text: str) -> None:
    catalog = build(READS[0]["schema"])

    complete_query(text, len(text), catalog)
    hover_query(text, 0, catalog)
    assert diagnose_queries(text, catalog)
