"""The `return` of a mutation, and the label of the statement that it reads (T45).

One statement of a query may carry a label. Without a label or a `match` there is nothing to return.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from omnigraph.catalog.model import InterfaceType
from omnigraph.compiler.check_returns import check_returns
from omnigraph.compiler.match_columns import MatchColumns
from omnigraph.compiler.scope import RowFields, Scope
from omnigraph.compiler.walk import rebuild, walk
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import TYPE_PROPERTY, NodeRef, PropertyRef
from omnigraph.ir.mutations import ForEach, MutationOp, PlainOp, Returned, ReturnedEntity
from omnigraph.ir.query import RowType
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    AggregateExpr,
    CollectExpr,
    FuzzyExpr,
    NearestExpr,
    Projection,
    QueryDecl,
    RrfExpr,
    TextSearchExpr,
)
from omnigraph.syntax.statement_tree import (
    ForStatement,
    InsertStatement,
    Statement,
    UpsertStatement,
)


def check_labels(query: QueryDecl, scope: Scope) -> None:
    """One label, of a free name, where a statement may carry one."""
    taken: str | None = None
    for statement, is_repeated in _statements(query):
        label = getattr(statement, "label", None)
        if label is None:
            continue
        if taken is not None:
            raise _refuse(f"one statement carries a label, and `${taken}` is one", statement.span)
        if scope.knows(label) or label in _row_names(query):
            raise _refuse(f"the name `${label}` is taken", statement.span)
        if is_repeated and not isinstance(statement, (InsertStatement, UpsertStatement)):
            raise _refuse(
                "inside `for` and after `match` only insert and upsert take a label",
                statement.span,
            )
        taken = label


def check_returned(
    query: QueryDecl, ops: Sequence[MutationOp], scope: Scope, matched: MatchColumns | None
) -> Returned | None:
    """Type the `return` of a mutation."""
    if not query.returns:
        return None
    labelled = [op for op in _plain(ops) if getattr(op, "label", None) is not None]
    if not labelled and matched is None:
        raise _refuse("nothing to return", query.returns[0].span, hint="label a statement: as $x")
    for projection in query.returns:
        _refuse_groups(projection)
    inner = _scope_of(ops, labelled, scope)
    checked = check_returns(query, inner)
    items = checked.items
    if matched is not None:
        items = rebuild(items, lambda part: _as_matched(part, inner, matched))
    entities = tuple(_find_entities(items, inner, scope, matched))
    return Returned(items, query.distinct, entities)


def _as_matched(part: object, inner: Scope, matched: MatchColumns) -> object | None:
    """What no entity is read for again, such as the hops of a path: as it was matched."""
    if not isinstance(part, (PropertyRef, NodeRef)):
        return None
    is_type = isinstance(part, PropertyRef) and part.property == TYPE_PROPERTY
    if inner.variable(part.variable) is not None and not is_type:
        return part
    return matched.project(part)


def _statements(query: QueryDecl) -> Iterator[tuple[Statement, bool]]:
    """Every statement, and whether it runs for several rows."""
    for statement in query.mutations:
        if isinstance(statement, ForStatement):
            yield from ((each, True) for each in statement.body)
        else:
            yield statement, bool(query.match)


def _row_names(query: QueryDecl) -> set[str]:
    return {each.variable for each in query.mutations if isinstance(each, ForStatement)}


def _plain(ops: Sequence[MutationOp]) -> Iterator[PlainOp]:
    for op in ops:
        yield from op.body if isinstance(op, ForEach) else (op,)


def _scope_of(ops: Sequence[MutationOp], labelled: Sequence[PlainOp], scope: Scope) -> Scope:
    """What `return` can name: the label, and the element of `for` that its statement ran for."""
    variables = dict(scope.variables)
    rows = dict(scope.rows)
    for op in labelled:
        label = getattr(op, "label", None)
        assert label is not None
        variables[label] = scope.catalog.entity(f"{op.entity_kind}:{op.type_name}")
    for each in ops:
        if isinstance(each, ForEach) and any(op in each.body for op in labelled):
            assert isinstance(each.rows.type, RowType)
            rows[each.variable] = RowFields(replace(each.rows.type, is_list=False), is_column=True)
    return replace(scope, variables=variables, rows=rows)


def _refuse_groups(projection: Projection) -> None:
    for each in walk(projection):
        if isinstance(each, (AggregateExpr, CollectExpr)):
            hint = "return the rows; the result counts what was changed"
            raise _refuse("the return of a mutation has no aggregates", each.span, hint)
        if isinstance(each, (NearestExpr, RrfExpr, TextSearchExpr, FuzzyExpr)):
            raise _refuse("the return of a mutation has no scores", each.span)


def _find_entities(
    items: object, inner: Scope, scope: Scope, matched: MatchColumns | None
) -> Iterator[ReturnedEntity]:
    """The variables whose values are read after the statements."""
    names = dict.fromkeys(
        each.variable for each in walk(items) if isinstance(each, (PropertyRef, NodeRef))
    )
    labels = [name for name in inner.variables if name not in scope.variables]
    for name in dict.fromkeys([*labels, *names]):
        owner = inner.variables.get(name)
        if owner is None:
            continue  # a field of an element of `for`, or what the match gives as it was
        column = type_column = None
        if name in scope.variables and matched is not None:
            column = matched.add_id(name, owner).property
            if isinstance(owner, InterfaceType) and name not in scope.narrowed:
                type_column = matched.add_type(name).property
        if isinstance(owner, InterfaceType):
            yield ReturnedEntity(name, "node", scope.node_type(name), column, type_column)
        else:
            yield ReturnedEntity(name, owner.kind, owner.name, column)


def _refuse(message: str, span: Span, hint: str | None = None) -> TypeCheckError:
    return TypeCheckError(message, code="T45", span=span, hint=hint)
