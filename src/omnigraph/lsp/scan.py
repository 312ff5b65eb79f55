"""Scan: the tokens of a text, and where its queries begin. No text is wrong here.

While a query is being typed the parser knows only that it stops somewhere; tokens are always there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.source_text import Span

TokenKind: TypeAlias = Literal[
    "comment", "string", "variable", "annotation", "type", "word", "number", "symbol"
]

_TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/)? )
    | (?P<string> "[^"\\]*+(?:\\.[^"\\]*+)*+"? )
    | (?P<variable> \$[A-Za-z0-9_]*+ )
    | (?P<annotation> @[ \t]*+[A-Za-z0-9_]*+ )
    | (?P<type> [A-Z][A-Za-z0-9_]*+ )
    | (?P<word> [a-z_][A-Za-z0-9_]*+ )
    | (?P<number> [0-9]++(?:\.[0-9]++)? )
    | (?P<symbol> >=|<=|!=|->|\.\.|\S )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def name(self) -> str:
        """The text without the `$` of a variable or the `@` of an annotation."""
        return self.text.lstrip("$@ \t")

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind == "symbol" and self.text in symbols


def scan(text: str) -> list[Token]:
    """Every token of a text, comments too."""
    return [
        Token(match.lastgroup, match[0], match.start())  # type: ignore[arg-type]
        for match in _TOKEN.finditer(text)
    ]


def without_comments(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.kind != "comment"]


def find_queries(text: str) -> list[Span]:
    """Where each query begins and the next one does, whatever is open in between."""
    tokens = without_comments(scan(text))
    starts = [
        token.start
        for token, name, parenthesis in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if token.is_word("query") and name.kind == "word" and parenthesis.is_symbol("(")
    ]
    return [Span(start, end) for start, end in pairwise([*starts, len(text)])]


def find_query(text: str, offset: int) -> Span | None:
    """The query that an offset is in."""
    queries = find_queries(text)
    at = bisect_right([each.start for each in queries], offset) - 1
    return queries[at] if at >= 0 else None


def token_index(tokens: Sequence[Token], offset: int) -> int | None:
    """The place of the token at an offset; of two that meet there the one that is a name."""
    touching = [n for n, each in enumerate(tokens) if each.start <= offset <= each.end]
    return min(touching, key=lambda n: (tokens[n].kind == "symbol", n), default=None)


def find_opening(tokens: Sequence[Token], before: int) -> int | None:
    """The place of the bracket that is open before the token at a place."""
    depth = 0
    for n in range(before - 1, -1, -1):
        if tokens[n].is_symbol(")", "]", "}"):
            depth += 1
        elif tokens[n].is_symbol("(", "[", "{"):
            if depth == 0:
                return n
            depth -= 1
    return None


def find_closing(tokens: Sequence[Token], opening: int) -> int:
    """The place of the bracket that closes the one at a place; behind all when none does."""
    depth = 0
    for n in range(opening, len(tokens)):
        if tokens[n].is_symbol("(", "[", "{"):
            depth += 1
        elif tokens[n].is_symbol(")", "]", "}"):
            depth -= 1
            if depth == 0:
                return n
    return len(tokens)
