"""Tables: the parser of a grammar as data, so that no program works it out or needs Lark to parse.

Lark reads the grammars and works out the tables; grammar.py runs them. `python -m
omnigraph.syntax.tables` (`make tables`) writes them beside the grammars. Tables of another text
are not used: they are then made anew, which takes longer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

GRAMMARS = tuple(Path(__file__).with_name(name) for name in ("query.lark", "schema.lark"))
_LISTS = ("terminals", "rules", "states")


class Terminal(NamedTuple):
    """A kind of token. `starts` are the characters it can begin with; None: any."""

    name: str
    pattern: str
    starts: str | None


class Rule(NamedTuple):
    """A rule of a grammar, as the parser reduces it.

    `children` are the symbols that are kept, each with whether its own children take its place and
    how many absent ones come before it; `absent` are those at the end. `is_transparent`: a single
    child takes the place of the node. `action` is the method of the builder, None for a list.
    """

    origin: str
    length: int
    action: str | None
    is_transparent: bool
    children: Sequence[tuple[int, bool, int]]
    absent: int


class Tables(NamedTuple):
    """The parser of a grammar. A state is written as `SYMBOL number` for each symbol: the state
    behind it, or the rule to reduce, counted from -1 downwards."""

    made_of: str
    start: int
    end: int
    ignored: Sequence[str]
    terminals: Sequence[Terminal]
    rules: Sequence[Rule]
    states: Sequence[str]


def load_tables(grammar: Path) -> Tables:
    """The tables of a grammar file: those beside it if they are made of this text."""
    text = grammar.read_text("utf-8")
    tables = read_tables(grammar)
    if tables is not None and tables.made_of == name_source(text):
        return tables
    return make_tables(text)


def read_tables(grammar: Path) -> Tables | None:
    """What is written of a grammar."""
    try:
        written = json.loads(_tables_path(grammar).read_text("utf-8"))
    except FileNotFoundError:
        return None
    written["terminals"] = [Terminal(*each) for each in written["terminals"]]
    written["rules"] = [Rule(*each) for each in written["rules"]]
    return Tables(**written)


def write_tables(grammar: Path) -> None:
    """Write the tables of a grammar as it is now."""
    tables = make_tables(grammar.read_text("utf-8"))._asdict()
    # One terminal, rule or state a line.
    lists = {name: "[\n" + ",\n".join(map(_to_json, tables[name])) + "\n]" for name in _LISTS}
    facts = {name: _to_json(value) for name, value in tables.items()} | lists
    written = ",\n".join(f"{_to_json(name)}: {value}" for name, value in facts.items())
    _tables_path(grammar).write_text(f"{{\n{written}\n}}\n", "utf-8")


def name_source(grammar: str) -> str:
    """What tables are made of."""
    return sha256(grammar.encode()).hexdigest()


def make_tables(text: str) -> Tables:
    """Work out the parser of a grammar, by Lark."""
    from lark import Lark

    parser: Any = Lark(text, parser="lalr", lexer="contextual").parser
    table = parser.parser._parse_table
    number = {rule: place for place, rule in enumerate(parser.parser_conf.rules)}
    return Tables(
        made_of=name_source(text),
        start=table.start_states["start"],
        end=table.end_states["start"],
        ignored=sorted(parser.lexer_conf.ignore),
        terminals=_list_terminals(parser.lexer_conf),
        rules=[_read_rule(rule) for rule in number],
        states=[_write_state(table.states[state], number) for state in range(len(table.states))],
    )


def _list_terminals(settings: Any) -> list[Terminal]:
    """Those that are tried first, first: in the order of Lark."""
    from lark.lexer import BasicLexer

    lexer: Any = BasicLexer(settings)
    lexer._build_scanner()
    assert not lexer.callback, f"text that is also matched by a pattern: {lexer.callback}"
    patterns = [(each.name, each.pattern.to_regexp()) for each in lexer.terminals]
    return [Terminal(name, pattern, list_starts(pattern)) for name, pattern in patterns]


def _read_rule(rule: Any) -> Rule:
    """What Lark does with the children of a rule, as data."""
    name, symbols = rule.origin.name, rule.expansion
    # One mark per symbol, and one per optional part that this form of the rule leaves out.
    is_absent = rule.options.empty_indices or [False] * len(symbols)
    children, place, absent = [], 0, 0
    for is_left_out in is_absent:
        if is_left_out:
            absent += 1
            continue
        symbol = symbols[place]
        if not (symbol.is_term and symbol.filter_out):
            is_spread = not symbol.is_term and symbol.name.startswith("_")
            children.append((place, is_spread, absent))
            absent = 0
        place += 1
    action = rule.alias or (None if name.startswith("_") else name)
    is_transparent = bool(rule.options.expand1 and not rule.alias)
    return Rule(name, len(symbols), action, is_transparent, children, absent)


def _write_state(state: Mapping[str, Any], number: Mapping[Any, int]) -> str:
    """A shift names the next state, a reduction its rule."""
    targets = ((symbol, target) for symbol, (_, target) in state.items())
    return " ".join(
        f"{symbol} {target if isinstance(target, int) else ~number[target]}"
        for symbol, target in targets
    )


def list_starts(pattern: str) -> str | None:
    """The characters that a match of a pattern can begin with; None where they are not listed."""
    parsed: Any = re._parser.parse(pattern)
    starts, can_be_empty = _starts_of(parsed)
    return None if starts is None or can_be_empty else "".join(sorted(starts))


def _starts_of(items: Iterable[Any]) -> tuple[set[str] | None, bool]:
    """The characters that a sequence can begin with, and whether it can be empty."""
    found: set[str] = set()
    for kind, value in items:
        starts, can_be_empty = _starts_of_item(str(kind), value)
        if starts is None:
            return None, False
        found |= starts
        if not can_be_empty:
            return found, False
    return found, True


def _starts_of_item(kind: str, value: Any) -> tuple[set[str] | None, bool]:
    match kind:
        case "LITERAL":
            return {chr(value)}, False
        case "IN" if all(str(each) in ("LITERAL", "RANGE") for each, _ in value):
            bounds = [each if isinstance(each, tuple) else (each, each) for _, each in value]
            return {chr(n) for low, high in bounds for n in range(low, high + 1)}, False
        case "MAX_REPEAT" | "POSSESSIVE_REPEAT":
            starts, can_be_empty = _starts_of(value[2])
            return starts, can_be_empty or value[0] == 0
        case "SUBPATTERN":
            return _starts_of(value[3])
        case "BRANCH":
            each = [_starts_of(items) for items in value[1]]
            if any(starts is None for starts, _ in each):
                return None, False
            starts = {character for starts, _ in each for character in starts or ()}
            return starts, any(can_be_empty for _, can_be_empty in each)
    return None, False


def _to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _tables_path(grammar: Path) -> Path:
    return grammar.with_suffix(".tables.json")


if __name__ == "__main__":
    for each in GRAMMARS:
        write_tables(each)
