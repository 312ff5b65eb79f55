"""Values that meet a property: literals, parameters and `now()` in patterns and mutations.

A literal that does not fit is T3, a parameter or `now()` that does not fit is T7, and a variable
that is no parameter is T14.
"""

from __future__ import annotations

from typing import assert_never

from omnigraph.compiler.scope import Scope, variable_hint
from omnigraph.dataclass import dataclass
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import NOW_PARAMETER, Constant, NodeRef, Param
from omnigraph.ir.expressions import Plain as Operand
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    DateText,
    DateTimeText,
    Expr,
    ListLiteral,
    LiteralExpr,
    LiteralValue,
    NowExpr,
    PropertyExpr,
    ScalarLiteral,
    VariableExpr,
)
from omnigraph.types import INTEGER_BOUNDS, PropertyType, Scalar

NOW = Param(NOW_PARAMETER, PropertyType(Scalar.DATETIME))


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a value goes: the property as the query writes it, and its type."""

    label: str
    type: PropertyType


def constant(literal: LiteralExpr) -> Constant:
    """A literal with its own type."""
    return Constant(literal.value, literal_type(literal.value, literal.span))


def literal_type(value: LiteralValue, span: Span) -> PropertyType:
    """The type of a literal. A list has the type of its elements; an empty one is `[String]`."""
    if isinstance(value, ListLiteral):
        return _list_type(value, span)
    return PropertyType(_scalar_of(value))


def plain_value(expression: Expr, scope: Scope) -> Operand | None:
    """A literal, a parameter, now() or a property; None for a node or a computation."""
    match expression:
        case LiteralExpr():
            return constant(expression)
        case NowExpr():
            return NOW
        case PropertyExpr():
            return scope.property_ref(expression)
        case VariableExpr():
            found = scope.bare_variable(expression)
            return None if isinstance(found, NodeRef) else found
        case _:
            return None


def member_value(value: Expr, slot: Slot, scope: Scope) -> Constant | Param:
    """The value that a list property is required to hold, in a pattern."""
    if isinstance(value, LiteralExpr) and isinstance(value.value, ListLiteral):
        raise TypeCheckError(
            f"{slot.label} is a list and list equality is not supported; "
            "name one member that it must contain",
            code="T3",
            span=value.span,
        )
    return check_matched_value(value, Slot(f"a member of {slot.label}", slot.type.element()), scope)


def check_matched_value(value: Expr, slot: Slot, scope: Scope) -> Constant | Param:
    """The value that a property is compared with, in a pattern or a `where`."""
    match value:
        case LiteralExpr():
            return _check_matched_literal(value, slot)
        case VariableExpr():
            parameter = _require_parameter(value, scope)
            _require_fit(parameter.type, slot, f"`${value.name}` is {parameter.type}", value.span)
            return parameter
        case NowExpr():
            _require_fit(NOW.type, slot, "now() is a DateTime", value.span)
            return NOW
        case _:
            raise AssertionError("the grammar takes a value here")


def check_assigned_value(value: Expr, slot: Slot, scope: Scope) -> Constant | Param:
    """The value that a mutation stores in a property."""
    match value:
        case LiteralExpr():
            return _check_assigned_literal(value, slot)
        case VariableExpr() if slot.type.is_blob:
            parameter = _require_parameter(value, scope)
            # A Blob arrives as text: a URI, or `base64:` and its bytes.
            if not (parameter.type.is_text or parameter.type.is_blob):
                _refuse_value(f"`${value.name}` is {parameter.type}", slot, value.span)
            return parameter
        case _:
            return check_matched_value(value, slot, scope)


def _check_matched_literal(literal: LiteralExpr, slot: Slot) -> Constant:
    found = constant(literal)
    if slot.type.is_vector:
        return _vector_constant(literal, found, slot)
    if not found.type.compatible_with(slot.type):
        raise TypeCheckError(
            f"{slot.label} expects {slot.type}, and the literal is {found.type}",
            code="T3",
            span=literal.span,
            hint=_literal_hint(found, slot.type),
        )
    _require_variant(literal, slot)
    return found


def _check_assigned_literal(literal: LiteralExpr, slot: Slot) -> Constant:
    if isinstance(literal.value, ListLiteral) and not literal.value.items and slot.type.is_list:
        # `[]` has no element to take a type from, so it is an empty list of whatever is wanted.
        return Constant(literal.value, slot.type)
    if slot.type.is_blob and isinstance(literal.value, str):
        return constant(literal)
    found = _check_matched_literal(literal, slot)
    if slot.type.scalar.is_integer:
        items = found.value.items if isinstance(found.value, ListLiteral) else (found.value,)
        for item in items:
            _require_storable(item, slot, literal.span)
    return found


def _vector_constant(literal: LiteralExpr, found: Constant, slot: Slot) -> Constant:
    if not (isinstance(found.value, ListLiteral) and found.type.scalar.is_numeric):
        raise TypeCheckError(
            f"{slot.label} expects {slot.type}, and the literal is {found.type}; "
            "write a list of numbers",
            code="T3",
            span=literal.span,
        )
    if len(found.value.items) != slot.type.dimension:
        raise TypeCheckError(
            f"{slot.label} expects {slot.type}, and the list has {len(found.value.items)} elements",
            code="T3",
            span=literal.span,
        )
    return Constant(found.value, PropertyType(Scalar.VECTOR, dimension=slot.type.dimension))


def _require_variant(literal: LiteralExpr, slot: Slot) -> None:
    variants = slot.type.variants
    if variants is not None and literal.value not in variants:
        raise TypeCheckError(
            f"{slot.label} expects one of {', '.join(variants)}; got `{literal.value}`",
            code="T3",
            span=literal.span,
            hint=did_you_mean(str(literal.value), variants),
        )


def _require_storable(item: LiteralValue, slot: Slot, span: Span) -> None:
    """Comparing a whole-number property with 2.5 is sound; storing 2.5 in it never is."""
    if not isinstance(item, int):
        raise TypeCheckError(
            f"{slot.label} expects {slot.type}, and `{item}` is not a whole number",
            code="T3",
            span=span,
        )
    lower, upper = INTEGER_BOUNDS[slot.type.scalar]
    if not lower <= item <= upper:
        width = slot.type.scalar.value.replace("I", "Int").replace("U", "UInt")
        raise TypeCheckError(
            f"{slot.label} cannot hold {item}: it exceeds {width} range",
            code="T3",
            span=span,
        )


def _require_parameter(variable: VariableExpr, scope: Scope) -> Param:
    parameter = scope.parameter(variable)
    if parameter is None:
        raise TypeCheckError(
            f"`${variable.name}` is not a declared parameter",
            code="T14",
            span=variable.span,
            hint=variable_hint(variable.name, list(scope.params))
            or f"declare it: `query name(${variable.name}: Type)`",
        )
    return parameter


def _require_fit(given: PropertyType, slot: Slot, what: str, span: Span) -> None:
    if not given.compatible_with(slot.type):
        _refuse_value(what, slot, span)


def _refuse_value(what: str, slot: Slot, span: Span) -> None:
    raise TypeCheckError(f"{slot.label} expects {slot.type}, and {what}", code="T7", span=span)


def _list_type(value: ListLiteral, span: Span) -> PropertyType:
    scalars: list[Scalar] = []
    for item in value.items:
        if isinstance(item, ListLiteral):
            raise TypeCheckError("a list literal cannot hold another list", span=span)
        scalars.append(_scalar_of(item))
    if not scalars:
        return PropertyType(Scalar.STRING, is_list=True)
    kinds = {_NUMBER if scalar.is_numeric else scalar.value for scalar in scalars}
    if len(kinds) > 1:
        raise TypeCheckError(
            f"a list literal holds one type, and this one mixes {' and '.join(sorted(kinds))}",
            span=span,
        )
    # One fraction makes the whole list floating, so that no element is cut to an integer.
    scalar = Scalar.F64 if Scalar.F64 in scalars else scalars[0]
    return PropertyType(scalar, is_list=True)


_NUMBER = "numbers"


def _scalar_of(value: ScalarLiteral) -> Scalar:
    match value:
        case bool():
            return Scalar.BOOL
        case str():
            return Scalar.STRING
        case int():
            return Scalar.I64
        case float():
            return Scalar.F64
        case DateText():
            return Scalar.DATE
        case DateTimeText():
            return Scalar.DATETIME
        case _:
            assert_never(value)


def _literal_hint(found: Constant, wanted: PropertyType) -> str | None:
    """A text where a date belongs is the common slip: show the literal that was meant."""
    if not isinstance(found.value, str) or wanted.is_list:
        return None
    if wanted.scalar is Scalar.DATE:
        return f'write date("{found.value}")'
    if wanted.scalar is Scalar.DATETIME:
        return f'write datetime("{found.value}")'
    return None
