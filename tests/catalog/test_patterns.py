"""The dialect of `@check`, which schema validation and write validation share."""

from __future__ import annotations

import pytest

from omnigraph.catalog import compile_pattern
from omnigraph.errors import ParseError


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("b", "abc"),
        ("^[a-z0-9]+(-[a-z0-9]+)*$", "machine-learning"),
        (r"^10\.\d{4,}/", "10.1000/xyz"),
        (r"[(?=]", "="),
        (r"[]\1]", "]"),
        (r"\(\?=", "(?="),
        (r"\\1", r"\1"),
        ("(?i)ADA", "Ada"),
        ("(?P<year>[0-9]+)", "in 1843"),
        ("(?:a|b)+", "xxab"),
    ],
)
def test_a_pattern_is_searched_for_anywhere(pattern: str, text: str) -> None:
    assert compile_pattern(pattern).search(text)


@pytest.mark.parametrize(
    ("pattern", "fragment"),
    [
        (r"(a)\1", "backreference"),
        (r"(?P<x>a)(?P=x)", "backreference"),
        (r"(a)?(?(1)b|c)", "backreference"),
        ("a(?=b)", "lookaround"),
        ("a(?!b)", "lookaround"),
        ("(?<=a)b", "lookaround"),
        ("(?<!a)b", "lookaround"),
        (r"\\(a)\1", "backreference"),
        ("[[:alpha:]]", "character class"),
        ("(", "invalid regex"),
        ("a{99999999999}", "repeats or nests too far"),
    ],
)
def test_a_pattern_outside_the_dialect_is_refused(pattern: str, fragment: str) -> None:
    with pytest.raises(ParseError) as caught:
        compile_pattern(pattern)

    assert "invalid regex" in caught.value.message
    assert fragment in caught.value.message
