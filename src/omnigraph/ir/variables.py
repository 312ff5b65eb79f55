"""Which properties and variables an expression or predicate reads.

What reads none is the same for every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from omnigraph.ir.expressions import (
    Aggregate,
    And,
    Arithmetic,
    Bm25,
    Call,
    Case,
    Collect,
    Compare,
    Constant,
    GroupColumn,
    IsIn,
    IsNull,
    Minus,
    Nearest,
    NodeRef,
    Not,
    Null,
    ObjectRef,
    Or,
    Param,
    Predicate,
    Projected,
    PropertyRef,
    Ranking,
    Rrf,
    SameNode,
    TextMatch,
    Truth,
)


def predicate_variables(predicate: Predicate) -> frozenset[str]:
    """The variables whose bindings decide whether `predicate` is TRUE."""
    same_nodes = (predicate.left, predicate.right) if isinstance(predicate, SameNode) else ()
    return frozenset([*same_nodes, *(ref.variable for ref in predicate_refs(predicate))])


def ranking_variable(ranking: Ranking) -> str:
    """The variable whose nodes a ranking orders."""
    return (ranking.first if isinstance(ranking, Rrf) else ranking).target.variable


def has_search(predicate: Predicate) -> bool:
    """Whether a text search is part of a predicate."""
    match predicate:
        case TextMatch():
            return True
        case Not(part):
            return has_search(part)
        case And(parts) | Or(parts):
            return any(map(has_search, parts))
        case _:
            return False


def count_tests(predicate: Predicate) -> int:
    """How many tests a condition is made of."""
    match predicate:
        case Not(part):
            return count_tests(part)
        case And(parts) | Or(parts):
            return sum(map(count_tests, parts))
        case _:
            return 1


def predicate_refs(predicate: Predicate) -> Iterator[PropertyRef]:
    """The properties that a predicate reads."""
    match predicate:
        case Compare(left, _, right):
            yield from expression_refs(left)
            yield from expression_refs(right)
        case TextMatch(_, target, query, max_edits):
            yield target
            yield from expression_refs(query)
            if max_edits is not None:
                yield from expression_refs(max_edits)
        case IsIn(operand) | IsNull(operand):
            yield from expression_refs(operand)
        case Not(part):
            yield from predicate_refs(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from predicate_refs(part)
        case SameNode():
            return
        case _:
            assert_never(predicate)


def expression_refs(expression: Projected) -> Iterator[PropertyRef]:
    """The properties that an expression reads."""
    match expression:
        case PropertyRef():
            yield expression
        case Constant() | Param() | Null() | NodeRef():
            return
        case Arithmetic(first, rest):
            yield from expression_refs(first)
            for _, operand in rest:
                yield from expression_refs(operand)
        case Minus(operand):
            yield from expression_refs(operand)
        case Call(_, arguments):
            for argument in arguments:
                yield from expression_refs(argument)
        case Case(arms, otherwise):
            for condition, value in arms:
                yield from predicate_refs(condition)
                yield from expression_refs(value)
            yield from expression_refs(otherwise)
        case Truth(predicate):
            yield from predicate_refs(predicate)
        case Aggregate(_, argument):
            yield from expression_refs(argument)
        case ObjectRef(fields=fields):
            yield expression.id
            yield from fields
        case Collect(argument, order):
            yield from expression_refs(argument)
            for key, _ in order:
                yield from expression_refs(key)
        case GroupColumn():
            return
        case Nearest(target) | Bm25(target):
            yield target
        case Rrf(first, second):
            yield from (first.target, second.target)
        case _:
            assert_never(expression)
