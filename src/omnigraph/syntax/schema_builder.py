"""Schema builder: one method per rule of schema.lark, from the children of a rule to a tree node.

Holds no state, so one builder serves every parse. A rule of the language that the grammar cannot
say (sizes, escapes, duplicates) is checked here, where the token is still at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.errors import ParseError
from omnigraph.source_text import Span
from omnigraph.syntax.literals import (
    UNSIGNED_32_MAX,
    from_to,
    read_dimension,
    read_float,
    read_integer,
    read_number,
    read_string,
    span_of,
)
from omnigraph.syntax.schema_tree import (
    Annotation,
    CardinalityDecl,
    ConstraintDecl,
    EdgeDecl,
    Identifier,
    InterfaceDecl,
    LiteralValue,
    NodeDecl,
    PropertyDecl,
    RangeBound,
    TypeRef,
)
from omnigraph.types import PropertyType, Scalar

if TYPE_CHECKING:
    from omnigraph.syntax.grammar import Token

TypedSpan = tuple[PropertyType, Span]
BodyParts = tuple[tuple[PropertyDecl, ...], tuple[ConstraintDecl, ...]]


class SchemaBuilder:
    """The actions of the schema grammar. Each gets the list of a rule's children."""

    def start(self, children: list[Any]) -> tuple[Any, ...]:
        """A rule that is a sequence of other rules."""
        return tuple(children)

    implements = annotations = start

    def interface_decl(self, children: list[Any]) -> InterfaceDecl:
        name, *properties = children
        return InterfaceDecl(name.value, tuple(properties), span=span_of(name))

    def node_decl(self, children: list[Any]) -> NodeDecl:
        name, annotations, implements, (properties, constraints) = children
        return NodeDecl(
            name.value, annotations, implements or (), properties, constraints, span=span_of(name)
        )

    def edge_decl(self, children: list[Any]) -> EdgeDecl:
        name, source, target, cardinality, annotations, body = children
        properties, constraints = body or ((), ())
        return EdgeDecl(
            name.value,
            source,
            target,
            cardinality,
            annotations,
            properties,
            constraints,
            span=span_of(name),
        )

    def type_name(self, children: list[Token]) -> TypeRef:
        return TypeRef(children[0].value, span=span_of(children[0]))

    def body(self, items: list[PropertyDecl | ConstraintDecl]) -> BodyParts:
        return (
            tuple(item for item in items if isinstance(item, PropertyDecl)),
            tuple(item for item in items if isinstance(item, ConstraintDecl)),
        )

    def card_from(self, children: list[Token]) -> CardinalityDecl:
        card, minimum, end = children
        return CardinalityDecl(_card_bound(minimum), None, span=from_to(card, end))

    def card_between(self, children: list[Token]) -> CardinalityDecl:
        card, minimum, maximum, end = children
        return CardinalityDecl(_card_bound(minimum), _card_bound(maximum), span=from_to(card, end))

    def prop_decl(self, children: list[Any]) -> PropertyDecl:
        name, (property_type, type_span), annotations = children
        return PropertyDecl(name.value, property_type, annotations, type_span, span=span_of(name))

    def scalar_type(self, children: list[Token]) -> TypedSpan:
        base, optional = children
        return _typed(Scalar(base.value), base, base, optional)

    def list_type(self, children: list[Token]) -> TypedSpan:
        start, base, end, optional = children
        if base.value == "Blob":
            raise ParseError("list of Blob is not supported", span=from_to(start, end))
        return _typed(Scalar(base.value), start, end, optional, is_list=True)

    def enum_type(self, children: list[Token]) -> TypedSpan:
        start, *variants, end, optional = children
        seen: set[str] = set()
        for variant in variants:
            if variant.value in seen:
                raise ParseError(f"duplicate enum variant `{variant}`", span=span_of(variant))
            seen.add(variant.value)
        return _typed(Scalar.STRING, start, end, optional, variants=tuple(sorted(seen)))

    def vector_type(self, children: list[Token]) -> TypedSpan:
        start, size, end, optional = children
        return _typed(Scalar.VECTOR, start, end, optional, dimension=read_dimension(size))

    def flag(self, children: list[Token]) -> Annotation:
        return Annotation(_word(children[0]), span=span_of(children[0]))

    def annotation(self, children: list[Any]) -> Annotation:
        name, value, *kwargs, end = children
        return Annotation(_word(name), value, tuple(kwargs), span=from_to(name, end))

    def index_options(self, children: list[Any]) -> Annotation:
        name, *options, end = children
        return Annotation(_word(name), None, tuple(options), span=from_to(name, end))

    def option(self, children: list[Any]) -> tuple[str, LiteralValue]:
        return children[0].value, children[1]

    def kwarg(self, children: list[Any]) -> tuple[str, LiteralValue]:
        return children[0].value, children[1]

    def body_constraint(self, children: list[Any]) -> ConstraintDecl:
        name, *arguments, end = children
        # The terminal admits exactly the five names of the type.
        return ConstraintDecl(_word(name), tuple(arguments), span=from_to(name, end))  # type: ignore[arg-type]

    def range_from(self, children: list[Token]) -> RangeBound:
        lower, dots = children
        return RangeBound(read_number(lower), None, span=from_to(lower, dots))

    def range_between(self, children: list[Token]) -> RangeBound:
        lower, _, upper = children
        return RangeBound(read_number(lower), read_number(upper), span=from_to(lower, upper))

    def range_to(self, children: list[Token]) -> RangeBound:
        dots, upper = children
        return RangeBound(None, read_number(upper), span=from_to(dots, upper))

    def identifier(self, children: list[Token]) -> Identifier:
        return Identifier(children[0].value, span=span_of(children[0]))

    def string(self, children: list[Token]) -> str:
        return read_string(children[0])

    def float(self, children: list[Token]) -> float:
        return read_float(children[0])

    def int(self, children: list[Token]) -> int:
        return read_integer(children[0])

    def negative(self, children: list[Token]) -> LiteralValue:
        return read_number(children[0])

    def bool(self, children: list[Token]) -> bool:
        return str(children[0]) == "true"


def _typed(
    scalar: Scalar, start: Token, end: Token, optional: Token | None, **facts: Any
) -> TypedSpan:
    """A type and where it is written; `optional` is the `?` behind it, if there is one."""
    type_ = PropertyType(scalar, nullable=optional is not None, **facts)
    return type_, from_to(start, optional or end)


def _card_bound(bound: Token) -> int:
    return read_integer(bound, UNSIGNED_32_MAX, "a bound of @card")


def _word(name: Token) -> str:
    """The name of an annotation: white space may follow its `@`."""
    word: str = name.value[1:].lstrip()
    return word
