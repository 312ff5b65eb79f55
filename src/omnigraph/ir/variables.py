"""Which variables an expression or predicate reads. What reads none is the same for every row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from omnigraph.ir.expressions import (
    Compare,
    Constant,
    Param,
    Predicate,
    PropertyRef,
    Ranking,
    Rrf,
    SameNode,
    Scalar,
    TextMatch,
)


def predicate_variables(predicate: Predicate) -> frozenset[str]:
    """The variables whose bindings decide whether `predicate` is TRUE."""
    return frozenset(_predicate_variables(predicate))


def ranking_variable(ranking: Ranking) -> str:
    """The variable whose nodes a ranking orders."""
    return (ranking.first if isinstance(ranking, Rrf) else ranking).target.variable


def _predicate_variables(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case Compare(left, _, right):
            yield from _scalar_variables(left)
            yield from _scalar_variables(right)
        case TextMatch(_, target, query, max_edits):
            yield target.variable
            yield from _scalar_variables(query)
            if max_edits is not None:
                yield from _scalar_variables(max_edits)
        case SameNode(left, right):
            yield left
            yield right
        case _:
            assert_never(predicate)


def _scalar_variables(scalar: Scalar) -> Iterator[str]:
    match scalar:
        case PropertyRef(variable):
            yield variable
        case Constant() | Param():
            return
        case _:
            assert_never(scalar)
