"""`@check` patterns mean what `re` says, whichever engine searches."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omnigraph.catalog.patterns import compile_pattern
from omnigraph.errors import ParseError
from omnigraph.write.matching import find_matches, to_re2
from tests.depth import depth

_TEXTS = ["", "abc", "ABC", "ABC\n", "ABC\n\n", "a1", "a١", "é", "é9", "a b", "a\u00a0b", "a\x1cb"]
_TEXTS += ["x@y.org", "a\x00b", "-", "]", "^", "a\vb", "İ", "ſ", "𝄞", "\n", "aa", "_", "a.b"]

_ATOMS = st.sampled_from(
    [
        *("a", "b", "é", "1", "-", "_", " ", ".", "𝄞", "\x00", "^", "(?:)"),
        *(
            r"\d",
            r"\D",
            r"\w",
            r"\W",
            r"\s",
            r"\S",
            r"\.",
            r"\-",
            r"\n",
            r"\t",
            r"\A",
            r"\Z",
            r"\@",
        ),
        *("[ab]", "[^ab]", "[a-z]", r"[\d-]", r"[^\w]", r"[\s.]", "[^@]", r"[\]^]", "[a^]"),
        *(r"[+\-*]", "[é-ü]", "[-a]", "[a-c-e]", "[^^]"),
    ]
)
_REPEATED = st.tuples(
    _ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{1,}", "{0,2}"])
).map("".join)
_PATTERNS = st.recursive(
    st.lists(_REPEATED, min_size=1, max_size=4).map("".join),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("|".join),
        inner.map(lambda body: f"({body})+"),
        inner.map(lambda body: f"(?:{body})?"),
    ),
    max_leaves=3,
)


@pytest.mark.slow
@settings(max_examples=depth(100, 1_000), deadline=None)
@given(_PATTERNS, st.sampled_from(["", "$"]), st.lists(st.text("ab1é\n _-@.١𝄞\x1c", max_size=6)))
def test_both_engines_find_the_same(pattern: str, end: str, texts: list[str]) -> None:
    pattern += end
    try:
        compiled = compile_pattern(pattern)
    except ParseError:
        assume(False)
    every = [*_TEXTS, *texts]

    verdicts = find_matches(pattern, pa.array(every, pa.utf8())).to_pylist()

    assert verdicts == [compiled.search(text) is not None for text in every]


@pytest.mark.parametrize(
    "pattern", ["^[A-Z]{3}$", r"^\d+$", r"^[^@\s]+@[\w.-]+$", "a|b", r"^(?:x|y)*\Z", r"\W"]
)
def test_ordinary_patterns_are_searched_in_linear_time(pattern: str) -> None:
    assert to_re2(pattern) is not None


@pytest.mark.parametrize(
    "pattern", [r"\bword\b", "(?i)abc", "a{,2}", r"\x41", "[]a]", "a$b", "(?P<n>a)", "a{1001}"]
)
def test_a_pattern_without_an_equal_is_searched_by_re(pattern: str) -> None:
    texts = [*_TEXTS, "word", "sword", "aa", "A", "a" * 1001]

    verdicts = find_matches(pattern, pa.array(texts)).to_pylist()

    assert verdicts == [re.search(pattern, text) is not None for text in texts]


def test_a_hostile_text_does_not_stall_an_ordinary_pattern() -> None:
    """By backtracking this search would not end before the suite's timeout."""
    assert find_matches("^(a+)+$", pa.array(["a" * 5000 + "!"])).to_pylist() == [False]


def test_null_is_neither_found_nor_missed() -> None:
    assert find_matches("a", pa.array(["a", None, "b"])).to_pylist() == [True, None, False]
    assert find_matches(r"\ba", pa.array(["a", None, "b"])).to_pylist() == [True, None, False]


def test_a_malformed_pattern_says_so() -> None:
    with pytest.raises(ParseError, match="invalid regex"):
        find_matches("(", pa.array(["a"]))
