"""Grammar: run a Lark grammar over a text, and list what could have stood where it failed.

Lark is imported and a grammar built on first use, then cached. Nothing of Lark leaves this package:
a failure comes out as `Rejected`, which unexpected.py turns into an error.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.collection import pause_collection

if TYPE_CHECKING:
    from lark import Lark, Token

_BUILDING = threading.Lock()


class Rejected(Exception):
    """The text stops following the grammar at character `offset`.

    `expected` maps each terminal that could stand there to the parser state it would lead to.
    """

    def __init__(self, offset: int, expected: Mapping[str, int]) -> None:
        super().__init__(offset)
        self.offset = offset
        self.expected = expected


def load_grammar(file_name: str, builder: object) -> Lark:
    """The parser of a grammar file; its rules call the methods of `builder`.

    One thread at a time builds one: building evaluates literals, and Python 3.11 mixes up the
    syntax trees of threads that do so together.
    """
    with _BUILDING:
        return _build(file_name, builder)


@cache
def _build(file_name: str, builder: object) -> Lark:
    with pause_collection():
        from omnigraph.syntax.tables import load_parser

        return load_parser(Path(__file__).with_name(file_name), builder)


def run_grammar(grammar: Lark, text: str) -> Any:
    """Return what the builder makes of the start rule.

    Raises:
        Rejected: The text does not follow the grammar.
    """
    from lark import UnexpectedInput

    parser: Any = grammar.parse_interactive(text)
    state = parser.parser_state
    stack = state.state_stack.copy()
    token: Token | None = None
    try:
        for token in parser.lexer_thread.lex(state):
            state.feed_token(token)
            # A token that fails may first complete rules, which hides what else could have stood
            # there. Only the stack before it knows.
            stack = state.state_stack.copy()
        return parser.feed_eof(token)
    except UnexpectedInput as failure:
        offset = _failure_offset(failure, end=len(text))
    raise Rejected(offset, dict(_acceptable(stack, state.parse_conf.states)))


def list_starts(grammar: Lark) -> dict[str, int]:
    """Every terminal that a text may begin with, with the state that it leads to."""
    state = grammar.parse_interactive("").parser_state
    return dict(_acceptable(state.state_stack, state.parse_conf.states))


def list_patterns(grammar: Lark) -> dict[str, str]:
    """The regular expression of every terminal."""
    return {each.name: each.pattern.value for each in grammar.terminals}


def state_behind(grammar: Lark, text: str) -> int:
    """The parser state behind the last token of `text`, the beginning of some valid text."""
    parser = grammar.parse_interactive(text)
    parser.exhaust_lexer()
    return int(parser.parser_state.position)


def _failure_offset(failure: Any, end: int) -> int:
    token = getattr(failure, "token", None)
    if token is not None and token.type == "$END":
        return end
    return int(failure.pos_in_stream)


def _acceptable(stack: list[int], states: Any) -> Iterable[tuple[str, int]]:
    """Every terminal that could really follow: LALR lookaheads alone include more."""
    for terminal in filter(str.isupper, states[stack[-1]]):
        state = _shift(terminal, stack.copy(), states)
        if state is not None:
            yield terminal, state


def _shift(terminal: str, stack: list[int], states: Any) -> int | None:
    """The state behind `terminal` once the rules it completes are reduced, if it fits at all."""
    while terminal in states[stack[-1]]:
        _, target = states[stack[-1]][terminal]
        if isinstance(target, int):  # A shift names the next state, a reduction its rule.
            return target
        del stack[len(stack) - len(target.expansion) :]
        stack.append(states[stack[-1]][target.origin.name][1])
    return None
