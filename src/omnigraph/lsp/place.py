"""Place: what stands at a position of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.compiler.functions import list_functions
from omnigraph.dataclass import dataclass
from omnigraph.lsp.outline import Owner, Variable, list_variables
from omnigraph.lsp.scan import Token, find_opening, find_query, scan, token_index, without_comments


@dataclass(frozen=True, slots=True)
class VariablePlace:
    variable: Variable


@dataclass(frozen=True, slots=True)
class PropertyPlace:
    """A property of a type; of a row or an object, `owner` is None and `type` that of the field."""

    owner: Owner | None
    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class TypePlace:
    """The name of a node type, an edge type or an interface, as the schema spells it.

    A node and an edge may share one; `is_edge` says which is meant where that is known.
    """

    name: str
    is_edge: bool = False


@dataclass(frozen=True, slots=True)
class FunctionPlace:
    name: str


@dataclass(frozen=True, slots=True)
class AnnotationPlace:
    name: str


Place: TypeAlias = VariablePlace | PropertyPlace | TypePlace | FunctionPlace | AnnotationPlace


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The tokens of the query around a position, without comments, and its variables."""

    tokens: Sequence[Token]
    variables: dict[str, Variable]
    catalog: Catalog | None

    def find_owner(self, before: int) -> Owner | None:
        """The type whose properties are bare words at a place: by what opens the braces there."""
        opening = find_opening(self.tokens, before)
        condition = self._find_where(before, 0 if opening is None else opening + 1)
        if condition is not None:
            return self._owner_before(condition)
        if opening is None or not self.tokens[opening].is_symbol("{"):
            return None
        head = self.tokens[opening - 1] if opening else None
        if head is None:
            return None
        if head.is_word("set"):
            return self._named(self.tokens[opening - 2]) if opening > 1 else None
        return self._named(head) if head.kind in ("type", "variable") else None

    def _find_where(self, before: int, start: int) -> int | None:
        """The `where` that a place is behind, in the same braces."""
        for n in range(before - 1, start - 1, -1):
            if self.tokens[n].is_symbol("{", "}") or self.tokens[n].is_word("as", "return"):
                return None
            if self.tokens[n].is_word("where"):
                return n
        return None

    def _owner_before(self, where: int) -> Owner | None:
        """The type of `update T set { … } where`, `delete T where`, `edge{1,3 where`."""
        opening = find_opening(self.tokens, where)
        for n in range(where - 1, -1, -1):
            token = self.tokens[n]
            if token.is_word("update", "delete") and n + 1 < len(self.tokens):
                return self._named(self.tokens[n + 1])
            if n == opening and n > 0 and self.catalog is not None:
                edge = self.tokens[n - 1] if not self.tokens[n - 1].is_symbol(">") else None
                edge = edge or self.tokens[n - 2]
                return self.catalog.edge(edge.text) if edge.kind == "word" else None
        return None

    def _named(self, token: Token) -> Owner | None:
        if token.kind == "variable":
            found = self.variables.get(token.name)
            return None if found is None else found.owner
        return None if self.catalog is None else find_type(self.catalog, token.text)


def find_type(catalog: Catalog, name: str, *, is_edge: bool = False) -> Owner | None:
    """The type of exactly this name; a node before an edge, unless it is an edge."""
    if is_edge:
        return catalog.edges.get(name)
    return catalog.nodes.get(name) or catalog.interfaces.get(name) or catalog.edges.get(name)


def look_around(text: str, offset: int, catalog: Catalog | None) -> Surroundings:
    """The query that an offset is in."""
    query = find_query(text, offset)
    start, end = (0, len(text)) if query is None else (query.start, query.end)
    # Offsets are those of the whole text.
    tokens = [
        Token(each.kind, each.text, each.start + start)
        for each in without_comments(scan(text[start:end]))
    ]
    return Surroundings(tokens, list_variables(tokens, catalog), catalog)


def find_place(text: str, offset: int, catalog: Catalog | None) -> tuple[Place, Token] | None:
    """What stands at an offset of a `.gq` text, and the token it is; None for anything else."""
    around = look_around(text, offset, catalog)
    at = token_index(around.tokens, offset)
    if at is None:
        return None
    token = around.tokens[at]
    place = _place(around, at)
    return None if place is None else (place, token)


def _place(around: Surroundings, at: int) -> Place | None:
    token, tokens = around.tokens[at], around.tokens
    match token.kind:
        case "variable":
            variable = around.variables.get(token.name)
            return None if variable is None else VariablePlace(variable)
        case "type":
            return TypePlace(token.text)
        case "annotation":
            return AnnotationPlace(token.name)
        case "word" if at >= 2 and tokens[at - 1].is_symbol("."):
            return _property_of(around, tokens[at - 2], token.text)
        case "word":
            return _word(around, at)
        case _:
            return None


def _property_of(around: Surroundings, variable: Token, name: str) -> PropertyPlace | None:
    found = around.variables.get(variable.name)
    if found is None:
        return None
    declared = dict(found.fields).get(name)
    if found.owner is None and declared is None:
        return None
    return PropertyPlace(found.owner, name, declared or "")


def _word(around: Surroundings, at: int) -> Place | None:
    tokens, name = around.tokens, around.tokens[at].text
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if following is not None and following.is_symbol("(") and name in list_functions():
        return FunctionPlace(name)
    owner = around.find_owner(at)
    if owner is not None and name in (*owner.properties, "from", "to"):
        is_end = isinstance(owner, EdgeType) and name not in owner.properties
        return TypePlace(owner.name, is_edge=True) if is_end else PropertyPlace(owner, name)
    edge = around.catalog.edge(name) if around.catalog is not None else None
    if edge is not None and _is_traversed(tokens, at):
        return TypePlace(edge.name, is_edge=True)
    return None


def _is_traversed(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word stands where the edge of a traversal does."""
    before = tokens[at - 1] if at else None
    return before is not None and (
        before.kind == "variable" or before.is_symbol(":", "<") or before.is_word("shortest")
    )
