"""Filters: the one module that builds Lance filter text.

Names go in backticks (double quotes would make a string literal and silently match nothing), and
each literal is spelled in the type of its column. What cannot be spelled safely is not pushed:
`is_pushable` says so and the scan filters in memory with `masks.to_mask`, which keeps the same
rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import assert_never

import pyarrow as pa

from omnigraph.storage.binding import bind
from omnigraph.storage.predicates import (
    And,
    Compare,
    IsIn,
    IsNull,
    Known,
    ListContains,
    Not,
    Or,
    Predicate,
    TextContains,
    TextStartsWith,
    leaves,
)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DEPTH_MAX = 16
VALUES_MAX = 100_000
"""How many values may be spelled: Lance takes some microseconds for each."""
_UNKNOWN = "cast(null as boolean)"


def to_lance(predicate: Predicate, schema: pa.Schema) -> str:
    """Return the filter text that keeps exactly the rows of `predicate` in a table of `schema`."""
    return _text(bind(predicate, schema))


def at_addresses(addresses: Iterable[int]) -> str:
    """Return the filter text that keeps the rows at these addresses; Lance goes straight there."""
    return f"_rowaddr IN ({', '.join(map(str, addresses))})"


def is_pushable(predicate: Predicate, schema: pa.Schema) -> bool:
    """Whether Lance can be trusted with the filter text of `predicate`."""
    return _is_safe(bind(predicate, schema), depth=0)


def _is_safe(bound: Predicate, depth: int) -> bool:
    match bound:
        case And(parts) | Or(parts):
            # Balanced text nests log2(n) deep; Lance refuses to parse very deep nesting.
            inner = depth + 1 + max(len(parts), 1).bit_length()
            return all(_is_safe(part, inner) for part in parts) and inner <= _DEPTH_MAX
        case Not(And() | Or() as part) if any(isinstance(leaf, IsIn) for leaf in leaves(part)):
            # Lance folds `x in (…) and not x in (…)` to false, also where x is null: negated, a
            # null would be kept.
            return False
        case Not(part):
            return depth < _DEPTH_MAX and _is_safe(part, depth + 1)
        case IsIn(column, values):
            return _is_plain(column) and len(values) <= VALUES_MAX
        case ListContains(column, value):
            # Inside a list Lance compares floats by their bits, and tells -0.0 from 0.0.
            return _is_plain(column) and not pa.types.is_floating(value.type)
        case _:
            return _is_plain(bound.column)


def _is_plain(column: str) -> bool:
    return _PLAIN_NAME.fullmatch(column) is not None


def _text(bound: Predicate) -> str:
    match bound:
        case And(parts):
            return _join([_text(part) for part in parts], " and ", empty="true")
        case Or(parts):
            return _join([_text(part) for part in parts], " or ", empty="false")
        case Not(part):
            return f"(not {_text(part)})"
        case Compare(column, op, value):
            return f"({_name(column)} {op.value} {_literal(value)})"
        case IsIn(column, values):
            listed = ", ".join(_literal(value) for value in values)
            return f"({_name(column)} in ({listed}))"
        case IsNull(column):
            return f"({_name(column)} is null)"
        case ListContains(column, value):
            return f"array_has({_name(column)}, {_element(value)})"
        case TextContains(column, needle):
            return f"contains({_name(column)}, {_quote(needle)})"
        case TextStartsWith(column, prefix):
            return f"starts_with({_name(column)}, {_quote(prefix)})"
        case Known(column, truth):
            return _constant(column, truth)
        case _:
            assert_never(bound)


def _join(texts: list[str], operator: str, *, empty: str) -> str:
    """Join in balanced halves: Lance parses a flat chain into a tree as deep as it is long."""
    if not texts:
        return empty
    if len(texts) == 1:
        return texts[0]
    half = len(texts) // 2
    left = _join(texts[:half], operator, empty=empty)
    right = _join(texts[half:], operator, empty=empty)
    return f"({left}{operator}{right})"


def _constant(column: str, truth: bool | None) -> str:
    match truth:
        case None:
            return _UNKNOWN
        case True:
            return f"({_name(column)} is not null or {_UNKNOWN})"
        case False:
            return f"({_name(column)} is null and {_UNKNOWN})"


def _name(column: str) -> str:
    return f"`{column}`"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(value: pa.Scalar) -> str:
    data_type = value.type
    if pa.types.is_string(data_type):
        return _quote(value.as_py())
    if pa.types.is_boolean(data_type):
        return "true" if value.as_py() else "false"
    if pa.types.is_integer(data_type):
        return _integer(value.as_py())
    if pa.types.is_float32(data_type):
        return _float(value.as_py(), "float")
    if pa.types.is_float64(data_type):
        return _float(value.as_py(), "double")
    if pa.types.is_date32(data_type):
        return f"arrow_cast({_integer(value.cast(pa.int32()).as_py())}, 'Date32')"
    assert pa.types.is_date64(data_type), data_type
    return f"arrow_cast({_integer(value.cast(pa.int64()).as_py())}, 'Date64')"


def _element(value: pa.Scalar) -> str:
    # `array_has` does not fit an integer literal to the element type, as a comparison does.
    if pa.types.is_integer(value.type):
        arrow_name = str(value.type).replace("uint", "UInt").replace("int", "Int")
        return f"arrow_cast({_integer(value.as_py())}, '{arrow_name}')"
    return _literal(value)


def _integer(number: int) -> str:
    # The magnitude of the least I64 overflows I64, and Lance would read it as a float.
    return f"cast('{number}' as bigint)" if number == -(2**63) else str(number)


def _float(number: float, sql_type: str) -> str:
    # `repr` round-trips a double, and every F32 is a double.
    return repr(number) if math.isfinite(number) else f"cast('{number}' as {sql_type})"
