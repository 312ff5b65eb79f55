"""Tables: the parsers that are shipped are those of the grammars, and parse as Lark does."""

from __future__ import annotations

import json
import random
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import lark
import pytest

from omnigraph.errors import ParseError
from omnigraph.syntax.grammar import Grammar, Rejected, load_grammar, run_grammar
from omnigraph.syntax.query_builder import QueryBuilder
from omnigraph.syntax.schema_builder import SchemaBuilder
from omnigraph.syntax.source import admit
from omnigraph.syntax.tables import (
    GRAMMARS,
    list_starts,
    load_tables,
    name_source,
    read_tables,
    write_tables,
)
from tests.depth import depth
from tests.syntax.test_fuzz import QUERIES, SCHEMAS, mutate

CONFORMANCE = Path(__file__).parents[1] / "conformance"
BUILDERS: dict[str, Any] = {"query.lark": QueryBuilder(), "schema.lark": SchemaBuilder()}
MUTANTS = depth(500, 50_000)


@pytest.fixture
def grammar(tmp_path: Path) -> Path:
    """A grammar that has tables."""
    path = tmp_path / "small.lark"
    path.write_text('start: a+\na: "a"\n', "utf-8")
    write_tables(path)
    return path


class Small:
    """The builder of the small grammar."""

    start = len

    def a(self, children: list[Any]) -> str:
        return "a"


def parse_small(grammar: Path, text: str) -> Any:
    return run_grammar(Grammar(load_tables(grammar), Small()), text)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda path: path.name)
def test_the_tables_are_those_of_the_grammar(grammar: Path) -> None:
    tables = read_tables(grammar)

    assert tables is not None
    assert tables.made_of == name_source(grammar.read_text("utf-8")), "run `make tables`"


def test_tables_spare_building(grammar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lark.Lark.__init__", None)

    assert parse_small(grammar, "aaa") == 3


def test_a_grammar_without_tables_is_built(grammar: Path) -> None:
    grammar.with_suffix(".tables.json").unlink()

    assert parse_small(grammar, "aaa") == 3


def test_tables_of_another_grammar_are_not_used(grammar: Path) -> None:
    grammar.write_text('start: a+\na: "a" | "b"\n', "utf-8")

    assert parse_small(grammar, "ab") == 2


@pytest.mark.parametrize(
    ("pattern", "starts"),
    [
        ("in(?!x)", "i"),
        ("(asc|desc)", "ad"),
        (r"(all\s+)?shortest", "as"),
        ("[0-2x]++y", "012x"),
        ("a*", None),
        ("[^a]", None),
        (r"\w", None),
        (".", None),
        ("(?=a)a", None),
    ],
)
def test_the_starts_of_a_pattern_are_all_there_are(pattern: str, starts: str | None) -> None:
    assert list_starts(pattern) == starts


@cache
def build_with_lark(file_name: str) -> lark.Lark:
    text = resources.files("omnigraph.syntax").joinpath(file_name).read_text("utf-8")
    return lark.Lark(text, parser="lalr", lexer="contextual", transformer=BUILDERS[file_name])


def run_lark(file_name: str, text: str) -> Any:
    """What Lark makes of a text: the tree, or where it stops."""
    try:
        return build_with_lark(file_name).parse(text)
    except lark.UnexpectedEOF:
        return len(text)
    except lark.UnexpectedInput as failure:
        token = getattr(failure, "token", None)
        return len(text) if token is not None and token.type == "$END" else failure.pos_in_stream
    except ParseError as error:
        return error.message, error.span


def run_tables(file_name: str, text: str) -> Any:
    try:
        return run_grammar(load_grammar(file_name, BUILDERS[file_name]), text)
    except Rejected as rejected:
        return rejected.offset
    except ParseError as error:
        return error.message, error.span


def read_texts(field: str) -> list[str]:
    """Every text of a language in the conformance files."""
    lines = [
        line
        for file in CONFORMANCE.glob("*.jsonl")
        for line in file.read_text("utf-8").splitlines()
    ]
    return sorted({case[field] for case in map(json.loads, lines) if case.get(field)})


def list_corpus(file_name: str) -> list[str]:
    name, own = ("query", QUERIES) if file_name == "query.lark" else ("schema", SCHEMAS)
    return [*read_texts(name), *own]


@pytest.mark.slow
@pytest.mark.parametrize("file_name", BUILDERS)
def test_the_tables_parse_as_lark_does(file_name: str) -> None:
    """The same tree, the same complaint of the builder, or the same place where it stops."""
    chance = random.Random(7)
    corpus = list_corpus(file_name)
    texts = corpus + [mutate(chance, corpus) for _ in range(MUTANTS)]
    seen = {"trees": 0, "stops": 0, "complaints": 0}

    for text in texts:
        try:
            text = admit(text)
        except ParseError:
            continue
        answer = run_tables(file_name, text)

        assert answer == run_lark(file_name, text), text
        is_stop = isinstance(answer, int)
        is_tree = not is_stop and not (answer and isinstance(answer[0], str))
        seen["stops" if is_stop else "trees" if is_tree else "complaints"] += 1

    assert min(seen.values()) > 0, seen
