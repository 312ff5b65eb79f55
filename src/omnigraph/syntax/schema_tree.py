"""The tree of a `.pg` schema: what was written, in order, with the span it was written at.

Spans take no part in equality, so a printed and reparsed tree equals its original. The span of a
declaration or a property covers its name; every other span covers all that was written.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.source_text import NO_SPAN, Span
from omnigraph.syntax.spanned import Spanned
from omnigraph.types import PropertyType


@dataclass(frozen=True, slots=True)
class Identifier(Spanned):
    """A bare lowercase word used as an argument, as in `@embed(text)` or `@key(slug)`."""

    name: str


LiteralValue: TypeAlias = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Annotation(Spanned):
    """`@name`, `@name(value)` or `@name(value, key=literal, ...)`; `@index(option: literal)`."""

    name: str
    value: LiteralValue | Identifier | None = None
    kwargs: tuple[tuple[str, LiteralValue], ...] = ()


@dataclass(frozen=True, slots=True)
class RangeBound(Spanned):
    """`lower..upper`; at least one side is there."""

    lower: int | float | None
    upper: int | float | None


ConstraintName: TypeAlias = Literal["key", "unique", "index", "range", "check"]
ConstraintArgument: TypeAlias = RangeBound | LiteralValue | Identifier


@dataclass(frozen=True, slots=True)
class ConstraintDecl(Spanned):
    """A body constraint: `@key(a, b)`, `@range(p, 0..10)`, `@check(p, "re")`, ..."""

    name: ConstraintName
    arguments: tuple[ConstraintArgument, ...]


@dataclass(frozen=True, slots=True)
class PropertyDecl(Spanned):
    """`name: Type @annotation...`."""

    name: str
    type: PropertyType
    annotations: tuple[Annotation, ...] = ()
    type_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeRef(Spanned):
    """The name of a type, where it is used."""

    name: str


@dataclass(frozen=True, slots=True)
class InterfaceDecl(Spanned):
    """`interface Name { ... }`. `span` covers the name."""

    name: str
    properties: tuple[PropertyDecl, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeDecl(Spanned):
    """`node Name @annotation... implements A, B { ... }`. `span` covers the name."""

    name: str
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[TypeRef, ...] = ()
    properties: tuple[PropertyDecl, ...] = ()
    constraints: tuple[ConstraintDecl, ...] = ()


@dataclass(frozen=True, slots=True)
class CardinalityDecl(Spanned):
    """`@card(minimum..maximum)`; `maximum` is None when there is no upper bound."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class EdgeDecl(Spanned):
    """`edge Name: Source -> Target @card(...) @annotation... { ... }`. `span` covers the name."""

    name: str
    source: TypeRef
    target: TypeRef
    cardinality: CardinalityDecl | None = None
    annotations: tuple[Annotation, ...] = ()
    properties: tuple[PropertyDecl, ...] = ()
    constraints: tuple[ConstraintDecl, ...] = ()


Declaration: TypeAlias = InterfaceDecl | NodeDecl | EdgeDecl


@dataclass(frozen=True, slots=True)
class SchemaTree:
    """One `.pg` file. `text` and `name` are kept so that later errors can quote it."""

    declarations: tuple[Declaration, ...]
    text: str = field(default="", compare=False, repr=False)
    name: str = field(default="schema.pg", compare=False, repr=False)
