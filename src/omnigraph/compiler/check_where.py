"""Where: the condition of an update or delete, in which bare words are properties of its type."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.model import EntityType
from omnigraph.compiler.check_assignments import find_slot, require_declared
from omnigraph.compiler.check_filters import COMPARE_KINDS, check_condition, find_search
from omnigraph.compiler.check_values import Slot, check_matched_value
from omnigraph.compiler.scope import ID, ID_TYPE, Scope, Words
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import And, Compare, Not, Or, Predicate, PropertyRef
from omnigraph.ir.mutations import SELF
from omnigraph.syntax.query_tree import (
    AliasExpr,
    AndTest,
    Condition,
    FilterClause,
    LiteralExpr,
    NotTest,
    NowExpr,
    OrTest,
    VariableExpr,
)


def with_words(scope: Scope, owner: EntityType) -> Scope:
    """The scope in which bare words stand for the row that a statement changes."""
    return replace(scope, words=Words(SELF, owner, "T11", has_id=True))


def check_where(condition: Condition, owner: EntityType, scope: Scope) -> Predicate:
    """Type the condition of a `where`. A search needs a pattern around it (T40)."""
    search = find_search(condition)
    if search is not None:
        raise TypeCheckError(
            "a search call is a condition of `match`, not of `where`",
            code="T40",
            span=search.span,
            hint="search in `match`, and name the variable it finds in the statement",
        )
    return _check(condition, owner, with_words(scope, owner))


def _check(condition: Condition, owner: EntityType, scope: Scope) -> Predicate:
    match condition:
        case AndTest(parts):
            return And(tuple(_check(part, owner, scope) for part in parts))
        case OrTest(parts):
            return Or(tuple(_check(part, owner, scope) for part in parts))
        case NotTest(inner):
            return Not(_check(inner, owner, scope))
        case FilterClause(AliasExpr(), op, LiteralExpr() | VariableExpr() | NowExpr()) if (
            not op.is_word
        ):
            return _check_comparison(condition, owner, scope)
        case _:
            require_declared(condition, scope)
            return check_condition(condition, scope)


def _check_comparison(clause: FilterClause, owner: EntityType, scope: Scope) -> Compare:
    """`property op value`: the value has to fit the property, and not only its type."""
    assert isinstance(clause.left, AliasExpr)
    column, slot = _find_slot(clause.left, owner)
    if slot.type.is_blob:
        raise TypeCheckError(
            f"{slot.label} is a Blob and cannot be compared", code="T11", span=clause.left.span
        )
    if slot.type.is_list or slot.type.is_vector:
        raise TypeCheckError(
            f"{slot.label} is {slot.type}, and `{clause.op}` compares single values",
            code="T7",
            span=clause.left.span,
            hint="use `contains` to look for a member" if slot.type.is_list else None,
        )
    value = check_matched_value(clause.right, slot, scope)
    return Compare(PropertyRef(SELF, column, slot.type), COMPARE_KINDS[clause.op], value)


def _find_slot(word: AliasExpr, owner: EntityType) -> tuple[str, Slot]:
    """The column that a word names: every row can be found by its id."""
    if word.name == ID and ID not in owner.properties:
        return ID, Slot(f"the id of {owner.name}", ID_TYPE)
    return find_slot(word.name, word.span, owner)
