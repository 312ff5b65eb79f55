"""Evaluate: expressions and conditions over rows, column by column, by the rules of the language.

A computed value is null where an operand is; so is a division by zero, and any float that is not
finite. A whole number beyond 64 bits is an error, unless its branch of a `case` is not taken.

    Columns     where the values of properties come from, for the rows at hand
    evaluate    an expression → one Arrow array
    decide      a condition → where it is true, and where it is known
"""

from __future__ import annotations

from functools import reduce
from typing import Protocol, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.executor.compare import compare
from omnigraph.executor.functions import call, combine, join_texts, negate
from omnigraph.executor.members import Members, narrow
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.query_memory import require_bytes
from omnigraph.ir.arithmetic import result_type
from omnigraph.ir.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Compare,
    CompareKind,
    Constant,
    IsIn,
    IsNull,
    Minus,
    Not,
    Null,
    Or,
    Param,
    Predicate,
    PropertyRef,
    SameNode,
    Scalar,
    TextMatch,
    Truth,
)
from omnigraph.types import Scalar as PropertyScalar
from omnigraph.types import repeat


class Given(Protocol):
    """What the literals and parameters of a query stand for."""

    def scalar(self, value: Constant | Param) -> pa.Scalar: ...

    def members(self, value: Constant | Param, *, is_narrow: bool) -> Members | None:
        """The values of a list, floats at 32 bits if `is_narrow`; None for null."""
        ...


class Columns(Protocol):
    """The rows that something is computed for."""

    @property
    def values(self) -> Given: ...

    @property
    def count(self) -> int: ...

    def property(self, ref: PropertyRef) -> pa.Array:
        """The value of a property in every row."""
        ...

    def search(self, match: TextMatch) -> BoolArray:
        """Where a text search finds a row."""
        ...

    def take(self, indices: IntArray) -> Columns:
        """Some of the rows."""
        ...


def evaluate(expression: Scalar, columns: Columns) -> pa.Array:
    """The value of an expression in every row."""
    match expression:
        case PropertyRef():
            return columns.property(expression)
        case Constant() | Param():
            return repeat_value(columns.values.scalar(expression), columns.count)
        case Null(found):
            return pa.nulls(columns.count, found.arrow_type())
        case Arithmetic():
            return _chain(expression, columns)
        case Minus(operand):
            return negate(evaluate(operand, columns))
        case Call(name, arguments, found):
            values = [evaluate(argument, columns) for argument in arguments]
            return call(name, values, found.arrow_type())
        case Case():
            return _choose(expression, columns)
        case Truth(predicate):
            true, known = decide(predicate, columns)
            return pa.array(true, mask=~known)
        case _:
            assert_never(expression)


def repeat_value(value: pa.Scalar, count: int) -> pa.Array:
    """One value in every row, if that may be held."""
    if count > 1:
        require_bytes(count * repeat(value, 1).nbytes)
    return repeat(value, count)


def decide(predicate: Predicate, columns: Columns) -> tuple[BoolArray, BoolArray]:
    """Where a condition is true, and where it is known; what is unknown is not true."""
    match predicate:
        case Compare(left, kind, right):
            return _compare(left, kind, right, columns)
        case IsIn(operand, values):
            return _is_in(operand, values, columns)
        case IsNull(operand):
            return _mask(evaluate(operand, columns).is_null()), _everywhere(columns)
        case TextMatch():
            return columns.search(predicate), _everywhere(columns)
        case Not(part):
            true, known = decide(part, columns)
            return known & ~true, known
        case And(parts):
            return reduce(_both, (decide(part, columns) for part in parts))
        case Or(parts):
            return reduce(_either, (decide(part, columns) for part in parts))
        case SameNode():
            raise AssertionError("the planner turns these into closing hops")
        case _:
            assert_never(predicate)


def _both(
    left: tuple[BoolArray, BoolArray], right: tuple[BoolArray, BoolArray]
) -> tuple[BoolArray, BoolArray]:
    false = (left[1] & ~left[0]) | (right[1] & ~right[0])
    true = left[0] & right[0]
    return true, true | false


def _either(
    left: tuple[BoolArray, BoolArray], right: tuple[BoolArray, BoolArray]
) -> tuple[BoolArray, BoolArray]:
    true = left[0] | right[0]
    return true, true | (left[1] & right[1])


def _compare(
    left: Scalar, kind: CompareKind, right: Scalar, columns: Columns
) -> tuple[BoolArray, BoolArray]:
    values = evaluate(left, columns), evaluate(right, columns)
    if isinstance(right, (Constant, Param)):
        values = values[0], _narrow(values[1], left)
    if isinstance(left, (Constant, Param)):
        values = _narrow(values[0], right), values[1]
    known = _mask(pc.and_(values[0].is_valid(), values[1].is_valid()))
    return compare(values[0], kind, values[1], columns.count), known


def _is_in(
    operand: Scalar, values: Constant | Param, columns: Columns
) -> tuple[BoolArray, BoolArray]:
    found = evaluate(operand, columns)
    members = columns.values.members(values, is_narrow=_is_narrow(operand))
    if members is None:
        nowhere = np.zeros(columns.count, dtype=bool)
        return nowhere, nowhere
    return members.contain(found), _mask(found.is_valid())


def _narrow(value: pa.Array, other: Scalar) -> pa.Array:
    """A float as it is beside an F32 property: at that width. What is computed has been widened."""
    return narrow(value) if _is_narrow(other) else value


def _is_narrow(other: Scalar) -> bool:
    return isinstance(other, PropertyRef) and other.type.scalar is PropertyScalar.F32


def _chain(arithmetic: Arithmetic, columns: Columns) -> pa.Array:
    if arithmetic.type.is_text:
        operands = [arithmetic.first, *(operand for _, operand in arithmetic.rest)]
        # A text may be joined to itself a thousand times; it is read once.
        values = {each: evaluate(each, columns) for each in dict.fromkeys(operands)}
        return join_texts([values[each] for each in operands])
    found, kind = evaluate(arithmetic.first, columns), arithmetic.first.type
    for op, operand in arithmetic.rest:
        result = result_type(op, kind, operand.type)
        assert result is not None, "the checker has seen to it"
        found, kind = combine(op, found, evaluate(operand, columns), result), result
    return found


def _choose(case: Case, columns: Columns) -> pa.Array:
    """Each row takes the value of its first arm that is true; an arm is computed for its rows."""
    left = np.arange(columns.count)
    found = case.type.arrow_type()
    pieces: list[pa.Array] = []
    places: list[IntArray] = []
    rows = columns
    for condition, value in case.arms:
        true, _ = decide(condition, rows)
        pieces.append(evaluate(value, rows.take(np.flatnonzero(true))).cast(found))
        places.append(left[true])
        rest = np.flatnonzero(~true)
        left, rows = left[rest], rows.take(rest)
    pieces.append(evaluate(case.otherwise, rows).cast(found))
    places.append(left)
    order = np.empty(columns.count, dtype=np.int64)
    order[np.concatenate(places)] = np.arange(columns.count)
    return pa.concat_arrays(pieces).take(pa.array(order))


def _everywhere(columns: Columns) -> BoolArray:
    return np.ones(columns.count, dtype=bool)


def _mask(array: pa.BooleanArray) -> BoolArray:
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False))
