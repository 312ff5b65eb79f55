"""Grammar: run the tables of a grammar over a text, and list what could have stood where it failed.

An LALR parser whose lexer knows the state of the parser: where a word is a name, it is no keyword.
The tables are loaded on first use, then kept. A failure comes out as `Rejected`, which
unexpected.py turns into an error.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.syntax.tables import Rule, Tables

_BUILDING = threading.Lock()
_END = "$END"


class Rejected(Exception):
    """The text stops following the grammar at character `offset`.

    `expected` maps each terminal that could stand there to the parser state it would lead to.
    """

    def __init__(self, offset: int, expected: Mapping[str, int]) -> None:
        super().__init__(offset)
        self.offset = offset
        self.expected = expected


class Token(str):
    """A piece of a text, which knows where it stands."""

    __slots__ = ("end_pos", "start_pos")
    start_pos: int
    end_pos: int

    @classmethod
    def at(cls, text: str, start: int, end: int) -> Token:
        """A token with its place."""
        token = cls(text)
        token.start_pos, token.end_pos = start, end
        return token

    @property
    def value(self) -> str:
        """The text alone."""
        return str(self)


class Grammar:
    """The parser of one language; its rules call the methods of a builder. Threads may share it."""

    def __init__(self, tables: Tables, builder: object) -> None:
        self.tables = tables
        self._reduce = [make_reduction(rule, builder) for rule in tables.rules]
        self._skip = re.compile("|".join(self.list_patterns()[each] for each in tables.ignored))
        self._states: dict[int, dict[str, int]] = {}
        self._tried: dict[tuple[int, str], list[tuple[str, re.Pattern[str]]]] = {}

    def list_patterns(self) -> dict[str, str]:
        """The regular expression of every terminal."""
        return {each.name: each.pattern for each in self.tables.terminals}

    def state(self, number: int) -> dict[str, int]:
        """What each symbol leads to: the state behind it, or the rule to reduce as `~number`."""
        state = self._states.get(number)
        if state is None:
            words = self.tables.states[number].split()
            state = dict(zip(words[::2], map(int, words[1::2]), strict=True))
            self._states[number] = state
        return state

    def lex(self, text: str, stack: list[int]) -> Iterator[tuple[int, str, Token]]:
        """Each token with its place and kind: the first terminal that matches where it stands.

        The last one is the end; before it, one without a kind where nothing matches.
        """
        place, end = 0, len(text)
        while True:
            if blank := self._skip.match(text, place):
                place = blank.end()
            if place == end:
                yield place, _END, Token()
                return
            for kind, pattern in self._tried_at(stack[-1], text[place]):
                match = pattern.match(text, place)
                if match is not None:
                    yield place, kind, Token.at(match[0], place, match.end())
                    place = match.end()
                    break
            else:
                yield place, "", Token()
                return

    def _tried_at(self, state: int, character: str) -> list[tuple[str, re.Pattern[str]]]:
        tried = self._tried.get((state, character))
        if tried is None:
            accepted = self.state(state)
            tried = [
                (each.name, _compile(each.pattern))
                for each in self.tables.terminals
                if each.name in accepted and (each.starts is None or character in each.starts)
            ]
            self._tried[state, character] = tried
        return tried

    def feed(self, kind: str, token: Token, stack: list[int], values: list[Any]) -> bool:
        """Take in one token, behind the rules that it completes; False when it does not fit."""
        while (target := self.state(stack[-1]).get(kind)) is not None:
            if target >= 0:
                stack.append(target)
                values.append(token)
                return True
            rule = self.tables.rules[~target]
            first = len(stack) - rule.length
            children = values[first - 1 :]
            del stack[first:], values[first - 1 :]
            values.append(self._reduce[~target](children))
            stack.append(self.state(stack[-1])[rule.origin])
            if kind == _END and stack[-1] == self.tables.end:
                return True
        return False


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def make_reduction(rule: Rule, builder: object) -> Callable[[list[Any]], Any]:
    """What becomes of the children of a rule."""
    action: Callable[[list[Any]], Any] | None = getattr(builder, rule.action or "", None)

    def reduce(children: list[Any]) -> Any:
        kept: list[Any] = []
        for place, is_spread, absent in rule.children:
            kept += [None] * absent
            if is_spread and not kept:
                # Items so far, of which this rule is the only owner: a copy for each item more
                # would make a long list cost the square of its length.
                kept = children[place]
            elif is_spread:
                kept += children[place]
            else:
                kept.append(children[place])
        kept += [None] * rule.absent
        if rule.is_transparent and len(kept) == 1:
            return kept[0]
        return kept if action is None else action(kept)

    return reduce


def load_grammar(file_name: str, builder: object) -> Grammar:
    """The parser of a grammar file; its rules call the methods of `builder`.

    One thread at a time loads one: all use the same.
    """
    with _BUILDING:
        return _load(file_name, builder)


@cache
def _load(file_name: str, builder: object) -> Grammar:
    from omnigraph.syntax.tables import load_tables

    return Grammar(load_tables(Path(__file__).with_name(file_name)), builder)


def run_grammar(grammar: Grammar, text: str) -> Any:
    """Return what the builder makes of the start rule.

    Raises:
        Rejected: The text does not follow the grammar.
    """
    stack, values = [grammar.tables.start], list[Any]()
    for place, kind, token in grammar.lex(text, stack):
        # A token that fails may first complete rules, which hides what else could have stood
        # there. Only the stack before it knows.
        before = stack.copy()
        if not grammar.feed(kind, token, stack, values):
            raise Rejected(place, dict(_acceptable(grammar, before)))
    return values[-1]


def list_starts(grammar: Grammar) -> dict[str, int]:
    """Every terminal that a text may begin with, with the state that it leads to."""
    return dict(_acceptable(grammar, [grammar.tables.start]))


def state_behind(grammar: Grammar, text: str) -> int:
    """The parser state behind the last token of `text`, the beginning of some valid text."""
    stack, values = [grammar.tables.start], list[Any]()
    for _, kind, token in grammar.lex(text, stack):
        if kind == _END:
            break
        grammar.feed(kind, token, stack, values)
    return stack[-1]


def _acceptable(grammar: Grammar, stack: list[int]) -> Iterator[tuple[str, int]]:
    """Every terminal that could really follow: LALR lookaheads alone include more."""
    for terminal in filter(str.isupper, grammar.state(stack[-1])):
        state = _shift(grammar, terminal, stack.copy())
        if state is not None:
            yield terminal, state


def _shift(grammar: Grammar, terminal: str, stack: list[int]) -> int | None:
    """The state behind `terminal` once the rules it completes are reduced, if it fits at all."""
    while (target := grammar.state(stack[-1]).get(terminal)) is not None:
        if target >= 0:
            return target
        rule = grammar.tables.rules[~target]
        del stack[len(stack) - rule.length :]
        stack.append(grammar.state(stack[-1])[rule.origin])
    return None
