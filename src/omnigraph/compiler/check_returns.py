"""Projections: what a row of the result holds, and what each column is called.

A search call or a bare word type-checks but computes nothing a row could hold: it is refused with
L304, after every type error of the query has had its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from omnigraph.compiler.check_expressions import check_scalar
from omnigraph.compiler.check_search import rank_fusion, ranking_arm, text_match
from omnigraph.compiler.check_values import NOW, constant
from omnigraph.compiler.not_yet import not_yet
from omnigraph.compiler.scope import Scope
from omnigraph.compiler.typed import Refusal
from omnigraph.dataclass import dataclass
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import (
    NOW_PARAMETER,
    Aggregate,
    AliasRef,
    Bm25,
    Constant,
    Nearest,
    NodeRef,
    Param,
    Projected,
    PropertyRef,
    Ranking,
    Rrf,
    TextMatch,
)
from omnigraph.ir.expressions import Scalar as Value
from omnigraph.ir.query import ReturnItem
from omnigraph.syntax.query_tree import (
    AggregateExpr,
    AggregateFunction,
    AliasExpr,
    ArithmeticExpr,
    CaseExpr,
    CollectExpr,
    ConditionExpr,
    Expr,
    FunctionExpr,
    FuzzyExpr,
    LiteralExpr,
    MinusExpr,
    NearestExpr,
    NowExpr,
    NullExpr,
    ObjectExpr,
    Projection,
    PropertyExpr,
    RrfExpr,
    TextSearchExpr,
    VariableExpr,
)
from omnigraph.types import PropertyType, Scalar

Typed: TypeAlias = Projected | Ranking | TextMatch | AliasRef
"""Everything that type-checks in `return` or `order`."""


@dataclass(frozen=True, slots=True)
class CheckedReturns:
    """The columns, what every alias stands for, and what cannot be computed."""

    items: tuple[ReturnItem, ...]
    aliases: Mapping[str, Typed]
    refusals: tuple[Refusal, ...]

    @property
    def is_aggregate(self) -> bool:
        return any(isinstance(item.expression, Aggregate) for item in self.items)


COMPUTED = (ArithmeticExpr, MinusExpr, FunctionExpr, CaseExpr, ConditionExpr)
"""What is computed has no name of its own."""


def check_returns(projections: tuple[Projection, ...], scope: Scope) -> CheckedReturns:
    """Type every projection; beside an aggregate each one is a property or a variable (T9)."""
    typed = [
        (projection, check_expression(projection.expression, scope)) for projection in projections
    ]
    if any(isinstance(expression, Aggregate) for _, expression in typed):
        _require_grouping_keys(typed)
    items: list[ReturnItem] = []
    refusals: list[Refusal] = []
    for projection, expression in typed:
        match expression:
            case Nearest() | Bm25() | Rrf() | TextMatch() | AliasRef():
                refusals.append(_unexecutable(projection))
            case _:
                column = projection.alias or _name_column(expression, projection)
                items.append(ReturnItem(expression, column, projection.alias))
    aliases = {p.alias: expression for p, expression in typed if p.alias is not None}
    return CheckedReturns(tuple(items), aliases, tuple(refusals))


def _name_column(expression: Projected, projection: Projection) -> str:
    if isinstance(projection.expression, COMPUTED):
        raise TypeCheckError(
            "a computed column needs a name", code="T28", span=projection.span, hint="add as …"
        )
    return column_name(expression)


def check_expression(expression: Expr, scope: Scope) -> Typed:
    """Type an expression of `return` or `order`. A Blob is no read value (T24)."""
    match expression:
        case LiteralExpr():
            return constant(expression)
        case NowExpr():
            return NOW
        case PropertyExpr():
            return _readable(scope.property_ref(expression), expression)
        case VariableExpr():
            return _readable(scope.bare_variable(expression), expression)
        case AggregateExpr():
            return _aggregate(expression, scope)
        case NearestExpr() | TextSearchExpr(function="bm25"):
            return ranking_arm(expression, scope)
        case TextSearchExpr() | FuzzyExpr():
            return text_match(expression, scope)
        case RrfExpr():
            return rank_fusion(expression, scope)
        case AliasExpr():
            return AliasRef(expression.name)
        case CollectExpr():
            raise not_yet("collect")
        case ObjectExpr():
            raise not_yet("an object")
        case NullExpr():
            return _lone_null(expression)
        case ArithmeticExpr() | MinusExpr() | FunctionExpr() | CaseExpr() | ConditionExpr():
            return _readable_value(check_scalar(expression, scope), expression)
        case _:
            assert_never(expression)


def _lone_null(expression: NullExpr) -> AliasRef:
    raise TypeCheckError(
        "null alone has no type", code="T30", span=expression.span, hint="leave the column out"
    )


def _readable_value(found: Value, expression: Expr) -> Value:
    if found.type.is_duration:
        raise TypeCheckError(
            "a duration cannot be returned or ordered by", code="T26", span=expression.span
        )
    return found


def column_name(expression: Projected) -> str:
    """The name of a column without an alias. An aggregate is named after its argument."""
    match expression:
        case PropertyRef(variable, name):
            return f"{variable}.{name}"
        case NodeRef(variable):
            return variable
        case Param(name):
            return "now" if name == NOW_PARAMETER else name
        case Constant():
            return "literal"
        case Aggregate(argument=argument):
            return column_name(argument)
        case _:
            raise AssertionError("what is computed has an alias")


def _readable(
    found: PropertyRef | Param | NodeRef, expression: PropertyExpr | VariableExpr
) -> PropertyRef | Param | NodeRef:
    if not isinstance(found, NodeRef) and found.type.is_blob:
        raise TypeCheckError(
            f"`${column_name(found)}` is a Blob, which a query cannot return; read it by node id",
            code="T24",
            span=expression.span,
        )
    return found


def _aggregate(expression: AggregateExpr, scope: Scope) -> Aggregate:
    if expression.distinct:
        raise not_yet("distinct in an aggregate")
    argument = check_expression(expression.argument, scope)
    if not isinstance(argument, (Constant, Param, PropertyRef, NodeRef)):
        raise TypeCheckError(
            f"{expression.function} takes a property, a variable or a literal",
            code="T8",
            span=expression.argument.span,
        )
    found = None if isinstance(argument, NodeRef) else argument.type
    return Aggregate(expression.function, argument, _result_type(expression, found))


def _result_type(expression: AggregateExpr, argument: PropertyType | None) -> PropertyType:
    """The type of the result. `argument` is None for a node, which can only be counted."""
    function = expression.function
    match function:
        case AggregateFunction.COUNT:
            return PropertyType(Scalar.I64, nullable=True)
        case AggregateFunction.SUM | AggregateFunction.AVG:
            if argument is not None and argument.is_numeric:
                return PropertyType(Scalar.F64, nullable=True)
            wanted = "numbers"
        case AggregateFunction.MIN | AggregateFunction.MAX:
            if argument is not None and (argument.is_numeric or argument.is_text):
                return PropertyType(argument.scalar, nullable=True, variants=argument.variants)
            wanted = "numbers or Strings"
        case _:
            assert_never(function)
    found = "a node" if argument is None else str(argument)
    raise TypeCheckError(
        f"{function} works on {wanted}, and this is {found}",
        code="T8",
        span=expression.argument.span,
    )


def _require_grouping_keys(typed: list[tuple[Projection, Typed]]) -> None:
    for projection, expression in typed:
        if isinstance(expression, Aggregate):
            continue
        if not isinstance(projection.expression, (PropertyExpr, VariableExpr)):
            raise TypeCheckError(
                "beside an aggregate every projection is a property or a variable to group by",
                code="T9",
                span=projection.span,
            )


def _unexecutable(projection: Projection) -> Refusal:
    if isinstance(projection.expression, AliasExpr):
        advice = f"`{projection.expression.name}` names no value; write `$variable.property`"
    else:
        advice = "a search has no value of its own; use it in `match` or `order`"
    return Refusal("L304", f"unsupported projection expression: {advice}", span=projection.span)
