"""The grammars that editors colour with know every word of the language, and colour it as one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.compiler.language import Language, describe_language
from omnigraph.syntax.grammar import load_grammar
from omnigraph.syntax.parse_query import QUERY_PARSER
from omnigraph.syntax.parse_schema import SCHEMA_PARSER
from omnigraph.syntax.parser import Parser
from omnigraph.syntax.source import admit
from tests.depth import sample
from tests.docs_blocks import ROOT
from tests.editors.textmate import Scopes, TextMate
from tests.test_conformance import CASES

EXTENSION = ROOT / "editors" / "vscode"
GQ = TextMate(EXTENSION / "syntaxes" / "gq.tmLanguage.json")
PG = TextMate(EXTENSION / "syntaxes" / "pg.tmLanguage.json")
QUERIES = sorted({case["query"] for case in CASES if case["kind"] in ("read", "mutate")})
SCHEMAS = sorted({case["schema"] for case in CASES if "schema" in case and "error" not in case})
NAMED = {
    "VAR": "variable.other",
    "STRING": "string.",
    "INT": "constant.numeric",
    "FLOAT": "constant.numeric",
    "TYPE_NAME": "entity.name.type",
    "BASE_TYPE": "support.type",
    "VECTOR": "support.type",
    "ENUM": "support.type",
    "ENUM_VALUE": "variable.other.enummember",
    "FUNCTION": "support.function",
    "QUERY_ANNOTATION": "storage.modifier",
    "CONSTRAINT_NAME": "storage.modifier",
    "CARD": "storage.modifier",
    "INDEX_NAME": "storage.modifier",
}
"""The scope that each kind of token has; words are looked up by what they are."""


@pytest.fixture(scope="module")
def language() -> Language:
    return describe_language()


def words_of(grammar: TextMate) -> set[str]:
    """Every word that a grammar spells out."""
    plain = (re.sub(r"\\.|\[[^\]]*\]", " ", each) for each in grammar.list_patterns())
    return {word for text in plain for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text)}


def tokens_of(parser: Parser, text: str) -> Iterator[tuple[str, int, str]]:
    """The kind, the place and the text of each token, as the parser itself sees them."""
    grammar = load_grammar(parser.grammar_file, parser.builder)
    stack = [grammar.tables.start]
    values: list[Any] = []
    for place, kind, token in grammar.lex(admit(text), stack):
        assert grammar.feed(kind, token, stack, values), f"{text[place:]!r} does not fit"
        if token:
            yield kind, place, str(token)


def wrong_scopes(parser: Parser, text: str, scopes: Scopes) -> list[str]:
    """Every token whose first character has another scope than its kind asks for."""
    words = parser.list_words()
    wrong = []
    for kind, at, token in tokens_of(parser, text):
        expected: tuple[str, ...] = (NAMED.get(kind, ""),)
        if kind in words.phrases and kind not in NAMED:
            first = token.split()[0]
            is_call = first in words.calls
            expected = ("support.function",) if is_call else ("keyword.", "constant.language")
        if not scopes[at].startswith(expected):
            wrong.append(f"{token!r} ({kind}) is {scopes[at]!r} in {text!r}")
        if kind == "IDENT" and _is_property(text, at, token):
            assert ".property." in scopes[at], f"{token!r} is {scopes[at]!r} in {text!r}"
    return wrong


def _is_property(text: str, at: int, token: str) -> bool:
    behind = text[at + len(token) :].lstrip(" ")
    return text[:at].rstrip().endswith(".") or behind.startswith(":")


@pytest.mark.parametrize("text", sample(QUERIES, 6))
def test_the_words_of_a_query_are_coloured_as_what_they_are(text: str) -> None:
    assert wrong_scopes(QUERY_PARSER, text, GQ.scope(text)) == []


@pytest.mark.parametrize("text", sample(SCHEMAS, 6))
def test_the_words_of_a_schema_are_coloured_as_what_they_are(text: str) -> None:
    assert wrong_scopes(SCHEMA_PARSER, text, PG.scope(text)) == []


def test_every_word_of_the_language_is_in_its_grammar(language: Language) -> None:
    scalars = {each.name for each in language.types}
    annotations = {(each.file, each.name) for each in language.annotations}

    assert {*language.keywords["gq"], *(each.name for each in language.functions)} <= words_of(GQ)
    assert {*language.keywords["pg"], *scalars} <= words_of(PG)
    assert scalars - {"enum"} <= words_of(GQ)
    for file, name in annotations:
        assert name in words_of(GQ if file == "gq" else PG)


def test_no_grammar_knows_a_word_that_the_language_does_not(language: Language) -> None:
    known = {
        *language.keywords["gq"],
        *language.keywords["pg"],
        *(each.name for each in language.functions),
        *(each.name for each in language.types),
        *(each.name for each in language.annotations),
    }

    assert words_of(GQ) | words_of(PG) <= known


@pytest.mark.parametrize(
    ("text", "word", "scope"),
    [
        ('query q() { insert A { or: 1, end: "x" } }', "or", "variable.other.property.gq"),
        ("query q() { match { $s.date = $d } return { $s } }", "date", "variable.other.property"),
        ("query q() { match { $a <or> $b } return { $a } }", "or", "entity.name.tag.gq"),
        ("// match\nquery q() {}", "match", "comment.line"),
        ("/* match\n or */ query q() {}", "or", "comment.block"),
        ('query q() { insert A { a: "x or y" } }', "or", "string.quoted"),
        ('query q() { insert A { a: "x\\"or" } }', "or", "string.quoted"),
        ("query q() { match { not\n{ $a: A } } }", "not", "keyword.control"),
    ],
)
def test_a_word_that_is_no_keyword_here_is_none(text: str, word: str, scope: str) -> None:
    found = re.search(rf"\b{word}\b", text)

    assert found is not None
    assert GQ.scope(text)[found.start()].startswith(scope)


def test_the_extension_names_files_that_are_there() -> None:
    package = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    contributed = package["contributes"]
    paths = [
        package["main"],
        *(each["configuration"] for each in contributed["languages"]),
        *(each["path"] for each in contributed["grammars"]),
    ]

    assert all((EXTENSION / path).is_file() for path in paths)
    for each in contributed["grammars"]:
        grammar = TextMate(EXTENSION / Path(each["path"])).grammar
        assert grammar["scopeName"] == each["scopeName"]
