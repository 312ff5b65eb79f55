"""Conditions: comparisons, null tests, membership and text search, joined by and, or and not.

Both sides are values or lists of values (T7). Lists take `contains` only, vectors nothing; every
other comparison needs compatible types, and none takes `null` (T27). `in` looks in a list literal
or a list parameter (T29). A search call stands alone, or as `search(...) = true`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeGuard, assert_never

from omnigraph.compiler.check_expressions import check_scalar
from omnigraph.compiler.check_search import text_match
from omnigraph.compiler.path_calls import is_null
from omnigraph.compiler.scope import Scope
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import (
    And,
    Compare,
    CompareKind,
    Constant,
    IsIn,
    IsNull,
    Not,
    Null,
    Or,
    Param,
    Predicate,
    PropertyRef,
)
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    AndTest,
    CompareOp,
    Condition,
    Expr,
    FilterClause,
    FuzzyExpr,
    ListLiteral,
    LiteralExpr,
    NearestExpr,
    NotTest,
    NullExpr,
    NullTest,
    OrTest,
    PropertyExpr,
    RrfExpr,
    TextSearchExpr,
    VariableExpr,
)
from omnigraph.types import PropertyType, Scalar

COMPARE_KINDS: Final[Mapping[CompareOp, CompareKind]] = {
    op: CompareKind(op.value) for op in CompareOp if op not in (CompareOp.CONTAINS, CompareOp.IN)
}
"""The comparisons that mean the same whatever their sides are; `contains` does not."""


def check_filter(clause: Condition, scope: Scope) -> Iterator[Predicate]:
    """Type a filter clause; what `and` joins is several filters, each as early as it can be."""
    if isinstance(clause, AndTest):
        for part in clause.parts:
            yield from check_filter(part, scope)
    else:
        yield check_condition(clause, scope)


def check_condition(condition: Condition, scope: Scope) -> Predicate:
    """Type one condition."""
    match condition:
        case FilterClause():
            return _check_comparison(condition, scope)
        case NullTest(operand, is_negated):
            found = is_null(operand, scope) or IsNull(
                _find_nullable(operand, scope) or _tested(operand, scope)
            )
            return Not(found) if is_negated else found
        case NotTest(inner):
            return Not(check_condition(inner, scope))
        case AndTest(parts):
            return And(tuple(check_condition(part, scope) for part in parts))
        case OrTest(parts):
            return Or(tuple(check_condition(part, scope) for part in parts))
        case _:
            assert_never(condition)


def find_search(condition: Condition) -> TextSearchExpr | FuzzyExpr | None:
    """The first search call in a condition."""
    match condition:
        case FilterClause(left, _, right):
            for side in (left, right):
                if _is_text_match(side):
                    return side
            return None
        case NullTest():
            return None
        case NotTest(inner):
            return find_search(inner)
        case AndTest(parts) | OrTest(parts):
            return next((found for found in map(find_search, parts) if found), None)
        case _:
            assert_never(condition)


def _check_comparison(clause: FilterClause, scope: Scope) -> Predicate:
    for call, other in ((clause.left, clause.right), (clause.right, clause.left)):
        if _is_text_match(call):
            _require_plain_search(clause, other)
            return text_match(call, scope)
    if any(_is_null(side, scope) for side in (clause.left, clause.right)):
        raise _compared_with_null(clause)
    left = _operand(clause.left, scope)
    right = _operand(clause.right, scope)
    if clause.op is CompareOp.IN:
        return _check_membership(clause, left, right)
    return Compare(left, _compare_kind(clause, left.type, right.type), right)


def _is_null(side: Expr, scope: Scope) -> bool:
    """Whether a side is the literal, and no property of that name."""
    return isinstance(side, NullExpr) and scope.word("null") is None


def _compared_with_null(clause: FilterClause) -> TypeCheckError:
    word = "is not null" if clause.op is CompareOp.NOT_EQUAL else "is null"
    return TypeCheckError(
        "a comparison with null never holds", code="T27", span=clause.span, hint=f"use {word}"
    )


def _check_membership(clause: FilterClause, operand: Operand, values: Operand) -> IsIn:
    if not isinstance(values, (Constant, Param)) or not values.type.is_list:
        raise TypeCheckError(
            "in needs a list literal or a list parameter",
            code="T29",
            span=clause.right.span,
            hint=_contains_hint(clause, values) or "write the values in brackets: `in [1, 2]`",
        )
    element = values.type.element()
    if isinstance(values, Constant) and values.value == ListLiteral(()):
        # `[]` has no element to take a type from.
        return IsIn(
            operand, Constant(values.value, PropertyType(operand.type.scalar, is_list=True))
        )
    if operand.type.compatible_with(element) and not operand.type.is_vector:
        return IsIn(operand, values)
    raise TypeCheckError(
        f"cannot look for {operand.type} in {values.type}",
        code="T29",
        span=clause.span,
        hint=_hint_list(clause) if operand.type.is_list else None,
    )


def _hint_list(clause: FilterClause) -> str:
    from omnigraph.syntax.print_query import print_expression

    found = print_expression(clause.left)
    return f'ask for one value after the other: `{found} contains "a" or {found} contains "b"`'


def _contains_hint(clause: FilterClause, values: Operand) -> str | None:
    from omnigraph.syntax.print_query import print_expression

    if not isinstance(values, PropertyRef) or not values.type.is_list:
        return None
    return f"{print_expression(clause.right)} contains {print_expression(clause.left)}"


def _compare_kind(clause: FilterClause, left: PropertyType, right: PropertyType) -> CompareKind:
    match clause.op:
        case CompareOp.CONTAINS:
            return _contains_kind(left, right, clause.span)
        case CompareOp.STARTS_WITH | CompareOp.ENDS_WITH:
            if not (left.is_text and right.is_text):
                raise _mismatch(
                    f"{clause.op} compares Strings, not {left} with {right}", clause.span
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
            "`length($p.list) = 0` asks whether one is empty",
        )
    if left.is_vector or right.is_vector:
        raise _mismatch(
            f"vectors cannot be compared with `{clause.op}`; rank by `nearest` in `order`",
            clause.span,
        )
    if not left.compatible_with(right):
        days = {left.scalar, right.scalar} == {Scalar.DATE, Scalar.DATETIME}
        hint = _hint_days(clause, left) if days else _hint_text_as_time(left, right)
        raise _mismatch(f"cannot compare {left} with {right}", clause.span, hint)


def _hint_days(clause: FilterClause, left: PropertyType) -> str:
    """An instant is compared with a day by its own day."""
    from omnigraph.syntax.print_query import print_expression

    instant = clause.left if left.scalar is Scalar.DATETIME else clause.right
    named = isinstance(instant, PropertyExpr | VariableExpr)
    return f"write date({print_expression(instant) if named else 'now()'}) to compare days"


def _hint_text_as_time(left: PropertyType, right: PropertyType) -> str | None:
    """A text is no date: how one is written."""
    scalars = {left.scalar, right.scalar} - {Scalar.STRING}
    if Scalar.DATE in scalars and (left.is_numeric or right.is_numeric):
        return 'write the day as date("2024-01-31"); year($p.day) is its year'
    if not (left.is_text or right.is_text):
        return None
    if scalars == {Scalar.DATE}:
        return 'write the day as date("2024-01-31"), or declare the parameter as Date'
    if scalars == {Scalar.DATETIME}:
        return 'write it as datetime("2024-01-31T00:00:00Z"), or declare the parameter as DateTime'
    return None


def _operand(expression: Expr, scope: Scope) -> Operand:
    """One side of a comparison: a value, and neither a Blob (T7) nor a duration (T26)."""
    found = _tested(expression, scope)
    if found.type.is_duration:
        raise TypeCheckError(
            "a duration cannot be compared",
            code="T26",
            span=expression.span,
            hint="add it to a date, and compare the dates",
        )
    return found


def _find_nullable(expression: Expr, scope: Scope) -> PropertyRef | None:
    """The id of a variable that an `optional` may leave null: it is null exactly then."""
    match expression:
        case VariableExpr(name) if name in scope.nullable and name not in scope.params:
            return scope.id_of(name)
        case _:
            return None


def _tested(expression: Expr, scope: Scope) -> Operand:
    message = _no_value(expression, scope)
    if message is not None:
        is_ranking = not isinstance(expression, VariableExpr)
        hint = "cut first: `top 10 by … as $score { … }`; `$score < 0.5` then filters"
        raise _mismatch(message, expression.span, hint if is_ranking else None)
    found = check_scalar(expression, scope)
    if isinstance(found, Null):
        raise TypeCheckError("null is always null", code="T27", span=expression.span)
    if found.type.is_blob:
        raise _mismatch("a Blob cannot be compared", expression.span)
    return found


def _no_value(expression: Expr, scope: Scope) -> str | None:
    match expression:
        case VariableExpr(name) if name not in scope.params and scope.variable(name) is not None:
            return (
                f"`${name}` is a node, and a comparison needs a value; "
                f"name a property, as in `${name}.property`: two nodes are one if their keys are"
            )
        case NearestExpr() | RrfExpr() | TextSearchExpr():
            return "a ranking orders rows and is not compared; move it to `order`"
        case _:
            return None


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


def _mismatch(message: str, span: Span, hint: str | None = None) -> TypeCheckError:
    return TypeCheckError(message, code="T7", span=span, hint=hint)
