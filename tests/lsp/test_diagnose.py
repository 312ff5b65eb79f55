"""Diagnostics: everything that is wrong, exactly where it is, by its code."""

from __future__ import annotations

import pytest

from omnigraph.lsp.diagnose import Diagnostic, diagnose_queries, diagnose_schema
from tests.docs_blocks import named_schema

GOOD = "query good() { match { $b: Book } return { $b.title } }\n"
TYPO = "query typo() { match { $b: Book } return { $b.titel } }\n"


def diagnose(text: str) -> list[tuple[str, str | None, str]]:
    """The severity, the code and the text under each diagnostic."""
    return [
        (found.severity, found.code, text[found.span.start : found.span.end])
        for found in diagnose_queries(text, named_schema("library"))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, []),
        (TYPO, [("error", "T6", "titel")]),
        (TYPO + TYPO.replace("typo", "other"), [("error", "T6", "titel")] * 2),
        ("query q() { match { $b: Bok } return { $b } }", [("error", "T1", "Bok")]),
        ("query q() { match { $b: Book } retrun { $b } }", [("error", "Q000", "retrun")]),
        ("query q() { match { $b: Book } return { $b } order { x } }", [("error", "T31", "x")]),
        (
            "query q() { update Book set { year: 1 } where isbn = \"1\" }",
            [("warning", None, "q"), *[("warning", "L201", "q")] * 5],
        ),
        (
            'query q($i: String) { update Book set { isbn: "2" } where isbn = $i }',
            [("error", "L302", "q")],
        ),
        (GOOD + GOOD, [("warning", None, "good")]),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_where_it_is(text: str, expected: list[tuple[str, str, str]]) -> None:
    found = diagnose(text)

    assert [each for each in found if each in expected] == expected
    assert {severity for severity, *_ in found} <= {severity for severity, *_ in expected}


def test_a_query_that_is_being_typed_hides_nothing_of_the_others() -> None:
    text = TYPO + "query half() { match { $b:\n" + TYPO.replace("typo", "after") + "query x( {"

    found = diagnose(text)

    assert [code for _, code, _ in found] == ["Q000", "T6", "T6", "Q000"]
    assert [under for *_, under in found][1:3] == ["titel", "titel"]


def test_without_a_schema_only_the_syntax_is_checked() -> None:
    assert diagnose_queries(TYPO, None) == []
    assert [each.code for each in diagnose_queries("query q( {", None)] == ["Q000"]


def test_a_message_has_its_hint_and_not_its_code_twice() -> None:
    (found,) = diagnose_queries(TYPO, named_schema("library"))

    assert found.message == "Book has no property `titel`\ndid you mean `title`?"


@pytest.mark.parametrize(
    ("text", "under"),
    [
        ("node A { slug: Strng @key }", "Strng"),
        ("node A { slug: String @key }\nedge E: A -> B", "B"),
        ("node A { year: I32 @range(yaer, 0..1) }", "yaer"),
    ],
)
def test_a_schema_is_diagnosed(text: str, under: str) -> None:
    (found,) = diagnose_schema(text)

    assert text[found.span.start : found.span.end] == under
    assert found.severity == "error"
    assert isinstance(found, Diagnostic)


def test_a_good_schema_has_no_diagnostics() -> None:
    assert diagnose_schema("node A { slug: String @key }") == []
