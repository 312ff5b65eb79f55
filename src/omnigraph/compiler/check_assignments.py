"""Assignments: what a statement stores, and the words that stand for the row it changes.

A value is a literal (T3), a parameter or now() (T7, T14), null (T27), or an expression whose type
goes into the property (T7): integers go into floats, a computed float never into an integer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from omnigraph.catalog.model import EdgeType, EntityType, InterfaceType, NodeType
from omnigraph.compiler.check_expressions import check_scalar
from omnigraph.compiler.check_values import Slot, check_assigned_value
from omnigraph.compiler.match_columns import MatchColumns
from omnigraph.compiler.scope import (
    ENDPOINTS,
    ID_TYPE,
    Scope,
    require_property,
    type_of,
    variable_hint,
)
from omnigraph.compiler.walk import walk
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import Null, Param, PropertyRef
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.ir.mutations import Assignment
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    ArithmeticExpr,
    ArithmeticOp,
    Expr,
    LiteralExpr,
    NowExpr,
    NullExpr,
    PropertyMatch,
    VariableExpr,
)
from omnigraph.types import PropertyType

ENDS: Final = tuple(ENDPOINTS)


def check_assignments(
    written: tuple[PropertyMatch, ...],
    owner: EntityType,
    scope: Scope,
    span: Span,
    matched: MatchColumns | None = None,
) -> tuple[Assignment, ...]:
    """Type what is assigned to `owner`; after a `match`, what a matched row gives."""
    if not written:
        raise TypeCheckError(f"nothing is assigned to {owner.name}", code="T10", span=span)
    seen: set[str] = set()
    assignments: list[Assignment] = []
    for each in written:
        assignments.append(_check_assignment(each, owner, scope, matched))
        if each.property in seen:
            raise TypeCheckError(
                f"{owner.name}.{each.property} is assigned twice",
                code="T13",
                span=each.span,
                hint="leave one of the two out",
            )
        seen.add(each.property)
    return tuple(assignments)


def find_slot(name: str, span: Span, owner: EntityType) -> tuple[str, Slot]:
    """The column that a statement names: a property or an end of an edge (T11)."""
    if isinstance(owner, EdgeType) and name in ENDPOINTS:
        return ENDPOINTS[name], Slot(f"`{name}` of {owner.name}", ID_TYPE)
    found = require_property(owner, name, code="T11", span=span, also=ends_of(owner))
    return found.name, Slot(f"{owner.name}.{found.name}", found.type)


def ends_of(owner: EntityType) -> tuple[str, ...]:
    """How a statement spells the ends of an edge; a node has none."""
    return ENDS if isinstance(owner, EdgeType) else ()


def require_declared(part: object, scope: Scope) -> None:
    """Refuse a bare `$name` that nothing declares (T14)."""
    for each in walk(part):
        if isinstance(each, VariableExpr) and not scope.knows(each.name):
            raise TypeCheckError(
                f"`${each.name}` is not a declared parameter",
                code="T14",
                span=each.span,
                hint=variable_hint(each.name, list(scope.params))
                or f"declare it: `query name(${each.name}: Type)`",
            )


def _check_assignment(
    written: PropertyMatch, owner: EntityType, scope: Scope, matched: MatchColumns | None
) -> Assignment:
    column, slot = find_slot(written.property, written.span, owner)
    value = written.value
    is_end = isinstance(owner, EdgeType) and written.property in ENDPOINTS
    if is_end and matched is not None and isinstance(value, VariableExpr):
        node = type_of(value.name, scope)
        if isinstance(node, (NodeType, InterfaceType)):
            return Assignment(column, matched.add_id(value.name, node))
    checked = _check_value(value, slot, scope)
    return Assignment(column, matched.project(checked) if matched is not None else checked)


def _check_value(value: Expr, slot: Slot, scope: Scope) -> Operand:
    match value:
        case NullExpr() if scope.word("null") is None:
            return _check_null(slot, value.span)
        case VariableExpr(name) if type_of(name, scope) is None:
            return check_assigned_value(value, slot, scope)
        case LiteralExpr() | NowExpr():
            return check_assigned_value(value, slot, scope)
        case _:
            require_declared(value, scope)
            found = check_scalar(value, scope)
            _require_storable(found, slot, value)
            return found


def _check_null(slot: Slot, span: Span) -> Null:
    if not slot.type.nullable:
        raise TypeCheckError(
            f"{slot.label} is required and cannot be null",
            code="T27",
            span=span,
            hint=f"give a {slot.type}, or declare it as `{slot.type}?` in the schema",
        )
    return Null(slot.type)


def _require_storable(found: Operand, slot: Slot, value: Expr) -> None:
    if found.type.is_duration:
        raise TypeCheckError(
            f"{slot.label} expects {slot.type}: a duration cannot be stored",
            code="T26",
            span=value.span,
            hint="add it to a date",
        )
    if not _fits(found, slot.type):
        raise TypeCheckError(
            f"{slot.label}: cannot assign {str(found.type).removesuffix('?')} to {slot.type}",
            code="T7",
            span=value.span,
            hint="there is no integer division" if any(_divisions(value)) else None,
        )


def _fits(found: Operand, wanted: PropertyType) -> bool:
    if wanted.is_blob:
        # A Blob arrives as text; the bytes of a stored one are not copied.
        return isinstance(found, Param) and (found.type.is_text or found.type.is_blob)
    if isinstance(found, PropertyRef) and found.type.is_blob:
        return False
    if found.type.scalar.is_float and wanted.scalar.is_integer:
        return False
    return found.type.compatible_with(wanted)


def _divisions(value: Expr) -> Iterator[bool]:
    for each in walk(value):
        if isinstance(each, ArithmeticExpr):
            yield from (op is ArithmeticOp.OVER for op, _ in each.rest)
