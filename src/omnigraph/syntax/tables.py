"""Tables: the parser of a grammar as data, so that a program does not work it out when it starts.

`python -m omnigraph.syntax.tables` (`make tables`) writes them beside the grammars. Tables made of
another text or by another Lark are not used: the parser is then built, which takes longer.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

GRAMMARS = tuple(Path(__file__).with_name(name) for name in ("query.lark", "schema.lark"))


def load_parser(grammar: Path, builder: object) -> Lark:
    """The parser of a grammar file; its rules call the methods of `builder`."""
    text = grammar.read_text("utf-8")
    tables = read_tables(grammar)
    if tables.get("made_of") != name_sources(text):
        return _build(text, builder)
    load: Any = Lark._load_from_dict
    parser: Lark = load(tables["data"], tables["memo"], transformer=builder)
    return parser


def read_tables(grammar: Path) -> dict[str, Any]:
    """What is written of a grammar; nothing when there is none."""
    try:
        text = _tables_path(grammar).read_text("utf-8")
    except FileNotFoundError:
        return {}
    tables: dict[str, Any] = json.loads(text, object_hook=_restore_numbers)
    return tables


def write_tables(grammar: Path) -> None:
    """Write the tables of a grammar as it is now."""
    text = grammar.read_text("utf-8")
    data, memo = _build(text, None).memo_serialize([TerminalDef, Rule])
    tables = {"made_of": name_sources(text), "data": data, "memo": memo}
    # One state of the parser a line.
    written = json.dumps(tables, separators=(",", ":")).replace("},", "},\n")
    _tables_path(grammar).write_text(written + "\n", "utf-8")


def _build(text: str, builder: object) -> Lark:
    return Lark(text, parser="lalr", lexer="contextual", transformer=builder)


def name_sources(grammar: str) -> str:
    """What tables are made of."""
    return f"lark {lark.__version__}, grammar {sha256(grammar.encode()).hexdigest()}"


def _restore_numbers(table: dict[str, Any]) -> dict[Any, Any]:
    """A table that was keyed by numbers: JSON keeps them as text."""
    if next(iter(table), "").isdigit():
        return {int(key): value for key, value in table.items()}
    return table


def _tables_path(grammar: Path) -> Path:
    return grammar.with_suffix(".tables.json")


if __name__ == "__main__":
    for each in GRAMMARS:
        write_tables(each)
