"""Value rules: required, enum, `@range`, `@check`."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.catalog.layout import arrow_schema
from omnigraph.catalog.model import Check, NodeType, Range
from omnigraph.types import INTEGER_BOUNDS, PropertyType
from omnigraph.write.validate import constraint_violations, null_violations, value_violations
from tests.write.shapes import (
    F32,
    F64,
    I32,
    I64,
    STRING,
    U32,
    U64,
    edge,
    enum,
    list_of,
    node,
    optional,
)


def _table(thing: NodeType, values: list[Any]) -> pa.Table:
    rows = [{"id": str(at), "p": value} for at, value in enumerate(values)]
    return pa.Table.from_pylist(rows, schema=arrow_schema(thing))


def _violating(thing: NodeType, values: list[Any]) -> list[int]:
    return [bad.index for bad in constraint_violations(thing, _table(thing, values))]


@pytest.mark.accepts("S-059")
def test_null_in_a_required_column_is_a_violation() -> None:
    wrote = edge({"since": I32, "note": optional(STRING)})
    table = pa.table(
        {"id": ["e"], "src": [None], "dst": ["p"], "note": [None], "since": [None]},
        schema=pa.schema([field.with_nullable(True) for field in arrow_schema(wrote)]),
    )

    found = value_violations(wrote, table)

    assert [bad.property for bad in found] == ["src", "since"]
    reason = "non-nullable property 'since' has null or invalid values"
    assert found.first[1].reason == reason
    assert null_violations(wrote, table).total == 2


def test_a_value_outside_its_enum_names_the_variants() -> None:
    thing = node({"p": optional(enum("b", "a"))})

    found = constraint_violations(thing, _table(thing, ["a", "x", None, "A"]))

    assert [bad.index for bad in found] == [1, 3]
    assert found.first[0].reason == "invalid enum value 'x' for Thing.p (expected: a, b)"


def test_every_element_of_an_enum_list_is_checked() -> None:
    thing = node({"p": optional(list_of(enum("a", "b")))})

    found = constraint_violations(thing, _table(thing, [["a"], ["a", "x", "y"], None, []]))

    assert [bad.index for bad in found] == [1]
    assert "invalid enum value 'x' for Thing.p (expected: a, b)" in found.first[0].reason


def test_a_long_hostile_value_is_quoted_in_part() -> None:
    thing = node({"p": enum("a")})

    [bad] = constraint_violations(thing, _table(thing, ["\x1b[2J\n" + "x" * 10_000]))

    assert "\x1b" not in str(bad)
    assert "\n" not in str(bad)
    assert len(str(bad)) < 300


def test_a_range_includes_its_ends_and_exempts_null() -> None:
    thing = node({"p": optional(I32)}, ranges=(Range("p", 0, 120),))

    found = constraint_violations(thing, _table(thing, [-1, 0, 120, 121, None]))

    assert [bad.index for bad in found] == [0, 3]
    assert {bad.reason for bad in found} == {"@range violation on Thing.p"}


def test_nan_is_outside_every_range() -> None:
    for bounds in (Range("p", None, 1.5), Range("p", -1.5, None)):
        thing = node({"p": optional(F64)}, ranges=(bounds,))

        assert _violating(thing, [math.nan, 0.0, None]) == [0]


def test_a_single_is_bounded_at_its_own_width() -> None:
    """`0.1` is stored as the F32 nearest to it, which is above the double `0.1`."""
    thing = node({"p": F32}, ranges=(Range("p", 0.1, 0.1),))

    assert _violating(thing, [0.1, 0.2]) == [1]


@pytest.mark.parametrize("type_", [F32, F64, I64, U64], ids=str)
def test_a_bound_beyond_the_type_bounds_nothing_or_everything(type_: PropertyType) -> None:
    wide = node({"p": type_}, ranges=(Range("p", -(10**400), 10**400),))
    empty = node({"p": type_}, ranges=(Range("p", 10**400, None),))

    assert _violating(wide, [0, 1]) == []
    assert _violating(empty, [0, 1]) == [0, 1]


_BOUNDS = st.none() | st.integers(-(2**65), 2**65) | st.floats(-1e20, 1e20)


@settings(deadline=None)
@given(
    st.sampled_from([I32, I64, U32, U64]),
    _BOUNDS,
    _BOUNDS,
    st.lists(st.integers(-(2**63), 2**64 - 1) | st.integers(-3, 3)),
)
def test_integers_are_compared_with_bounds_by_value(
    type_: PropertyType, lower: float | None, upper: float | None, values: list[int]
) -> None:
    low, high = INTEGER_BOUNDS[type_.scalar]
    fitting = [value for value in values if low <= value <= high]
    thing = node({"p": type_}, ranges=(Range("p", lower, upper),))

    expected = [
        row
        for row, value in enumerate(fitting)
        if (lower is not None and value < lower) or (upper is not None and value > upper)
    ]

    assert _violating(thing, fitting) == expected[:100]


def test_a_check_is_an_unanchored_search_that_exempts_null() -> None:
    anywhere = node({"p": optional(STRING)}, checks=(Check("p", "[A-Z]{3}"),))
    whole = node({"p": optional(STRING)}, checks=(Check("p", "^[A-Z]{3}$"),))
    values = ["ABC", "xABCx", "ab", None]

    assert _violating(anywhere, values) == [2]
    assert _violating(whole, values) == [1, 2]
    [bad] = constraint_violations(anywhere, _table(anywhere, ["ab"]))
    assert bad.reason == "@check violation on Thing.p"


def test_every_violation_of_a_row_is_found() -> None:
    thing = node({"p": enum("a")}, checks=(Check("p", "^a"),))

    found = constraint_violations(thing, _table(thing, ["a", "b"]))

    assert [bad.index for bad in found] == [1, 1]
    assert found.total == 2
