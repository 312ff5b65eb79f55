"""Filters: comparisons between two values, and text search.

Both sides are values or lists of values (T7). Lists take `contains` only, vectors nothing; every
other comparison needs compatible types. A search call stands alone, or as `search(...) = true`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeGuard

from omnigraph.compiler.check_search import text_match
from omnigraph.compiler.check_values import plain_value
from omnigraph.compiler.scope import Scope
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import Compare, CompareKind, Predicate
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    AggregateExpr,
    AliasExpr,
    CompareOp,
    Expr,
    FilterClause,
    FuzzyExpr,
    LiteralExpr,
    TextSearchExpr,
    VariableExpr,
)
from omnigraph.types import PropertyType

COMPARE_KINDS: Final[Mapping[CompareOp, CompareKind]] = {
    op: CompareKind(op.value) for op in CompareOp if op is not CompareOp.CONTAINS
}
"""The comparisons that mean the same whatever their sides are; `contains` does not."""


def check_filter(clause: FilterClause, scope: Scope) -> Predicate:
    """Type one filter clause."""
    for call, other in ((clause.left, clause.right), (clause.right, clause.left)):
        if _is_text_match(call):
            _require_plain_search(clause, other)
            return text_match(call, scope)
    left = _operand(clause.left, scope)
    right = _operand(clause.right, scope)
    return Compare(left, _compare_kind(clause, left.type, right.type), right)


def _compare_kind(clause: FilterClause, left: PropertyType, right: PropertyType) -> CompareKind:
    match clause.op:
        case CompareOp.CONTAINS:
            return _contains_kind(left, right, clause.span)
        case CompareOp.STARTS_WITH:
            if not (left.is_text and right.is_text):
                raise _mismatch(
                    f"starts_with compares Strings, not {left} with {right}", clause.span
                )
        case _:
            _require_comparable(left, right, clause)
    return COMPARE_KINDS[clause.op]


def _contains_kind(left: PropertyType, right: PropertyType, span: Span) -> CompareKind:
    if left.is_list:
        if right.is_list or right.is_vector or not right.compatible_with(left.element()):
            raise _mismatch(f"a {left} contains {left.element()} values, not {right}", span)
        return CompareKind.LIST_CONTAINS
    if not left.is_text:
        raise _mismatch(f"contains looks in a list or a String, not in {left}", span)
    if not right.is_text:
        raise _mismatch(f"a String contains Strings, not {right}", span)
    return CompareKind.TEXT_CONTAINS


def _require_comparable(left: PropertyType, right: PropertyType, clause: FilterClause) -> None:
    if left.is_list or right.is_list:
        raise _mismatch(
            f"lists cannot be compared with `{clause.op}`; use `contains` to look for a member",
            clause.span,
        )
    if left.is_vector or right.is_vector:
        raise _mismatch(
            f"vectors cannot be compared with `{clause.op}`; rank by `nearest` in `order`",
            clause.span,
        )
    if not left.compatible_with(right):
        raise _mismatch(f"cannot compare {left} with {right}", clause.span)


def _operand(expression: Expr, scope: Scope) -> Operand:
    """One side of a comparison: a value, and not a Blob (T7)."""
    found = plain_value(expression, scope)
    if found is None:
        raise _mismatch(_no_value(expression), expression.span)
    if found.type.is_blob:
        raise _mismatch("a Blob cannot be compared", expression.span)
    return found


def _no_value(expression: Expr) -> str:
    match expression:
        case VariableExpr(name):
            return (
                f"`${name}` is a node, and a comparison needs a value; "
                f"name a property, as in `${name}.property`"
            )
        case AggregateExpr(function):
            return f"`{function}` works on groups in `return`, not in a filter"
        case AliasExpr(name):
            return f"`{name}` is no value here: aliases are seen by `order` only"
        case _:
            return "a ranking orders rows and is not compared; move it to `order`"


def _is_text_match(expression: Expr) -> TypeGuard[TextSearchExpr | FuzzyExpr]:
    match expression:
        case FuzzyExpr() | TextSearchExpr(function="search" | "match_text"):
            return True
        case _:
            return False


def _require_plain_search(clause: FilterClause, other: Expr) -> None:
    if clause.op is CompareOp.EQUAL and isinstance(other, LiteralExpr) and other.value is True:
        return
    raise TypeCheckError(
        "a text search is required by writing it alone or as `= true`; "
        "to exclude what it finds, put it in `not { ... }`",
        code="T7",
        span=clause.span,
    )


def _mismatch(message: str, span: Span) -> TypeCheckError:
    return TypeCheckError(message, code="T7", span=span)
