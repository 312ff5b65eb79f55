"""Outline: the variables of one query, as far as its tokens tell.

A checked query knows more, but a query is rarely right while it is being typed. Bindings say their
type; traversals pass it on by the rules of `check_traversals.py`. Blocks are not told apart: a name
is taken to mean the same everywhere in a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Literal, TypeAlias

from omnigraph.catalog.model import Catalog, EdgeType, InterfaceType, NodeType
from omnigraph.compiler.check_traversals import fits
from omnigraph.dataclass import dataclass
from omnigraph.lsp.scan import Token, find_closing
from omnigraph.source_text import Span

Owner: TypeAlias = NodeType | EdgeType | InterfaceType
VariableKind: TypeAlias = Literal["parameter", "node", "edge", "path", "score", "row", "unknown"]


@dataclass(frozen=True, slots=True)
class Variable:
    """`type` is how it is spelled; `span` where the name is introduced; `fields` those of a row."""

    name: str
    kind: VariableKind
    span: Span
    type: str = ""
    owner: Owner | None = None
    fields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """A traversal: its ends, its edge, and the variable of what is followed."""

    left: Token
    right: Token
    edge: EdgeType
    bound: Token | None
    is_path: bool


@dataclass(slots=True)
class _Reader:
    tokens: Sequence[Token]
    catalog: Catalog | None
    found: dict[str, Variable] = field(default_factory=dict)

    def read(self) -> dict[str, Variable]:
        opening = next((n for n, each in enumerate(self.tokens) if each.is_symbol("(")), None)
        body = 0 if opening is None else find_closing(self.tokens, opening)
        if opening is not None:
            self._read_params(opening + 1, body)
        self._read_bindings(body)
        # As the checker does: the clauses of a block in their order, then those of inner blocks.
        for _, step in sorted(self._steps(body), key=lambda each: each[0]):
            self._follow(step)
        self._read_labels(body)
        for token in self.tokens[body:]:
            if token.kind == "variable" and token.name not in ("", "_"):
                self._add(Variable(token.name, "unknown", token.span))
        return self.found

    def _add(self, variable: Variable) -> None:
        self.found.setdefault(variable.name, variable)

    def _read_params(self, start: int, end: int) -> None:
        n = start
        while n < end:
            token = self.tokens[n]
            if token.kind == "variable" and self._is_at(n + 1, ":"):
                last = self._end_of_type(n + 2, end)
                words = self.tokens[n + 2 : last]
                fields = tuple(_read_fields(words))
                self._add(
                    Variable(token.name, "parameter", token.span, _spell(words), fields=fields)
                )
                n = last
            n += 1

    def _end_of_type(self, start: int, end: int) -> int:
        """Where a type ends: before `,`, `=` or what closes the parameters."""
        n = start
        while n < end and not self.tokens[n].is_symbol(",", "="):
            n = find_closing(self.tokens, n) if self.tokens[n].is_symbol("{", "[", "(") else n
            n += 1
        return min(n, end)

    def _is_at(self, n: int, symbol: str) -> bool:
        return n < len(self.tokens) and self.tokens[n].is_symbol(symbol)

    def _read_bindings(self, start: int) -> None:
        for n in range(start, len(self.tokens) - 2):
            token, type_name = self.tokens[n], self.tokens[n + 2]
            if token.kind != "variable" or not self._is_at(n + 1, ":") or type_name.kind != "type":
                continue
            owner = self._node(type_name.text)
            self._add(Variable(token.name, "node", token.span, type_name.text, owner))

    def _node(self, name: str) -> NodeType | InterfaceType | None:
        if self.catalog is None:
            return None
        return self.catalog.nodes.get(name) or self.catalog.interfaces.get(name)

    def _steps(self, start: int) -> Iterator[tuple[int, _Step]]:
        """Every traversal, with how deep in braces it stands."""
        depth = 0
        for n, token in enumerate(self.tokens[start:], start):
            depth += token.is_symbol("{") - token.is_symbol("}")
            if token.kind == "variable":
                step = self._read_step(n)
                if step is not None:
                    yield depth, step

    def _read_step(self, start: int) -> _Step | None:
        """`$left [$bound:] [all] [shortest] edge [{…}] [by weight] $right`, if that stands here."""
        n, bound = start + 1, None
        if n < len(self.tokens) and self.tokens[n].kind == "variable" and self._is_at(n + 1, ":"):
            bound, n = self.tokens[n], n + 2
        is_path = False
        while n + 1 < len(self.tokens) and self.tokens[n].is_word("all", "shortest"):
            if self.tokens[n + 1].kind == "variable":
                break  # An edge of that name.
            is_path, n = True, n + 1
        is_open = self._is_at(n, "<")
        n += is_open
        if n >= len(self.tokens) or self.tokens[n].kind != "word" or self.catalog is None:
            return None
        edge, n = self.catalog.edge(self.tokens[n].text), n + 1 + is_open
        if self._is_at(n, "{"):
            is_path = is_path or self._is_wide(n)
            n = find_closing(self.tokens, n) + 1
        if n < len(self.tokens) and self.tokens[n].is_word("by"):
            n += 2
        if edge is None or n >= len(self.tokens) or self.tokens[n].kind != "variable":
            return None
        return _Step(self.tokens[start], self.tokens[n], edge, bound, is_path)

    def _is_wide(self, opening: int) -> bool:
        """Whether bounds are those of a path: `{1,1}` and `{where …}` are of one edge."""
        bounds = [each.text for each in self.tokens[opening + 1 : opening + 5]]
        return bounds[:1] != ["where"] and bounds[:3] != ["1", ",", "1"]

    def _type_of(self, token: Token) -> NodeType | InterfaceType | None:
        found = self.found.get(token.name)
        owner = None if found is None else found.owner
        return None if isinstance(owner, EdgeType) else owner

    def _follow(self, step: _Step) -> None:
        assert self.catalog is not None
        left, right = self._type_of(step.left), self._type_of(step.right)
        source, target = step.edge.source, step.edge.target
        if left is not None:
            is_forward = fits(left, source, self.catalog)
        else:
            is_forward = right is None or fits(right, target, self.catalog)
        for token, name in zip(
            (step.left, step.right),
            (source, target) if is_forward else (target, source),
            strict=True,
        ):
            if token.name not in ("", "_"):
                self._add(Variable(token.name, "node", token.span, name, self._node(name)))
        if step.bound is not None and step.is_path:
            self._add(Variable(step.bound.name, "path", step.bound.span, step.edge.name))
        elif step.bound is not None:
            edge = step.edge
            self._add(Variable(step.bound.name, "edge", step.bound.span, edge.name, edge))

    def _read_labels(self, start: int) -> None:
        """`top … as $score`, `insert T … as $x`, `for $row in $rows`."""
        about: Token | None = None
        for n, token in enumerate(self.tokens[start:], start):
            following = self.tokens[n + 1] if n + 1 < len(self.tokens) else None
            if token.is_word("top", "insert", "upsert", "update", "delete") and following:
                about = token if token.text == "top" else following
            elif token.is_word("as") and about and following and following.kind == "variable":
                self._add(self._label(following, about))
            elif token.is_word("for") and following and following.kind == "variable":
                rows = self.tokens[n + 3] if n + 3 < len(self.tokens) else None
                given = self.found.get(rows.name) if rows is not None else None
                fields = () if given is None else given.fields
                self._add(Variable(following.name, "row", following.span, "row", fields=fields))

    def _label(self, token: Token, about: Token) -> Variable:
        if about.text == "top":
            return Variable(token.name, "score", token.span, "score")
        owner: Owner | None = self._node(about.text)
        if owner is None and self.catalog is not None:
            owner = self.catalog.edges.get(about.text)
        kind: VariableKind = "edge" if isinstance(owner, EdgeType) else "node"
        return Variable(token.name, kind, token.span, about.text, owner)


def list_variables(tokens: Sequence[Token], catalog: Catalog | None) -> dict[str, Variable]:
    """The variables of the query that these tokens are, parameters first, by name."""
    return _Reader(tokens, catalog).read()


def _read_fields(words: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """The fields of `{ name: Type, … }`, in a list or not."""
    names = [
        n
        for n, token in enumerate(words[:-1])
        if token.kind == "word" and words[n + 1].is_symbol(":")
    ]
    for n, following in pairwise([*names, len(words)]):
        parts = [each for each in words[n + 2 : following] if not each.is_symbol(",", "}")]
        yield words[n].text, _spell(parts)


def _spell(words: Sequence[Token]) -> str:
    text = " ".join(token.text for token in words)
    for tight in ("( ", "[ "):
        text = text.replace(tight, tight[0])
    for tight in (" )", " ]", " ?", " ,", " :", " ("):
        text = text.replace(tight, tight[1])
    return text
