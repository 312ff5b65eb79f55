"""Mutations: each statement names a type or a matched variable, and values that fit it.

    check_assignments.py   what is stored                    T3 T7 T10 T11 T13 T14 T27
    check_where.py         which rows an update or delete means
    match_columns.py       what statements after a `match` want of its rows
    check_mutation_return.py   labels and `return`           T45

A query that both adds and deletes is refused with L301, an update of a key member with L302. A
checked statement is complete: it becomes its operation of the IR at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, InterfaceType, NodeType
from omnigraph.compiler.check_assignments import check_assignments, ends_of
from omnigraph.compiler.check_match import check_pattern
from omnigraph.compiler.check_mutation_return import check_labels, check_returned
from omnigraph.compiler.check_where import check_where, with_words
from omnigraph.compiler.lower import lower_read
from omnigraph.compiler.match_columns import MatchColumns
from omnigraph.compiler.scope import RowFields, Scope
from omnigraph.compiler.typed import Refusal, TypedMutation, TypedRead
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir import mutations as ir
from omnigraph.ir.query import Parameter
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import PropertyMatch, QueryDecl
from omnigraph.syntax.statement_tree import (
    DeleteBound,
    DeleteStatement,
    ForStatement,
    InsertStatement,
    Statement,
    UpdateBound,
    UpdateStatement,
    UpsertStatement,
)

_OnType: TypeAlias = InsertStatement | UpsertStatement | UpdateStatement | DeleteStatement


def check_mutation(query: QueryDecl, params: tuple[Parameter, ...], scope: Scope) -> TypedMutation:
    """Type the match, every statement and the return of `query`."""
    pattern = check_pattern(query.match, scope) if query.match else None
    matched = MatchColumns() if query.match else None
    check_labels(query, scope)
    ops = tuple(_check_statement(each, scope, matched) for each in query.mutations)
    returned = check_returned(query, ops, scope, matched)
    match = None
    if pattern is not None and matched is not None:
        match = lower_read(TypedRead(query.name, params, pattern, matched.list_items()))
    mutation = ir.MutationIR(query.name, params, ops, match, returned)
    return TypedMutation(mutation, tuple(_refusals(mutation, query, scope.catalog)))


def _check_statement(
    statement: Statement, scope: Scope, matched: MatchColumns | None
) -> ir.MutationOp:
    if isinstance(statement, ForStatement):
        return _check_for(statement, scope, matched)
    return _check_plain(statement, scope, matched)


def _check_plain(statement: Statement, scope: Scope, matched: MatchColumns | None) -> ir.PlainOp:
    match statement:
        case InsertStatement():
            return _check_insert(statement, scope, matched)
        case UpsertStatement():
            return _check_upsert(statement, scope, matched)
        case UpdateStatement():
            _refuse_where_after_match(statement, matched)
            return _check_update(statement, scope)
        case DeleteStatement():
            _refuse_where_after_match(statement, matched)
            owner = _find_entity(statement, scope.catalog)
            where = check_where(statement.where, owner, scope)
            return ir.Delete(owner.kind, owner.name, where, statement.label)
        case UpdateBound():
            owner, column = _find_bound(statement, scope, matched)
            _refuse_moving(statement.assignments, owner)
            assigned = check_assignments(
                statement.assignments, owner, scope, statement.span, matched
            )
            return ir.UpdateBound(owner.kind, owner.name, column, assigned)
        case DeleteBound():
            owner, column = _find_bound(statement, scope, matched)
            return ir.DeleteBound(owner.kind, owner.name, column)
        case ForStatement():
            raise TypeCheckError(
                "`for` stands alone: not inside another `for`", code="T43", span=statement.span
            )
        case _:
            assert_never(statement)


def _check_insert(
    statement: InsertStatement, scope: Scope, matched: MatchColumns | None
) -> ir.Insert:
    owner = _find_entity(statement, scope.catalog)
    assigned = check_assignments(statement.assignments, owner, scope, statement.span, matched)
    _require_complete("insert", statement, owner)
    return ir.Insert(owner.kind, owner.name, assigned, statement.label)


def _check_upsert(
    statement: UpsertStatement, scope: Scope, matched: MatchColumns | None
) -> ir.Upsert:
    owner = _find_entity(statement, scope.catalog)
    assigned = check_assignments(statement.assignments, owner, scope, statement.span, matched)
    _require_key(statement, owner)
    _require_complete("upsert", statement, owner)
    return ir.Upsert(owner.kind, owner.name, assigned, statement.label)


def _check_update(statement: UpdateStatement, scope: Scope) -> ir.Update:
    owner = _find_entity(statement, scope.catalog)
    _refuse_moving(statement.assignments, owner)
    words = with_words(scope, owner)
    assigned = check_assignments(statement.assignments, owner, words, statement.span)
    where = check_where(statement.where, owner, scope)
    return ir.Update(owner.kind, owner.name, assigned, where, statement.label)


# For


def _check_for(statement: ForStatement, scope: Scope, matched: MatchColumns | None) -> ir.ForEach:
    rows = scope.rows.get(statement.rows)
    if matched is not None:
        raise _misplaced_for("`for` does not follow a `match`", statement.span)
    if rows is None or not rows.type.is_list:
        raise _misplaced_for(
            f"`for` runs over a list of rows, and `${statement.rows}` is none", statement.span
        )
    if scope.knows(statement.variable):
        raise _misplaced_for(
            f"`for` needs a name of its own, and `${statement.variable}` is taken", statement.span
        )
    is_batched = _can_batch(statement.body, scope.catalog)
    element = RowFields(replace(rows.type, is_list=False), is_column=is_batched)
    inner = replace(scope, rows={**scope.rows, statement.variable: element})
    body = tuple(_check_plain(each, inner, None) for each in statement.body)
    return ir.ForEach(statement.variable, Parameter(statement.rows, rows.type), body, is_batched)


def _misplaced_for(message: str, span: Span) -> TypeCheckError:
    return TypeCheckError(
        message, code="T43", span=span, hint="declare it as `$rows: [{ field: Type, … }]`"
    )


def _can_batch(body: Sequence[Statement], catalog: Catalog) -> bool:
    """Whether each statement may run over all elements before the next one does.

    Two statements that write one table have to take turns, unless all they do is add rows.
    """
    if not all(isinstance(each, (InsertStatement, UpsertStatement)) for each in body):
        return False
    named = [each for each in body if isinstance(each, (InsertStatement, UpsertStatement))]
    shared = {name for name, count in Counter(s.type_name for s in named).items() if count > 1}
    return all(_only_adds(each, catalog) for each in named if each.type_name in shared)


def _only_adds(statement: InsertStatement | UpsertStatement, catalog: Catalog) -> bool:
    owner = catalog.nodes.get(statement.type_name) or catalog.edges.get(statement.type_name)
    return isinstance(statement, InsertStatement) and owner is not None and owner.key is None


# Types and variables


def _find_entity(statement: _OnType, catalog: Catalog) -> EntityType:
    """The type a statement names, spelled exactly; a node wins over an edge of the same name."""
    owner = catalog.nodes.get(statement.type_name) or catalog.edges.get(statement.type_name)
    if owner is None:
        raise TypeCheckError(
            _say_no_type(statement.type_name, catalog),
            code="T10",
            span=statement.span,
            hint=_hint_type(statement.type_name, catalog),
        )
    return owner


def _say_no_type(name: str, catalog: Catalog) -> str:
    is_interface = name in catalog.interfaces
    return (
        f"{name} is an interface, which has no rows of its own"
        if is_interface
        else f"there is no type {name}"
    )


def _hint_type(name: str, catalog: Catalog) -> str | None:
    if name in catalog.interfaces:
        types = catalog.types_of(name)
        return f"name a type that implements it: {', '.join(types)}" if types else None
    return did_you_mean(name, [*catalog.nodes, *catalog.edges])


def _find_bound(
    statement: UpdateBound | DeleteBound, scope: Scope, matched: MatchColumns | None
) -> tuple[EntityType, str]:
    """The type of a matched variable, and the column that has its ids."""
    owner = scope.variable(statement.variable)
    if isinstance(owner, InterfaceType):
        raise TypeCheckError(
            f"`${statement.variable}` is bound to the interface {owner.name}, which has no rows "
            "of its own",
            code="T10",
            span=statement.span,
            hint="bind the type whose nodes are to change",
        )
    if matched is None or not isinstance(owner, (NodeType, EdgeType)):
        raise TypeCheckError(
            f"`${statement.variable}` is not a node or edge variable of a `match`",
            code="T44",
            span=statement.span,
            hint="bind it in `match`, or name a type and say `where`",
        )
    return owner, matched.add_id(statement.variable, owner).property


def _refuse_where_after_match(
    statement: UpdateStatement | DeleteStatement, matched: MatchColumns | None
) -> None:
    if matched is not None:
        raise TypeCheckError(
            f"after `match` a statement names a variable, not `{statement.type_name} … where`",
            code="T44",
            span=statement.span,
            hint="put the condition into `match`",
        )


def _refuse_moving(assignments: tuple[PropertyMatch, ...], owner: EntityType) -> None:
    for each in assignments:
        if each.property in ends_of(owner):
            raise TypeCheckError(
                f"cannot move an edge: `{each.property}` of {owner.name} is not assigned",
                code="T44",
                span=each.span,
                hint="delete the edge and insert another one",
            )


def _require_key(statement: UpsertStatement, owner: EntityType) -> None:
    written = {each.property for each in statement.assignments}
    if owner.key is None and isinstance(owner, NodeType):
        raise TypeCheckError(
            f"upsert needs the key, and {owner.name} has no @key",
            code="T42",
            span=statement.span,
            hint=f"use insert {owner.name}",
        )
    missing = [name for name in owner.key or () if name in owner.properties and name not in written]
    if missing:
        raise TypeCheckError(
            f"upsert needs the key: {owner.name} lacks {_quote_names(missing)}",
            code="T42",
            span=statement.span,
            hint=f"give all of it, or use insert {owner.name}",
        )


def _require_complete(
    verb: str, statement: InsertStatement | UpsertStatement, owner: EntityType
) -> None:
    written = {each.property for each in statement.assignments}
    missing = [name for name in _find_required(owner, written) if name not in written]
    if missing:
        raise TypeCheckError(
            f"{verb} {owner.name} omits {_quote_names(missing)}, which {owner.name} requires",
            code="T12",
            span=statement.span,
            hint=_complete_hint(verb, owner),
        )


def _complete_hint(verb: str, owner: EntityType) -> str | None:
    """An insert replaces a node of the same key as a whole: `update` is what keeps the rest."""
    if verb != "insert" or owner.key is None:
        return None
    return f"insert replaces the whole {owner.name} of that key; update changes what it names"


def _find_required(owner: EntityType, written: set[str]) -> Iterator[str]:
    yield from ends_of(owner)
    for found in owner.properties.values():
        # A vector whose source text is given can be computed from it.
        is_computed = found.embed is not None and found.embed.source in written
        if not found.type.nullable and found.default is None and not is_computed:
            yield found.name


# Refusals


def _refusals(mutation: ir.MutationIR, query: QueryDecl, catalog: Catalog) -> Iterator[Refusal]:
    ops = mutation.list_plain_ops()
    deletes = sum(isinstance(op, (ir.Delete, ir.DeleteBound)) for op in ops)
    if 0 < deletes < len(ops):
        yield Refusal(
            "L301",
            f"mutation '{mutation.name}' on the same query mixes inserts/updates and deletes; "
            "split into separate mutations: (1) inserts and updates, then (2) deletes.",
            span=query.span,
        )
    for op in ops:
        if isinstance(op, (ir.Update, ir.UpdateBound)):
            yield from _key_refusals(op, catalog.entity(f"{op.entity_kind}:{op.type_name}"))


def _key_refusals(op: ir.Update | ir.UpdateBound, owner: EntityType) -> Iterator[Refusal]:
    for assignment in op.assignments:
        if assignment.property in (owner.key or ()):
            yield Refusal(
                "L302",
                f"cannot update @key property `{assignment.property}` of {owner.name}: "
                f"it is the {owner.kind}'s identity; insert a new {owner.kind} and delete this "
                "one instead",
                type_name=owner.name,
                property=assignment.property,
            )


def _quote_names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
