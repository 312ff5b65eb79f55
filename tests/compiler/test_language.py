"""What `omnigraph language` lists is all there is: words of the grammars, calls, types, codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import omnigraph.syntax
from omnigraph import compile_query
from omnigraph.compiler.functions import FUNCTIONS, describe_function
from omnigraph.compiler.language import Language, describe_language
from omnigraph.errors import TypeCheckError
from omnigraph.syntax.words import spell
from omnigraph.types import Scalar
from tests.cli.running import run
from tests.compiler.papers import catalog

GRAMMARS = Path(omnigraph.syntax.__file__).parent


@pytest.fixture(scope="module")
def language() -> Language:
    return describe_language()


def words_in(grammar: str) -> set[str]:
    """Every word that a terminal of a grammar file begins with, read from its text alone."""
    terminals = re.findall(r"(?m)^_?[A-Z0-9_]+(?:\.\d)?: /(.*)/$", (GRAMMARS / grammar).read_text())
    plain = (re.sub(r"\\s[*+]", " ", terminal.partition("(?")[0]) for terminal in terminals)
    return {word for text in plain if "[" not in text for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize(("grammar", "file"), [("query.lark", "gq"), ("schema.lark", "pg")])
def test_every_word_of_a_grammar_is_listed(language: Language, grammar: str, file: str) -> None:
    listed = {
        *language.to_json()["keywords"][file],
        *(each.name for each in language.annotations if each.file == file),
        *(each.name for each in language.functions),
        *(each.name for each in language.types),
    }

    assert words_in(grammar) <= listed
    assert {*language.to_json()["keywords"][file]} <= words_in(grammar)


def test_every_function_of_the_checker_is_listed(language: Language) -> None:
    listed = {each.name for each in language.functions}

    with pytest.raises(TypeCheckError) as caught:
        compile_query("query q() { match { $p: Paper  xyzzy() = 1 } return { $p } }", catalog())

    hint = str(caught.value.hint).removeprefix("there are ")
    assert set(hint.split(", ")) <= listed
    assert {"count", "collect", "now", "nearest", "rrf"} <= listed


def test_a_signature_says_what_the_checker_takes(language: Language) -> None:
    """As many arguments as it lists compile or fail by type; one more is refused by number."""
    for name, function in FUNCTIONS.items():
        most = len(function.parameters) + len(function.more)
        assert describe_function(name).arguments.count(",") + 1 == most
        too_many = ", ".join(["$p.year"] * (most + 1))
        if name != "date":  # the grammar takes one argument
            source = (
                f"query q() {{ match {{ $p: Paper  {name}({too_many}) = 1 }} return {{ $p }} }}"
            )
            with pytest.raises(TypeCheckError, match=f"{name} takes"):
                compile_query(source, catalog())


def test_results_are_types_of_the_language() -> None:
    assert describe_function("abs").result == "I64 or F64"
    assert describe_function("length").result == "I64"
    assert describe_function("date").result == "Date"
    assert describe_function("days").result == "duration"


def test_every_type_is_listed(language: Language) -> None:
    assert [each.name for each in language.types] == [*Scalar, "enum"]


def test_words_are_read_from_patterns() -> None:
    assert list(spell(r"(asc|desc)(?![A-Za-z0-9_])(?!\s*:)")) == ["asc", "desc"]
    assert list(spell(r"is\s+(not\s+)?null(?!\s*:)")) == ["is null", "is not null"]
    assert list(spell(r"case(?=\s+when(?![A-Za-z0-9_]))")) == ["case"]
    assert list(spell(r"@\s*(key|check)(?=\s*\()")) == ["@key", "@check"]
    assert list(spell(r"[a-z_][A-Za-z0-9_]*(?=\s*\()")) == []


def test_the_plain_form_has_the_same_entries(language: Language) -> None:
    printed = run("language").out

    for function in language.functions:
        assert f"  {function.signature} → {function.result}: {function.doc}" in printed
    for each in language.codes:
        assert f"  {each.code} ({each.severity}): " in printed
