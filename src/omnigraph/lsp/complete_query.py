"""Completion of `.gq` texts."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.compiler.check_traversals import fits
from omnigraph.compiler.functions import FUNCTIONS, SPECIAL, list_functions
from omnigraph.compiler.language import TYPE_FORMS
from omnigraph.dataclass import dataclass
from omnigraph.lsp.complete import (
    Completion,
    Item,
    Typing,
    gather,
    list_keywords,
    make_function,
    read_typing,
)
from omnigraph.lsp.hover import describe_edge, describe_property, describe_variable
from omnigraph.lsp.outline import Owner, Variable
from omnigraph.lsp.place import Surroundings, look_around
from omnigraph.lsp.scan import Token, find_opening, find_query
from omnigraph.syntax.parse_query import QUERY_PARSER

_EDGE = "an edge name"


def complete_query(text: str, offset: int, catalog: Catalog | None) -> Completion:
    """What may be written at an offset of a `.gq` text."""
    query = find_query(text, offset)
    typing = read_typing(text, query.start if query else 0, offset, QUERY_PARSER)
    if typing is None:
        return Completion(offset)
    around = look_around(text, offset, catalog)
    before = [token for token in around.tokens if token.end <= typing.start]
    return gather(typing, _Suggestions(typing, around, before, catalog).list_items())


@dataclass(frozen=True, slots=True)
class _Suggestions:
    typing: Typing
    around: Surroundings
    before: list[Token]
    """The tokens before the word that is being typed."""
    catalog: Catalog | None

    def list_items(self) -> Iterator[Item]:
        if self._follows("."):
            yield from self._properties_of_variable()
            return
        # Before a name follows, the parser takes `shortest` for the name of an edge itself.
        is_searched = bool(self.before) and self.before[-1].is_word("shortest")
        if is_searched or self.typing.expects_name(_EDGE):
            yield from self._edges()
        yield from self._properties()
        if self.typing.expects("VAR"):
            yield from map(_variable, self.around.variables.values())
        if self.typing.expects("TYPE_NAME"):
            yield from self._types()
        if self.typing.expects("BASE_TYPE"):
            types = TYPE_FORMS.items()
            yield from (Item(scalar.value, "type", doc=doc) for scalar, (_, doc) in types)
        yield from list_keywords(self.typing, QUERY_PARSER)
        yield from map(make_function, self._functions())
        if self.typing.expects("QUERY_ANNOTATION"):
            names = QUERY_PARSER.list_words().annotations
            yield from (Item(f"@{name}", "annotation") for name in names)

    def _follows(self, symbol: str) -> bool:
        return bool(self.before) and self.before[-1].is_symbol(symbol)

    def _properties_of_variable(self) -> Iterator[Item]:
        variable = self._variable_before(2)
        if variable is None:
            return
        yield from (Item(name, "property", declared) for name, declared in variable.fields)
        if variable.owner is not None:
            yield from _properties(variable.owner)
            if isinstance(variable.owner, EdgeType):
                yield Item("id", "property", "String")

    def _variable_before(self, back: int) -> Variable | None:
        if len(self.before) < back or self.before[-back].kind != "variable":
            return None
        return self.around.variables.get(self.before[-back].name)

    def _edges(self) -> Iterator[Item]:
        """The edges of the node that a traversal begins at, those that leave it first."""
        if self.catalog is None:
            return
        start = next((token for token in reversed(self.before) if token.kind == "variable"), None)
        if start is not None and self._follows(":"):
            names = [token for token in self.before if token.kind == "variable"]
            start = names[-2] if len(names) > 1 else None
        found = None if start is None else self.around.variables.get(start.name)
        owner = None if found is None else found.owner
        for edge in sorted(self.catalog.edges.values(), key=lambda each: _rank(each, owner)):
            if owner is None or self._touches(edge, owner):
                yield Item(edge.name[0].lower() + edge.name[1:], "edge", describe_edge(edge))

    def _touches(self, edge: EdgeType, owner: Owner) -> bool:
        if isinstance(owner, EdgeType) or self.catalog is None:
            return False
        return any(fits(owner, end, self.catalog) for end in (edge.source, edge.target))

    def _properties(self) -> Iterator[Item]:
        """Properties as bare words: of the type whose braces or condition these are."""
        if not self.typing.expects("IDENT") or self.typing.expects_name(_EDGE):
            return
        if self._is_in("order", "having"):
            yield from self._aliases()
        owner = self.around.find_owner(len(self.before))
        if owner is None:
            return
        yield from _properties(owner)
        if isinstance(owner, EdgeType):
            yield from (Item(end, "property", "String") for end in ("from", "to"))

    def _is_in(self, *clauses: str) -> bool:
        """Whether the braces around are those of one of these clauses."""
        opening = find_opening(self.before, len(self.before))
        return bool(opening) and self.before[(opening or 0) - 1].is_word(*clauses)

    def _aliases(self) -> Iterator[Item]:
        for token, name in zip(self.before, self.before[1:], strict=False):
            if token.is_word("as") and name.kind == "word":
                yield Item(name.text, "property", "alias")

    def _types(self) -> Iterator[Item]:
        if self.catalog is None:
            return
        is_written = bool(self.before) and self.before[-1].is_word(
            "insert", "upsert", "update", "delete"
        )
        yield from (Item(name, "class", "node") for name in self.catalog.nodes)
        if is_written:
            yield from (Item(name, "class", "edge") for name in self.catalog.edges)
        else:
            yield from (Item(name, "class", "interface") for name in self.catalog.interfaces)

    def _functions(self) -> Iterator[str]:
        if self.typing.expected is None:
            yield from list_functions()
            return
        words = QUERY_PARSER.list_words()
        for terminal in self.typing.expected:
            yield from (word for word in words.phrases.get(terminal, ()) if word in words.calls)
        if "FUNCTION" in self.typing.expected:
            yield from sorted({*FUNCTIONS, *SPECIAL})


def _variable(variable: Variable) -> Item:
    return Item(f"${variable.name}", "variable", describe_variable(variable))


def _properties(owner: Owner) -> Iterator[Item]:
    for found in owner.properties.values():
        detail = describe_property(owner, found)
        yield Item(found.name, "property", detail, found.description or "")


def _rank(edge: EdgeType, owner: Owner | None) -> tuple[bool, str]:
    return owner is not None and edge.source != owner.name, edge.name
