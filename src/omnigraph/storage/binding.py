"""Binding: fit every literal of a predicate to the type of the column it meets.

After binding, each literal has exactly its column's type, so that the filter text and the
in-memory mask cannot differ in how they coerce. A literal between two values of the column type
(2.7 on an integer column, 1e300 on an F32 column) turns into the comparison that keeps the same
rows; it is never truncated.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequestError
from omnigraph.storage.predicates import (
    And,
    Compare,
    CompareOp,
    IsIn,
    IsNull,
    Known,
    ListContains,
    Not,
    Or,
    Predicate,
    TextContains,
    TextStartsWith,
)

MILLISECONDS_PER_DAY = 86_400_000

Number: TypeAlias = int | float
Neighbours: TypeAlias = tuple[Number | None, Number | None]
"""The nearest values of a column type at or below, and at or above, a literal."""


def bind(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """Return the same predicate with column-typed literals and flat And/Or."""
    match predicate:
        case And(parts):
            return And(tuple(_flat(And, parts, schema)))
        case Or(parts):
            return Or(tuple(_flat(Or, parts, schema)))
        case Not(part):
            return Not(bind(part, schema))
        case Compare(column):
            return _bind_compare(predicate, _type_of(column, schema))
        case IsIn(column):
            return _bind_is_in(predicate, _type_of(column, schema))
        case ListContains(column):
            return _bind_list_contains(predicate, _type_of(column, schema))
        case TextContains(column) | TextStartsWith(column):
            _expect(pa.types.is_string(_type_of(column, schema)), column, "text")
            return predicate
        case IsNull(column) | Known(column):
            _type_of(column, schema)
            return predicate
        case _:
            assert_never(predicate)


def _flat(kind: type[And | Or], parts: tuple[Predicate, ...], schema: pa.Schema) -> list[Predicate]:
    flat: list[Predicate] = []
    for part in parts:
        bound = bind(part, schema)
        flat.extend(bound.parts if isinstance(bound, kind) else [bound])
    return flat


def _type_of(column: str, schema: pa.Schema) -> pa.DataType:
    if column not in schema.names:
        raise BadRequestError(f"there is no column '{column}' — the table has {schema.names}")
    return schema.field(column).type


def _expect(condition: bool, column: str, what: str) -> None:
    if not condition:
        raise BadRequestError(f"column '{column}' cannot be compared as {what}")


def _bind_compare(predicate: Compare, column_type: pa.DataType) -> Predicate:
    column, op, value = predicate.column, predicate.op, predicate.value
    if not value.is_valid:
        return Known(column, None)
    lower, upper = _neighbours(value, column_type, column)
    if lower == upper or lower is upper or _both_nan(lower, upper):
        return replace(predicate, value=_scalar(lower, column_type))
    match op:
        case CompareOp.EQ | CompareOp.NE:
            return Known(column, op is CompareOp.NE)
        case CompareOp.LT | CompareOp.LE:
            nearest, bounded = lower, CompareOp.LE
        case CompareOp.GT | CompareOp.GE:
            nearest, bounded = upper, CompareOp.GE
        case _:
            assert_never(op)
    if nearest is None:
        return Known(column, False)
    return Compare(column, bounded, _scalar(nearest, column_type))


def _bind_is_in(predicate: IsIn, column_type: pa.DataType) -> Predicate:
    column, values = predicate.column, predicate.values
    if values.type == column_type and _is_comparable(column_type):
        kept = values.drop_null()
    elif pa.types.is_integer(values.type) and pa.types.is_integer(column_type):
        numbers = values.drop_null().to_numpy()
        least, greatest = _integer_range(column_type)
        kept = pa.array(numbers[(numbers >= least) & (numbers <= greatest)]).cast(column_type)
    else:
        exact = [_exact(value, column_type, column) for value in values if value.is_valid]
        kept = pa.array([value for value in exact if value is not None], column_type)
    return IsIn(column, kept) if len(kept) else Known(column, False)


def _bind_list_contains(predicate: ListContains, column_type: pa.DataType) -> Predicate:
    column = predicate.column
    _expect(pa.types.is_list(column_type), column, "a list")
    if not predicate.value.is_valid:
        return Known(column, False)
    element_type = column_type.value_type
    value = _exact(predicate.value, element_type, column)
    if value is None:
        return Known(column, False)
    return ListContains(column, _scalar(value, element_type))


def _exact(value: pa.Scalar, column_type: pa.DataType, column: str) -> object | None:
    """The column-typed value equal to `value`, or None when the type has none."""
    lower, upper = _neighbours(value, column_type, column)
    same = lower is not None and (lower == upper or _both_nan(lower, upper))
    return lower if same else None


def _both_nan(lower: object, upper: object) -> bool:
    return lower != lower and upper != upper


def _scalar(value: object, column_type: pa.DataType) -> pa.Scalar:
    if pa.types.is_date(column_type):
        ticks = pa.int32() if pa.types.is_date32(column_type) else pa.int64()
        return pa.scalar(value, ticks).cast(column_type)
    return pa.scalar(value, column_type)


def _is_comparable(column_type: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_boolean, pa.types.is_date)
    return _is_number(column_type) or any(is_kind(column_type) for is_kind in kinds)


def _neighbours(
    value: pa.Scalar, column_type: pa.DataType, column: str
) -> Neighbours | tuple[str, str]:
    for is_kind in (pa.types.is_string, pa.types.is_boolean):
        if is_kind(column_type) and is_kind(value.type):
            return value.as_py(), value.as_py()
    if pa.types.is_date(column_type) and pa.types.is_date(value.type):
        return _date_neighbours(value, column_type)
    if _is_number(column_type) and _is_number(value.type):
        number = value.as_py()
        if pa.types.is_integer(column_type):
            return _integer_neighbours(number, column_type)
        return _float_neighbours(number, is_single=pa.types.is_float32(column_type))
    raise BadRequestError(f"column '{column}' is {column_type} and cannot meet a {value.type}")


def _is_number(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_float32(data_type)
        or pa.types.is_float64(data_type)
    )


def _date_neighbours(value: pa.Scalar, column_type: pa.DataType) -> Neighbours:
    if pa.types.is_date32(value.type):
        milliseconds = value.cast(pa.int32()).as_py() * MILLISECONDS_PER_DAY
    else:
        milliseconds = value.cast(pa.int64()).as_py()
    if pa.types.is_date64(column_type):
        return milliseconds, milliseconds
    below = milliseconds // MILLISECONDS_PER_DAY
    above = -(-milliseconds // MILLISECONDS_PER_DAY)
    return _clamp(below, above, -(2**31), 2**31 - 1)


def _integer_neighbours(number: Number, column_type: pa.DataType) -> Neighbours:
    least, greatest = _integer_range(column_type)
    if number != number or number == math.inf:
        return greatest, None
    if number == -math.inf:
        return None, least
    return _clamp(math.floor(number), math.ceil(number), least, greatest)


def _integer_range(column_type: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bits = column_type.bit_width
    if pa.types.is_signed_integer(column_type):
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return 0, 2**bits - 1


def _clamp(below: int, above: int, least: int, greatest: int) -> Neighbours:
    return (
        min(below, greatest) if below >= least else None,
        max(above, least) if above <= greatest else None,
    )


def _float_neighbours(number: Number, *, is_single: bool) -> Neighbours:
    width = np.float32 if is_single else np.float64
    with np.errstate(over="ignore"):
        rounded = width(number)
    if isinstance(number, float):
        # Equality is at the column's width, so a float literal is rounded; but a finite literal
        # beyond the range of F32 must not come to equal infinity.
        if not np.isinf(rounded) or math.isinf(number):
            return float(rounded), float(rounded)
        limit = float(np.finfo(width).max)
        return (limit, math.inf) if number > 0 else (-math.inf, -limit)
    exact = int(rounded)
    if exact == number:
        return float(rounded), float(rounded)
    if exact > number:
        return float(np.nextafter(rounded, width(-math.inf))), float(rounded)
    return float(rounded), float(np.nextafter(rounded, width(math.inf)))
