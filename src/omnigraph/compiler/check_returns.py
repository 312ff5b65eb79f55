"""Projections: what a row of the result holds, and what each column is called.

A search call or a bare word type-checks but computes nothing a row could hold: it is refused with
L304, after every type error of the query has had its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from omnigraph.compiler.check_expressions import check_scalar
from omnigraph.compiler.check_groups import (
    Columns,
    Shown,
    check_aggregate,
    check_key,
    group_scope,
    has_aggregate,
)
from omnigraph.compiler.check_objects import check_object
from omnigraph.compiler.check_search import rank_fusion, ranking_arm, text_match
from omnigraph.compiler.check_values import NOW, constant
from omnigraph.compiler.scope import Scope
from omnigraph.compiler.typed import Refusal
from omnigraph.dataclass import dataclass
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import (
    NOW_PARAMETER,
    Aggregate,
    AliasRef,
    Bm25,
    Collect,
    Constant,
    GroupColumn,
    Nearest,
    NodeRef,
    ObjectRef,
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
    QueryDecl,
    RrfExpr,
    TextSearchExpr,
    VariableExpr,
)

Typed: TypeAlias = Projected | Ranking | TextMatch | AliasRef
"""Everything that type-checks in `return` or `order`."""


@dataclass(frozen=True, slots=True)
class CheckedReturns:
    """The columns, what every alias stands for, and what cannot be computed.

    Of an aggregate query `columns` are the keys and aggregates of its groups, and `shown` what
    each projection is over them.
    """

    items: tuple[ReturnItem, ...]
    aliases: Mapping[str, Typed]
    refusals: tuple[Refusal, ...]
    columns: Columns | None = None
    shown: tuple[Shown, ...] = ()
    is_distinct: bool = False

    @property
    def is_aggregate(self) -> bool:
        return self.columns is not None

    @property
    def is_plain(self) -> bool:
        """Whether each column is a key or an aggregate, with nothing computed of them."""
        return all(isinstance(each.value, GroupColumn) for each in self.shown)


COMPUTED = (ArithmeticExpr, MinusExpr, FunctionExpr, CaseExpr, ConditionExpr)
"""What is computed has no name of its own."""
SCORES = (NearestExpr, RrfExpr, TextSearchExpr)


def check_returns(query: QueryDecl, scope: Scope) -> CheckedReturns:
    """Type every projection. With an aggregate among them rows are groups."""
    if any(has_aggregate(each.expression) for each in query.returns):
        return _check_groups(query, scope)
    typed = [(each, check_expression(each.expression, scope)) for each in query.returns]
    items: list[ReturnItem] = []
    refusals: list[Refusal] = []
    for projection, expression in typed:
        match expression:
            case TextMatch() | AliasRef():
                refusals.append(_unexecutable(projection))
            case _:
                items.append(_item(projection, expression))
    aliases = {p.alias: expression for p, expression in typed if p.alias is not None}
    shown = tuple(
        Shown(each.expression, each.alias, GroupColumn(place, item.expression))
        for place, (each, item) in enumerate(zip(query.returns, items, strict=False))
        if not isinstance(item.expression, (Nearest, Bm25, Rrf, GroupColumn))
    )
    return CheckedReturns(
        tuple(items), aliases, tuple(refusals), shown=shown, is_distinct=query.distinct
    )


def _check_groups(query: QueryDecl, scope: Scope) -> CheckedReturns:
    columns = Columns()
    shown: list[Shown] = []
    items: list[ReturnItem] = []
    for projection in query.returns:
        value = _over_groups(projection, scope, columns)
        shown.append(Shown(projection.expression, projection.alias, value))
        plain = value.shows if isinstance(value, GroupColumn) else value
        items.append(_item(projection, plain))
    aliases = {item.alias: item.expression for item in items if item.alias is not None}
    return CheckedReturns(tuple(items), aliases, (), columns, tuple(shown), query.distinct)


def _over_groups(projection: Projection, scope: Scope, columns: Columns) -> GroupColumn | Value:
    expression = projection.expression
    if isinstance(expression, (AggregateExpr, CollectExpr)):
        return columns.show(check_aggregate(expression, scope))
    if has_aggregate(expression):
        return _readable_value(check_scalar(expression, group_scope(scope, columns)), expression)
    if isinstance(expression, SCORES):
        raise TypeCheckError(
            "a ranking stands alone: beside an aggregate there are no rows left to rank",
            code="T40",
            span=projection.span,
            hint="use top … as $score",
        )
    check_key(projection, scope)
    found = check_expression(expression, scope)
    if isinstance(found, (TextMatch, AliasRef)):
        raise bare_projection(projection)
    assert not isinstance(found, (Nearest, Bm25, Rrf, GroupColumn))
    return columns.show(found)


def _item(projection: Projection, expression: Projected) -> ReturnItem:
    column = projection.alias or _name_column(expression, projection)
    return ReturnItem(expression, column, projection.alias)


def _name_column(expression: Projected, projection: Projection) -> str:
    if isinstance(projection.expression, (*COMPUTED, *SCORES)) or _is_computed(projection):
        raise TypeCheckError(
            "a computed column needs a name", code="T28", span=projection.span, hint="add as …"
        )
    return column_name(expression)


def _is_computed(projection: Projection) -> bool:
    """Whether an aggregate is over something that has no name."""
    argument = getattr(projection.expression, "argument", None)
    return isinstance(argument, (*COMPUTED, *SCORES))


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
        case AggregateExpr() | CollectExpr():
            return scope.aggregate(expression)
        case NearestExpr() | TextSearchExpr(function="bm25"):
            return ranking_arm(expression, scope)
        case TextSearchExpr() | FuzzyExpr():
            return text_match(expression, scope)
        case RrfExpr():
            return rank_fusion(expression, scope)
        case AliasExpr():
            return AliasRef(expression.name)
        case ObjectExpr():
            return check_object(expression, scope)
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
            "a duration cannot be returned or ordered by",
            code="T26",
            span=expression.span,
            hint="add it to a date",
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
        case Aggregate(argument=argument) | Collect(argument):
            return column_name(argument)
        case ObjectRef(variable):
            return variable
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


def bare_projection(projection: Projection) -> TypeCheckError:
    """What computes nothing to group by: a search call (T40) or a bare word (T31)."""
    code = "T31" if isinstance(projection.expression, AliasExpr) else "T40"
    return TypeCheckError(_unexecutable(projection).message, code=code, span=projection.span)


def _unexecutable(projection: Projection) -> Refusal:
    if isinstance(projection.expression, AliasExpr):
        name = projection.expression.name
        advice = f"`{name}` names no value; write `$variable.property`"
        if name == "distinct":
            advice = "`distinct` stands before the braces: `return distinct { … }`"
    else:
        advice = "a search has no value of its own; use it in `match` or `order`"
    return Refusal("L304", f"unsupported projection expression: {advice}", span=projection.span)
