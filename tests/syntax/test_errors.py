"""What a person reads when a text is wrong: errors.txt holds texts and the exact answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnigraph.errors import ParseError
from omnigraph.syntax import parse_query, parse_schema

CASES = re.findall(
    r"^==== ([^\n]*)\n(.*?)\n----\n(.*?)\n(?=\n====|\Z)",
    Path(__file__).with_name("errors.txt").read_text("utf-8"),
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize(("file_name", "text", "answer"), CASES)
def test_the_error_says_what_is_wrong_and_what_to_do(
    file_name: str, text: str, answer: str
) -> None:
    parse = parse_schema if file_name.endswith(".pg") else parse_query

    with pytest.raises(ParseError) as refused:
        parse(text, file_name)

    assert refused.value.render() == answer


def test_every_case_was_found() -> None:
    assert len(CASES) >= 40


def test_the_error_has_its_span_and_source() -> None:
    text = "// é\nquery q() {\n  match { $p Cites $c }\n}"

    with pytest.raises(ParseError) as refused:
        parse_query(text, "people.gq")

    error = refused.value
    assert error.span is not None
    assert text[error.span.start : error.span.end] == "Cites"
    assert error.location == (3, 14)
    assert error.byte_span == (31, 36)
    assert error.source is not None
    assert (error.source.name, error.source.text) == ("people.gq", text)
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_the_string_found_is_shown_short_and_on_one_line() -> None:
    with pytest.raises(ParseError) as refused:
        parse_query('"' + "long\n" * 100 + '"')

    assert str(refused.value) == (
        'parse error: expected `query` but found `"long long long long long long long long…`'
    )
