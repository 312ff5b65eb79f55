"""Order: by any value of a row, by aliases, or by one ranking that comes first and decides alone.

rrf, directly or through an alias     needs `limit`                          T21
nearest, directly or through one      needs `limit`, allows no alias beside  T17 T18
groups, or `distinct`                 what is projected, by alias or spelled the same way   T33
lists, vectors, constants             have no order                          T33
"""

from __future__ import annotations

from omnigraph.compiler.check_groups import find_shown, unknown_word
from omnigraph.compiler.check_returns import SCORES, CheckedReturns, Typed, check_expression
from omnigraph.compiler.scope import Scope
from omnigraph.compiler.typed import Refusal
from omnigraph.compiler.walk import walk
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import (
    AliasRef,
    Arithmetic,
    Bm25,
    Call,
    Case,
    Collect,
    Constant,
    GroupColumn,
    Minus,
    Nearest,
    NodeRef,
    ObjectRef,
    Param,
    PropertyRef,
    Rrf,
    SortKey,
    TextMatch,
    Truth,
)
from omnigraph.ir.query import OrderItem
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    AggregateExpr,
    AliasExpr,
    CollectExpr,
    Expr,
    NullExpr,
    Ordering,
    PropertyExpr,
    QueryDecl,
    VariableExpr,
)
from omnigraph.types import PropertyType


def check_order(
    query: QueryDecl, returns: CheckedReturns, scope: Scope
) -> tuple[tuple[OrderItem, ...], tuple[Refusal, ...]]:
    """Type the orderings of `query`. An alias that no projection has is refused with L303."""
    if returns.is_aggregate or returns.is_distinct:
        return tuple(_grouped_item(each, returns, scope) for each in query.order), ()
    typed = [(item, _check_key(item, returns, scope)) for item in query.order]
    _check_rankings(typed, has_limit=query.limit is not None)
    _check_fused_columns(query, typed, returns)
    items: list[OrderItem] = []
    refusals: list[Refusal] = []
    for index, (ordering, expression) in enumerate(typed):
        if isinstance(expression, AliasRef) and expression.alias not in returns.aliases:
            refusals.append(_unknown_alias(ordering, expression.alias, returns))
        else:
            key = _sort_key(expression, index, ordering, returns, scope)
            items.append(OrderItem(key, ordering.descending))
    return tuple(items), tuple(refusals)


def _grouped_item(ordering: Ordering, returns: CheckedReturns, scope: Scope) -> OrderItem:
    found = find_shown(ordering.expression, returns.shown)
    if found is None:
        raise _not_shown(ordering, returns, scope)
    shows = found.value.shows if isinstance(found.value, GroupColumn) else found.value
    _require_sortable(shows, ordering.span)
    if found.alias is not None and isinstance(ordering.expression, (AliasExpr, NullExpr)):
        return OrderItem(AliasRef(found.alias), ordering.descending)
    if isinstance(shows, (Constant, Param)) and not mentions_rows(ordering.expression, scope):
        raise _ordering_error("it is the same in every row", ordering.span)
    assert not isinstance(shows, ObjectRef)
    return OrderItem(shows, ordering.descending)


def _not_shown(ordering: Ordering, returns: CheckedReturns, scope: Scope) -> TypeCheckError:
    if isinstance(ordering.expression, AliasExpr):
        return unknown_word(ordering.expression, returns.shown)
    if isinstance(ordering.expression, SCORES):
        return TypeCheckError(
            "a ranking stands alone: groups and distinct rows have none",
            code="T40",
            span=ordering.span,
            hint="use top … as $score",
        )
    if not isinstance(ordering.expression, (AggregateExpr, CollectExpr)):
        check_expression(ordering.expression, scope)
    return _ordering_error(
        "with aggregates or distinct, an alias or a projection spelled the same way orders",
        ordering.span,
        hint="project it",
    )


def _check_key(ordering: Ordering, returns: CheckedReturns, scope: Scope) -> Typed:
    if isinstance(ordering.expression, NullExpr) and "null" in returns.aliases:
        return AliasRef("null")
    found = check_expression(ordering.expression, scope)
    if isinstance(found, AliasRef):
        shown = returns.aliases.get(found.alias)
        if isinstance(shown, (Nearest, Bm25, Rrf)):
            # The alias of a score is the ranking itself, and not a sort of its column.
            if isinstance(shown, Nearest) and ordering.descending:
                raise _ordering_error(
                    "nearest always puts the smallest distance first", ordering.span
                )
            return shown
    return found


def _check_rankings(typed: list[tuple[Ordering, Typed]], *, has_limit: bool) -> None:
    has_alias = any(isinstance(expression, AliasRef) for _, expression in typed)
    for ordering, expression in typed:
        match expression:
            case Rrf() if not has_limit:
                raise TypeCheckError("an rrf order needs a `limit`", code="T21", span=ordering.span)
            case Nearest() if not has_limit:
                raise TypeCheckError(
                    "a nearest order needs a `limit`: how many rows are near enough?",
                    code="T17",
                    span=ordering.span,
                )
            case Nearest() if has_alias:
                raise TypeCheckError(
                    "a nearest order decides alone and cannot be combined with an alias",
                    code="T18",
                    span=ordering.span,
                    hint="leave the alias out",
                )


def _check_fused_columns(
    query: QueryDecl, typed: list[tuple[Ordering, Typed]], returns: CheckedReturns
) -> None:
    """A fused score is known of the rows that it ranks, and of no others."""
    first = typed[0][1] if typed else None
    for item, projection in zip(returns.items, query.returns, strict=False):
        if isinstance(item.expression, Rrf) and item.expression != first:
            raise TypeCheckError(
                "rrf is a column only where it is also the first ordering",
                code="T21",
                span=projection.span,
                hint=f"order {{ {item.column} }} with a `limit`",
            )


def _sort_key(
    expression: Typed, index: int, ordering: Ordering, returns: CheckedReturns, scope: Scope
) -> SortKey:
    span = ordering.span
    match expression:
        case AliasRef(alias):
            _require_sortable(returns.aliases[alias], span)
            return expression
        case Nearest() | Bm25() | Rrf():
            if index > 0:
                raise TypeCheckError(
                    "a ranking stands alone: it decides, so it comes first",
                    code="T40",
                    span=span,
                )
            return expression
        case NodeRef(variable):
            raise _ordering_error(f"order by a property, as in `${variable}.property`", span)
        case TextMatch():
            raise TypeCheckError(
                "a ranking stands alone: a search finds rows and gives them no order",
                code="T40",
                span=span,
                hint="order by `bm25(…)`",
            )
        case PropertyRef() | Constant() | Arithmetic() | Minus() | Call() | Case() | Truth() if (
            mentions_rows(ordering.expression, scope)
        ):
            _require_sortable(expression, span)
            return expression
        case _:
            raise _ordering_error("it is the same in every row", span)


def mentions_rows(expression: Expr, scope: Scope) -> bool:
    """Whether a bound variable is written in it; `type($x)` may be one name for all of them."""
    return any(
        isinstance(node, (VariableExpr, PropertyExpr)) and scope.is_bound(_owner(node))
        for node in walk(expression)
    )


def _owner(node: VariableExpr | PropertyExpr) -> str:
    return node.name if isinstance(node, VariableExpr) else node.variable


def _require_sortable(expression: Typed, span: Span) -> None:
    """Lists, vectors and objects have no order."""
    if isinstance(expression, (ObjectRef, Collect)):
        raise _ordering_error("it has no order", span)
    found = getattr(expression, "type", None)
    if isinstance(found, PropertyType) and (found.is_list or found.is_vector):
        raise _ordering_error(f"a {found} has no order", span)


def _ordering_error(advice: str, span: Span, hint: str | None = None) -> TypeCheckError:
    return TypeCheckError(
        f"unsupported ordering expression: cannot order by it: {advice}",
        code="T33",
        span=span,
        hint=hint,
    )


def _unknown_alias(ordering: Ordering, alias: str, returns: CheckedReturns) -> Refusal:
    return Refusal(
        "L303",
        f"no projection has the alias `{alias}`",
        span=ordering.span,
        hint=did_you_mean(alias, returns.aliases)
        or f"name one with `as {alias}`, or order by `$variable.{alias}`",
    )
