"""Having: conditions over groups, and what is done with groups once they are made."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.model import Catalog
from omnigraph.compiler.check_filters import check_filter, find_search
from omnigraph.compiler.check_groups import Columns, having_scope
from omnigraph.compiler.check_returns import CheckedReturns
from omnigraph.compiler.scope import Scope
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import (
    TYPE_PROPERTY,
    Aggregate,
    AliasRef,
    Collect,
    GroupColumn,
    NodeRef,
    ObjectRef,
    Predicate,
    Projected,
    PropertyRef,
    SortKey,
)
from omnigraph.ir.query import Finish, OrderItem, ReturnItem
from omnigraph.syntax.query_tree import QueryDecl
from omnigraph.types import PropertyType, Scalar

_TYPE_NAME = PropertyType(Scalar.STRING, nullable=True)


def check_having(query: QueryDecl, returns: CheckedReturns, scope: Scope) -> tuple[Predicate, ...]:
    """Type the conditions of `having`: they see what is projected."""
    if not query.having:
        return ()
    if not returns.is_aggregate:
        raise TypeCheckError(
            "having needs an aggregate in `return`",
            code="T32",
            span=query.having[0].span,
            hint="move the condition into match",
        )
    for condition in query.having:
        search = find_search(condition)
        if search is not None:
            raise TypeCheckError(
                "a search call is a condition of `match` and sees no groups",
                code="T40",
                span=search.span,
            )
    over = having_scope(scope, returns.shown)
    return tuple(each for part in query.having for each in check_filter(part, over))


def make_finish(
    returns: CheckedReturns,
    having: tuple[Predicate, ...],
    order: tuple[OrderItem, ...],
    catalog: Catalog,
) -> Finish | None:
    """What is left to do once there are groups; None where groups are the rows as they are."""
    if returns.columns is None:
        return None
    if returns.is_plain and not having and not returns.is_distinct:
        return None
    outputs = tuple(
        ReturnItem(shown.value, item.column, item.alias)
        for shown, item in zip(returns.shown, returns.items, strict=True)
    )
    values = {item.alias: item.expression for item in outputs if item.alias is not None}
    pairs = zip(returns.items, outputs, strict=True)
    shows = {item.expression: out.expression for item, out in pairs}

    def over_groups(key: SortKey) -> SortKey:
        found = values[key.alias] if isinstance(key, AliasRef) else shows[key]
        assert not isinstance(found, ObjectRef), "it has no order"
        return found

    shown = [item.expression for item in outputs]
    if not returns.is_distinct:
        shown = [each for each in shown if _is_key(each)]
    ties = [tie for each in shown for tie in _tell_apart(each, returns.columns, catalog)]
    return Finish(
        columns=tuple(returns.columns.places),
        returns=outputs,
        having=having,
        is_distinct=returns.is_distinct,
        order=tuple(OrderItem(over_groups(each.expression), each.descending) for each in order),
        ties=tuple(ties),
    )


def _tell_apart(expression: Projected, columns: Columns, catalog: Catalog) -> Iterator[Projected]:
    """What two equal rows have in common: of a variable the type beside the id."""
    yield expression
    match expression:
        case GroupColumn(_, NodeRef(variable, type_name)) if type_name in catalog.interfaces:
            yield columns.show(PropertyRef(variable, TYPE_PROPERTY, _TYPE_NAME))


def _is_key(expression: Projected) -> bool:
    return isinstance(expression, GroupColumn) and not isinstance(
        expression.shows, (Aggregate, Collect)
    )
