"""Errors say what is so, where, and what to do next."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph import errors
from omnigraph.errors import ExpectedVersionMismatch, OmnigraphError, TypeCheckError, did_you_mean
from omnigraph.source_text import SourceText, Span

TEXT = "query q() {\n    match { $p: Person }\n    return { $p.nmae }\n}\n"


def test_an_error_says_where_callers_import_it_from() -> None:
    """Spark quotes this name, and a pickle finds the class by it."""
    kinds = [getattr(errors, name) for name in errors.__all__]
    found = {each.__module__ for each in kinds if isinstance(each, type)}

    assert found == {"omnigraph.errors"}


def test_a_source_error_shows_its_line_with_a_caret_and_a_hint() -> None:
    start = TEXT.index("nmae")
    error = TypeCheckError(
        "Person has no property `nmae`",
        code="T6",
        span=Span(start, start + 4),
        hint="did you mean `name`?",
    ).with_source(SourceText("people.gq", TEXT))

    assert error.render() == (
        "type error: T6: Person has no property `nmae`\n"
        " --> people.gq:3:17\n"
        "  |\n"
        "3 |     return { $p.nmae }\n"
        "  |                 ^^^^ did you mean `name`?"
    )
    assert error.location == (3, 17)
    assert error.__notes__ == [error.render().partition("\n")[2]]


def test_a_byte_span_counts_bytes_and_is_never_empty() -> None:
    error = TypeCheckError("x", span=Span(2, 2)).with_source(SourceText("q.gq", "é$x"))

    assert error.byte_span == (3, 4)


def test_the_first_text_attached_stays() -> None:
    """A wrapper that attaches its own text cannot hide where the error really is."""
    error = TypeCheckError("x", span=Span(0, 1)).with_source(SourceText("inner.gq", "a"))

    error.with_source(SourceText("outer.gq", "b"))

    assert error.source is not None
    assert error.source.name == "inner.gq"


@given(st.text(), st.integers(0, 50), st.integers(0, 50))
def test_any_span_of_any_text_can_be_excerpted(text: str, start: int, length: int) -> None:
    error = TypeCheckError("x", span=Span(start, start + length))

    assert "x" in error.with_source(SourceText("q.gq", text)).render()


def test_a_stale_write_names_the_table_and_both_versions() -> None:
    error = ExpectedVersionMismatch("node:Person", expected=7, actual=9)

    assert str(error) == (
        "stale view of 'node:Person': expected manifest table version 7 "
        "but current is 9 — refresh and retry"
    )
    assert (error.table_key, error.expected, error.actual) == ("node:Person", 7, 9)


@pytest.mark.parametrize(
    ("wrong", "known", "hint"),
    [
        ("nmae", ["name", "age"], "did you mean `name`?"),
        ("PERSON", ["Person"], "did you mean `Person`?"),
        ("zzz", ["name"], None),
        ("x", [], None),
    ],
)
def test_a_near_miss_is_suggested(wrong: str, known: list[str], hint: str | None) -> None:
    assert did_you_mean(wrong, known) == hint


def test_every_error_has_a_kind_and_a_status() -> None:
    """Servers map errors by these two; one that forgot them would be a silent 500."""
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, OmnigraphError)
    ]

    assert {error.http_status for error in classes} <= {400, 403, 404, 409, 410, 412, 413, 500, 503}
    assert all(
        error.kind != "internal"
        for error in classes
        if error.__mro__[1] is OmnigraphError and error.__name__ != "SourceError"
    )


@pytest.mark.parametrize(
    "error",
    [
        errors.ExpectedVersionMismatch("node:Person", expected=3, actual=5),
        errors.BranchNotFound("dev", ["main", "dve"]),
        errors.RevisionNotFound("dev", ["main"]),
        errors.RemoteNotFound("east", ["origin"]),
        errors.RecoveryRequired("reopen it", operation_id="01J"),
        errors.ParseError("no", span=Span(3, 4), hint="try that").with_source(
            SourceText("q.gq", "abc def")
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_keeps_its_attributes_when_pickled(error: OmnigraphError) -> None:
    crossed = pickle.loads(pickle.dumps(error))

    assert type(crossed) is type(error)
    assert crossed.args == error.args
    assert vars(crossed) == vars(error)
    assert crossed.render() == error.render()
