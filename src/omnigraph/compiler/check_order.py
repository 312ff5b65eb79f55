"""Order: by properties, by aliases, or by one ranking that comes first and decides alone.

rrf, directly or through an alias     needs `limit`                          T21
nearest on its own                    needs `limit`, allows no alias beside  T17 T18
an aggregate query                    orders by aliases and projected properties
anything else                         `unsupported ordering expression`
"""

from __future__ import annotations

from omnigraph.compiler.check_returns import CheckedReturns, Typed, check_expression
from omnigraph.compiler.scope import Scope
from omnigraph.compiler.typed import Refusal
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import (
    AliasRef,
    Arithmetic,
    Bm25,
    Call,
    Case,
    Minus,
    Nearest,
    NodeRef,
    PropertyRef,
    Rrf,
    SortKey,
    Truth,
)
from omnigraph.ir.query import OrderItem
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import NullExpr, Ordering, QueryDecl
from omnigraph.types import PropertyType


def check_order(
    query: QueryDecl, returns: CheckedReturns, scope: Scope
) -> tuple[tuple[OrderItem, ...], tuple[Refusal, ...]]:
    """Type the orderings of `query`. An alias that no projection has is refused with L303."""
    typed = [(item, _check_key(item, returns, scope)) for item in query.order]
    _check_rankings(typed, returns, has_limit=query.limit is not None)
    items: list[OrderItem] = []
    refusals: list[Refusal] = []
    for index, (ordering, expression) in enumerate(typed):
        if isinstance(expression, AliasRef) and expression.alias not in returns.aliases:
            refusals.append(_unknown_alias(ordering, expression.alias, returns))
        else:
            key = _sort_key(expression, index, ordering.span, returns)
            items.append(OrderItem(key, ordering.descending))
    return tuple(items), tuple(refusals)


def _check_key(ordering: Ordering, returns: CheckedReturns, scope: Scope) -> Typed:
    if isinstance(ordering.expression, NullExpr) and "null" in returns.aliases:
        return AliasRef("null")
    return check_expression(ordering.expression, scope)


def _check_rankings(
    typed: list[tuple[Ordering, Typed]], returns: CheckedReturns, *, has_limit: bool
) -> None:
    has_alias = any(isinstance(expression, AliasRef) for _, expression in typed)
    for ordering, expression in typed:
        match _resolve_alias(expression, returns):
            case Rrf() if not has_limit:
                raise TypeCheckError("an rrf order needs a `limit`", code="T21", span=ordering.span)
        match expression:
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
                )


def _sort_key(expression: Typed, index: int, span: Span, returns: CheckedReturns) -> SortKey:
    match expression:
        case AliasRef(alias):
            _require_sortable(returns.aliases[alias], span)
            return expression
        case PropertyRef():
            _require_sortable(expression, span)
            if returns.is_aggregate and all(expression != i.expression for i in returns.items):
                raise _ordering_error(
                    f"an aggregate query orders by an alias or a projected property, and "
                    f"`${expression.variable}.{expression.property}` is not projected",
                    span,
                )
            return expression
        case Nearest() | Bm25() | Rrf():
            if returns.is_aggregate:
                raise _ordering_error("an aggregate query has no rows left to rank", span)
            if index > 0:
                raise _ordering_error("a ranking decides alone, so it comes first", span)
            return expression
        case Arithmetic() | Minus() | Call() | Case() | Truth():
            if returns.is_aggregate:
                raise _ordering_error("an aggregate query orders by what it projects", span)
            _require_sortable(expression, span)
            return expression
        case NodeRef(variable):
            raise _ordering_error(f"order by a property, as in `${variable}.property`", span)
        case _:
            raise _ordering_error("order by `$variable.property` or by an alias", span)


def _resolve_alias(expression: Typed, returns: CheckedReturns) -> Typed:
    if isinstance(expression, AliasRef):
        return returns.aliases.get(expression.alias, expression)
    return expression


def _require_sortable(expression: Typed, span: Span) -> None:
    """Lists and vectors have no order."""
    found = getattr(expression, "type", None)
    if isinstance(found, PropertyType) and (found.is_list or found.is_vector):
        raise _ordering_error(f"a {found} has no order", span)


def _ordering_error(advice: str, span: Span) -> TypeCheckError:
    return TypeCheckError(f"unsupported ordering expression: {advice}", span=span)


def _unknown_alias(ordering: Ordering, alias: str, returns: CheckedReturns) -> Refusal:
    return Refusal(
        "L303",
        f"no projection has the alias `{alias}`",
        span=ordering.span,
        hint=did_you_mean(alias, returns.aliases)
        or f"name one with `as {alias}`, or order by `$variable.{alias}`",
    )
