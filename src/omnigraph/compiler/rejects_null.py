"""Which conditions cannot hold where some variables are null, whatever the others are.

Each condition gets the set of values it can take: true, false, or unknown (None). A value is
certainly null or may be anything.
"""

from __future__ import annotations

from collections.abc import Set
from functools import reduce
from typing import TypeAlias

from omnigraph.ir.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Compare,
    IsIn,
    IsNull,
    Minus,
    Not,
    Null,
    Or,
    Predicate,
    PropertyRef,
    Scalar,
    TextMatch,
    Truth,
)

_Values: TypeAlias = frozenset[bool | None]
_ANY: _Values = frozenset((True, False, None))
_UNKNOWN: _Values = frozenset((None,))


def rejects_null(predicate: Predicate, variables: Set[str]) -> bool:
    """Whether a condition is never true where all of these variables are null."""
    return True not in _values(predicate, variables)


def _values(predicate: Predicate, nulls: Set[str]) -> _Values:
    match predicate:
        case Compare(left, _, right):
            return _UNKNOWN if _is_null(left, nulls) or _is_null(right, nulls) else _ANY
        case IsIn(operand):
            return _UNKNOWN if _is_null(operand, nulls) else _ANY
        case IsNull(operand):
            return frozenset((True,)) if _is_null(operand, nulls) else frozenset((True, False))
        case TextMatch(_, target):
            return frozenset((False,)) if _is_null(target, nulls) else frozenset((True, False))
        case Not(part):
            return frozenset(None if v is None else not v for v in _values(part, nulls))
        case And(parts):
            return reduce(_both, (_values(part, nulls) for part in parts))
        case Or(parts):
            turned = (_turn(_values(part, nulls)) for part in parts)
            return _turn(reduce(_both, turned))
        case _:
            return _ANY


def _both(left: _Values, right: _Values) -> _Values:
    return frozenset(
        False if False in (one, other) else None if None in (one, other) else True
        for one in left
        for other in right
    )


def _turn(values: _Values) -> _Values:
    return frozenset(None if value is None else not value for value in values)


def _is_null(value: Scalar, nulls: Set[str]) -> bool:
    """Whether a value is certainly null."""
    match value:
        case PropertyRef(variable):
            return variable in nulls
        case Null():
            return True
        case Minus(operand):
            return _is_null(operand, nulls)
        case Arithmetic(first, rest):
            return any(_is_null(each, nulls) for each in (first, *(each for _, each in rest)))
        case Call("coalesce", arguments):
            return all(_is_null(each, nulls) for each in arguments)
        case Call(_, arguments):
            return any(_is_null(each, nulls) for each in arguments)
        case Truth(predicate):
            return _values(predicate, nulls) == _UNKNOWN
        case Case(arms, otherwise):
            return all(_is_null(each, nulls) for each in (*(v for _, v in arms), otherwise))
        case _:
            return False
