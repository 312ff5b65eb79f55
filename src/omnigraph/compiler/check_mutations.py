"""Mutations: each statement names a type, its properties, and values that fit them.

A query that both adds and deletes is refused with L301, an update of a key member with L302. A
checked statement is complete: it becomes its operation of the IR at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.compiler.check_filters import COMPARE_KINDS
from omnigraph.compiler.check_values import Slot, check_assigned_value, check_matched_value
from omnigraph.compiler.not_yet import not_yet
from omnigraph.compiler.scope import ID, ID_TYPE, Scope, require_property
from omnigraph.compiler.typed import Refusal, TypedMutation
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.query import (
    Assignment,
    Delete,
    Insert,
    MutationIR,
    MutationOp,
    MutationPredicate,
    Parameter,
    Update,
)
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    AliasExpr,
    CompareOp,
    Condition,
    Expr,
    FilterClause,
    PropertyMatch,
    QueryDecl,
)
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

ENDPOINTS: Final = {"from": "src", "to": "dst"}
"""How a statement spells the ends of an edge, and the columns that hold them."""


_OnType: TypeAlias = InsertStatement | UpdateStatement | DeleteStatement


def check_mutation(query: QueryDecl, params: tuple[Parameter, ...], scope: Scope) -> TypedMutation:
    """Type every statement of `query`."""
    if query.match:
        raise not_yet("match before statements")
    if query.returns:
        raise not_yet("return after statements")
    ir = MutationIR(query.name, params, tuple(_operation(s, scope) for s in query.mutations))
    return TypedMutation(ir, tuple(_refusals(ir, query, scope.catalog)))


def _operation(statement: Statement, scope: Scope) -> MutationOp:
    match statement:
        case InsertStatement(label=str()) | UpdateStatement(label=str()):
            raise not_yet("a label")
        case DeleteStatement(label=str()):
            raise not_yet("a label")
        case InsertStatement():
            return _insert(statement, scope)
        case UpdateStatement():
            return _update(statement, scope)
        case DeleteStatement():
            owner = _entity(statement, scope.catalog)
            return Delete(owner.kind, owner.name, _predicate(statement.where, owner, scope))
        case UpsertStatement():
            raise not_yet("upsert")
        case ForStatement():
            raise not_yet("for")
        case UpdateBound() | DeleteBound():
            raise not_yet("a bound update or delete")
        case _:
            assert_never(statement)


def _insert(statement: InsertStatement, scope: Scope) -> Insert:
    owner = _entity(statement, scope.catalog)
    assignments = _assignments(statement, owner, scope)
    written = {assignment.property for assignment in statement.assignments}
    missing = [name for name in _find_required(owner, written) if name not in written]
    if missing:
        raise TypeCheckError(
            f"insert {owner.name} omits {_quote_names(missing)}, which {owner.name} requires",
            code="T12",
            span=statement.span,
        )
    return Insert(owner.kind, owner.name, assignments)


def _update(statement: UpdateStatement, scope: Scope) -> Update:
    owner = _entity(statement, scope.catalog)
    if isinstance(owner, EdgeType):
        raise TypeCheckError(
            f"{owner.name} is an edge type, and edges are not updated; delete and insert instead",
            code="T16",
            span=statement.span,
        )
    assignments = _assignments(statement, owner, scope)
    return Update(owner.name, assignments, _predicate(statement.where, owner, scope))


def _entity(statement: _OnType, catalog: Catalog) -> EntityType:
    """The type a statement names, spelled exactly; a node wins over an edge of the same name."""
    owner = catalog.nodes.get(statement.type_name) or catalog.edges.get(statement.type_name)
    if owner is None:
        raise TypeCheckError(
            f"there is no type {statement.type_name}",
            code="T10",
            span=statement.span,
            hint=did_you_mean(statement.type_name, [*catalog.nodes, *catalog.edges]),
        )
    return owner


def _assignments(
    statement: InsertStatement | UpdateStatement, owner: EntityType, scope: Scope
) -> tuple[Assignment, ...]:
    if not statement.assignments:
        raise TypeCheckError(
            f"nothing is assigned to {owner.name}", code="T10", span=statement.span
        )
    seen: set[str] = set()
    assignments: list[Assignment] = []
    for match in statement.assignments:
        assignments.append(_assignment(match, owner, scope))
        if match.property in seen:
            raise TypeCheckError(
                f"{owner.name}.{match.property} is assigned twice", code="T13", span=match.span
            )
        seen.add(match.property)
    return tuple(assignments)


def _assignment(match: PropertyMatch, owner: EntityType, scope: Scope) -> Assignment:
    column, slot = _column(match.property, match.span, owner)
    return Assignment(column, check_assigned_value(match.value, slot, scope))


def _column(name: str, span: Span, owner: EntityType) -> tuple[str, Slot]:
    """The column that a statement names: a property or an end of an edge (T11)."""
    if isinstance(owner, EdgeType) and name in ENDPOINTS:
        return ENDPOINTS[name], Slot(f"`{name}` of {owner.name}", ID_TYPE)
    found = require_property(owner, name, code="T11", span=span, also=_endpoints_of(owner))
    return found.name, Slot(f"{owner.name}.{found.name}", found.type)


def _find_slot(word: AliasExpr, owner: EntityType) -> tuple[str, Slot]:
    """The column that a `where` names: every row can be found by its id."""
    if word.name == ID:
        return ID, Slot(f"the id of {owner.name}", ID_TYPE)
    return _column(word.name, word.span, owner)


def _find_required(owner: EntityType, written: set[str]) -> Iterator[str]:
    yield from _endpoints_of(owner)
    for found in owner.properties.values():
        # A vector whose source text is given can be computed from it.
        is_computed = found.embed is not None and found.embed.source in written
        if not found.type.nullable and found.default is None and not is_computed:
            yield found.name


def _endpoints_of(owner: EntityType) -> tuple[str, ...]:
    return tuple(ENDPOINTS) if isinstance(owner, EdgeType) else ()


def _predicate(where: Condition, owner: EntityType, scope: Scope) -> MutationPredicate:
    match where:
        case FilterClause(AliasExpr() as word, op, value) if not op.is_word:
            return _comparison(word, op, value, owner, scope)
        case _:
            raise not_yet("a condition in where that is not `property op value`")


def _comparison(
    word: AliasExpr, op: CompareOp, value: Expr, owner: EntityType, scope: Scope
) -> MutationPredicate:
    column, slot = _find_slot(word, owner)
    if slot.type.is_blob:
        raise TypeCheckError(
            f"{slot.label} is a Blob and cannot be compared", code="T11", span=word.span
        )
    if slot.type.is_list or slot.type.is_vector:
        raise TypeCheckError(
            f"{slot.label} is {slot.type}, and `where` compares single values",
            code="T7",
            span=word.span,
        )
    found = check_matched_value(value, slot, scope)
    return MutationPredicate(column, COMPARE_KINDS[op], found, slot.type)


def _refusals(ir: MutationIR, query: QueryDecl, catalog: Catalog) -> Iterator[Refusal]:
    deletes = sum(isinstance(operation, Delete) for operation in ir.ops)
    if 0 < deletes < len(ir.ops):
        yield Refusal(
            "L301",
            f"mutation '{ir.name}' on the same query mixes inserts/updates and deletes; "
            "split into separate mutations: (1) inserts and updates, then (2) deletes.",
            span=query.span,
        )
    for operation in ir.ops:
        if isinstance(operation, Update):
            yield from _key_refusals(operation, catalog.nodes[operation.type_name])


def _key_refusals(operation: Update, owner: NodeType) -> Iterator[Refusal]:
    for assignment in operation.assignments:
        if assignment.property in (owner.key or ()):
            yield Refusal(
                "L302",
                f"cannot update @key property `{assignment.property}` of {owner.name}: "
                "it is the node's identity; insert a new node and delete this one instead",
                type_name=owner.name,
                property=assignment.property,
            )


def _quote_names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
