"""Computed values and conditions for the reference evaluator: one row, plain Python, no Arrow."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from omnigraph.errors import BadRequestError
from omnigraph.ir.arithmetic import result_type
from omnigraph.ir.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    IsIn,
    IsNull,
    Minus,
    Not,
    Null,
    Or,
    Predicate,
    Truth,
)
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.syntax.query_tree import ArithmeticOp
from omnigraph.types import PropertyType, Scalar

Value = Callable[[Operand], Any]
Test = Callable[[Predicate], bool | None]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000


def decide(
    predicate: Predicate, value: Value, leaf: Test, equal: Callable[..., bool]
) -> bool | None:
    """True, false, or None where it is unknown; `leaf` decides comparisons."""

    def inner(part: Predicate) -> bool | None:
        return decide(part, value, leaf, equal)

    match predicate:
        case Not(part):
            found = inner(part)
            return None if found is None else not found
        case And(parts):
            answers = [inner(part) for part in parts]
            return False if False in answers else None if None in answers else True
        case Or(parts):
            answers = [inner(part) for part in parts]
            return True if True in answers else None if None in answers else False
        case IsNull(operand):
            return value(operand) is None
        case IsIn(operand, values):
            wanted, members = value(operand), value(values)
            if wanted is None or members is None:
                return None
            return any(equal(operand, wanted, member) for member in members)
        case _:
            return leaf(predicate)


def compute(expression: Operand, value: Value, decided: Test) -> Any:
    """The value of a computed expression."""
    match expression:
        case Null():
            return None
        case Truth(predicate):
            return decided(predicate)
        case Case(arms, otherwise):
            chosen = next((then for when, then in arms if decided(when)), otherwise)
            return _to_type(value(chosen), expression.type)
        case Minus(operand):
            found = value(operand)
            return None if found is None else _whole(-found) if isinstance(found, int) else -found
        case Arithmetic(first, rest):
            found, kind = value(first), first.type
            for op, operand in rest:
                result = result_type(op, kind, operand.type)
                assert result is not None
                found, kind = _combine(op, found, value(operand), result, kind), result
            return found
        case Call("coalesce", arguments):
            known = (each for each in map(value, arguments) if each is not None)
            return _to_type(next(known, None), expression.type)
        case Call(name, arguments):
            given = [value(argument) for argument in arguments]
            return None if None in given else _call(name, given, arguments[0].type)
    raise AssertionError(expression)


def _combine(
    op: ArithmeticOp, left: Any, right: Any, found: PropertyType, kind: PropertyType
) -> Any:
    if left is None or right is None:
        return None
    if found.is_text:
        return left + right
    if found.scalar in (Scalar.DATE, Scalar.DATETIME):
        if kind.is_duration:
            left, right = right, left
        step = right // _DAY_MS if found.scalar is Scalar.DATE else right
        return left + step if op is ArithmeticOp.PLUS else left - step
    if op is ArithmeticOp.OVER or op is ArithmeticOp.MODULO:
        if right == 0:
            return None
        if op is ArithmeticOp.OVER:
            return _finite(left / right)
        return math.fmod(left, right) if found.scalar is Scalar.F64 else _remainder(left, right)
    answer = {ArithmeticOp.PLUS: left + right, ArithmeticOp.MINUS: left - right}.get(
        op, left * right
    )
    return _finite(float(answer)) if found.scalar is Scalar.F64 else _whole(answer)


def _remainder(left: int, right: int) -> int:
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def _whole(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise BadRequestError("integer overflow")
    return number


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _to_type(found: Any, wanted: PropertyType) -> Any:
    is_float = wanted.scalar in (Scalar.F64, Scalar.F32) and isinstance(found, int)
    return float(found) if is_float else found


def _lower(letter: str) -> str:
    """By Unicode's simple mapping, which is never longer than the letter."""
    return letter.lower()[0] if letter == "İ" else letter.lower()


def _upper(letter: str) -> str:
    # Greek letters with an iota below have a capital of two letters, and one of one for titles.
    return next((each for each in (letter.upper(), letter.title()) if len(each) == 1), letter)


def _call(name: str, given: list[Any], kind: PropertyType) -> Any:
    match name:
        case "lower" | "upper":
            return "".join(map(_lower if name == "lower" else _upper, given[0]))
        case "length":
            return len(given[0])
        case "abs":
            return abs(given[0])
        case "substring":
            start = max(given[1], 0)
            return (
                given[0][start:] if len(given) < 3 else given[0][start : start + max(given[2], 0)]
            )
        case "round":
            return _round(given)
        case "year" | "month" | "day":
            return getattr(_to_day(given[0], kind), name)
        case "date":
            return given[0] // _DAY_MS
        case _:
            return given[0] * {"days": _DAY_MS, "hours": 3_600_000, "minutes": 60_000}[name]


def _round(given: list[Any]) -> Any:
    number = given[0]
    if isinstance(number, int):
        return number
    scale = 10.0 ** (given[1] if len(given) > 1 else 0)
    return math.copysign(math.floor(abs(number) * scale + 0.5), number) / scale


def _to_day(ticks: int, kind: PropertyType) -> date:
    days = ticks if kind.scalar is Scalar.DATE else ticks // _DAY_MS
    return (_EPOCH + timedelta(days=days)).date()
