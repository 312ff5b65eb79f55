"""Hover: what is to be known of what stands at a position, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from omnigraph.catalog.annotations import ANNOTATIONS
from omnigraph.catalog.constraints import CONSTRAINTS
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.compiler.functions import describe_function
from omnigraph.dataclass import dataclass
from omnigraph.lsp.outline import Owner, Variable
from omnigraph.lsp.place import (
    AnnotationPlace,
    FunctionPlace,
    Place,
    PropertyPlace,
    TypePlace,
    VariablePlace,
    find_place,
    find_type,
)
from omnigraph.lsp.scan import scan, token_index
from omnigraph.source_text import Span


@dataclass(frozen=True, slots=True)
class Hover:
    text: str
    span: Span


def hover_query(text: str, offset: int, catalog: Catalog | None) -> Hover | None:
    """What to show at an offset of a `.gq` text."""
    found = find_place(text, offset, catalog)
    if found is None:
        return None
    place, token = found
    shown = _describe(place, catalog)
    return None if shown is None else Hover(shown, token.span)


def hover_schema(text: str, offset: int, catalog: Catalog | None) -> Hover | None:
    """What to show at an offset of a `.pg` text: its types and annotations."""
    tokens = scan(text)
    at = token_index(tokens, offset)
    if at is None or tokens[at].kind not in ("type", "annotation"):
        return None
    is_type = tokens[at].kind == "type"
    place = TypePlace(tokens[at].text) if is_type else AnnotationPlace(tokens[at].name)
    shown = _describe(place, catalog)
    return None if shown is None else Hover(shown, tokens[at].span)


def _describe(place: Place, catalog: Catalog | None) -> str | None:
    match place:
        case VariablePlace(variable):
            return _fence(describe_variable(variable))
        case PropertyPlace(owner, name, declared):
            return _property(owner, name, declared)
        case TypePlace(name, is_edge):
            owner = None if catalog is None else find_type(catalog, name, is_edge=is_edge)
            return None if owner is None else _type(owner)
        case FunctionPlace(name):
            known = describe_function(name)
            return f"{_fence(f'{name}({known.arguments}) → {known.result}')}\n{known.doc}"
        case AnnotationPlace(name):
            return _annotation(name)
        case _:
            assert_never(place)


def describe_variable(variable: Variable) -> str:
    """A variable with its type, as one would declare it."""
    match variable.kind:
        case "parameter":
            return f"parameter ${variable.name}: {variable.type}"
        case "node" | "edge":
            return f"{variable.kind} ${variable.name}: {variable.type}"
        case "path":
            return f"path ${variable.name} along {variable.type}"
        case "score" | "row":
            return f"{variable.kind} ${variable.name}"
        case "unknown":
            return f"${variable.name}"
        case _:
            assert_never(variable.kind)


def describe_property(owner: Owner, found: Property) -> str:
    """A property with its type, and what the schema says of it."""
    notes = "".join(f" {note}" for note in _notes(owner, found))
    return f"{owner.name}.{found.name}: {found.type}{notes}"


def describe_edge(edge: EdgeType) -> str:
    """An edge as a schema declares it."""
    return f"edge {edge.name}: {edge.source} -> {edge.target}"


def _notes(owner: Owner, found: Property) -> Iterator[str]:
    if owner.key is not None and found.name in owner.key:
        yield "@key"
    if (found.name,) in owner.uniques:
        yield "@unique"
    if (found.name,) in owner.indexes:
        yield "@index"
    if found.embed is not None:
        yield f'@embed("{found.embed.source}")'


def _property(owner: Owner | None, name: str, declared: str) -> str | None:
    if owner is None:
        return _fence(f"{name}: {declared}")
    found = owner.properties.get(name)
    if found is None:
        return _fence("id: String") if name == "id" and isinstance(owner, EdgeType) else None
    return _with_text(_fence(describe_property(owner, found)), found.description)


def _type(owner: Owner) -> str:
    properties = "".join(f"    {found.name}: {found.type}\n" for found in owner.properties.values())
    if isinstance(owner, EdgeType):
        head = describe_edge(owner)
    else:
        head = f"{'node' if isinstance(owner, NodeType) else 'interface'} {owner.name}"
    body = f" {{\n{properties}}}" if properties else ""
    return _with_text(_fence(f"{head}{body}"), getattr(owner, "description", None))


def _annotation(name: str) -> str | None:
    known = ANNOTATIONS.get(name)
    if known is not None:
        return f"{_fence(known.form)}\n{known.doc}"
    for constraint, (form, doc) in CONSTRAINTS.items():
        if constraint == name:
            return f"{_fence(form)}\n{doc}"
    return None


def _fence(code: str) -> str:
    return f"```omnigraph\n{code}\n```"


def _with_text(code: str, description: str | None) -> str:
    return f"{code}\n{description}" if description else code
