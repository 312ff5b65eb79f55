"""Tables: the parsers that are shipped are those of the grammars, and others are not used."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest

from omnigraph.syntax.tables import GRAMMARS, load_parser, name_sources, read_tables, write_tables


@pytest.fixture
def grammar(tmp_path: Path) -> Path:
    """A grammar that has tables."""
    path = tmp_path / "small.lark"
    path.write_text('start: "a"+\n', "utf-8")
    write_tables(path)
    return path


def is_built(grammar: Path) -> bool:
    """Whether loading the parser worked it out from the grammar."""
    parser = load_parser(grammar, None)
    assert parser.parse("aa").data == "start"
    return parser.source_path != "<deserialized>"


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda path: path.name)
def test_the_tables_are_those_of_the_grammar(grammar: Path) -> None:
    sources = name_sources(grammar.read_text("utf-8"))

    assert read_tables(grammar)["made_of"] == sources, "run `make tables`"


def test_tables_spare_building(grammar: Path) -> None:
    assert not is_built(grammar)


def test_a_grammar_without_tables_is_built(grammar: Path) -> None:
    grammar.with_suffix(".tables.json").unlink()

    assert is_built(grammar)


def test_tables_of_another_grammar_are_not_used(grammar: Path) -> None:
    grammar.write_text('start: "a"+ "b"?\n', "utf-8")

    assert is_built(grammar)
    assert load_parser(grammar, None).parse("ab").data == "start"


def test_tables_of_another_lark_are_not_used(
    grammar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lark, "__version__", "0")

    assert is_built(grammar)
