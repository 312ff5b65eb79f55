"""Define: where what stands at a position is declared, in the schema or in the query itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from omnigraph.catalog.model import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.lsp.outline import Owner
from omnigraph.lsp.place import (
    AnnotationPlace,
    FunctionPlace,
    PropertyPlace,
    TypePlace,
    VariablePlace,
    find_place,
)
from omnigraph.lsp.scan import scan, token_index
from omnigraph.source_text import Span
from omnigraph.syntax.schema_tree import Declaration, EdgeDecl, SchemaTree


@dataclass(frozen=True, slots=True)
class Definition:
    """A span of the schema, or of the text that was asked about."""

    span: Span
    is_in_schema: bool


def define_in_query(
    text: str, offset: int, catalog: Catalog | None, schema: SchemaTree | None
) -> Definition | None:
    """Where what stands at an offset of a `.gq` text is declared."""
    found = find_place(text, offset, catalog)
    if found is None:
        return None
    place, _ = found
    match place:
        case VariablePlace(variable):
            return Definition(variable.span, is_in_schema=False)
        case TypePlace(name, is_edge):
            return _in_schema(_find_type(schema, name, is_edge=is_edge))
        case PropertyPlace(owner, name):
            return None if owner is None else _in_schema(_find_property(schema, owner, name))
        case FunctionPlace() | AnnotationPlace():
            return None
        case _:
            assert_never(place)


def define_in_schema(text: str, offset: int, schema: SchemaTree | None) -> Definition | None:
    """Where the type at an offset of a `.pg` text is declared."""
    tokens = scan(text)
    at = token_index(tokens, offset)
    if at is None or tokens[at].kind != "type":
        return None
    return _in_schema(_find_type(schema, tokens[at].text))


def _in_schema(span: Span | None) -> Definition | None:
    return None if span is None else Definition(span, is_in_schema=True)


def _find_type(schema: SchemaTree | None, name: str, *, is_edge: bool = False) -> Span | None:
    found = list(_declarations(schema, name))
    found.sort(key=lambda each: isinstance(each, EdgeDecl) != is_edge)
    return found[0].span if found else None


def _find_property(schema: SchemaTree | None, owner: Owner, name: str) -> Span | None:
    """The declaration of a property: that of the type, or of an interface that brings it."""
    found = owner.properties.get(name)
    brought_by = () if found is None else found.injected_by
    for type_name in (owner.name, *brought_by):
        for declaration in _declarations(schema, type_name):
            for each in declaration.properties:
                if each.name == name:
                    return each.span
    return None


def _declarations(schema: SchemaTree | None, name: str) -> Iterator[Declaration]:
    return (each for each in (schema.declarations if schema else ()) if each.name == name)
