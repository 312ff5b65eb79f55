"""Typed columns: what DataFrames and readers bring, and that columns and values obey one rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.types import PropertyType, Scalar
from omnigraph.write.convert import columns_from_arrow, columns_from_records
from omnigraph.write.fit import Fitted, fit_column, fit_values
from omnigraph.write.instants import (
    DAYS_MAX,
    DAYS_MIN,
    MILLISECONDS_MAX,
    MILLISECONDS_MIN,
    date_days,
    datetime_milliseconds,
    days_of_texts,
    milliseconds_of_texts,
)
from omnigraph.write.values import Unfit, to_stored
from tests.write.shapes import (
    BLOB,
    BOOL,
    DATE,
    DATETIME,
    F32,
    F64,
    I32,
    I64,
    SCALARS,
    STRING,
    U32,
    U64,
    list_of,
    node,
    optional,
    vector,
)


def _unfit_rows(fitted: Fitted) -> list[int]:
    return [] if fitted.unfit is None else [int(row) for row in fitted.unfit.nonzero()[0]]


ONE_DAY_MS = 86_400_000

FITTING = [
    (I32, pa.array([1, -1, None], pa.int8()), [1, -1, None]),
    (I32, pa.array([2**31 - 1], pa.uint64()), [2**31 - 1]),
    (U64, pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)), [2**64 - 1]),
    (F32, pa.array([1, None], pa.int64()), [1.0, None]),
    (F64, pa.array([Decimal("1.5")], pa.decimal128(5, 2)), [1.5]),
    (F64, pa.array([0.5], pa.float32()), [0.5]),
    (STRING, pa.array(["a", None], pa.large_utf8()), ["a", None]),
    (STRING, pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    (STRING, pa.array(["a", None], pa.string_view()), ["a", None]),
    (BOOL, pa.nulls(2), [None, None]),
    (DATE, pa.array([date(2026, 4, 14)], pa.date32()), [date(2026, 4, 14)]),
    (DATE, pa.array([1], pa.int16()), [date(1970, 1, 2)]),
    (list_of(I32), pa.array([[1], None, [2, 3]], pa.large_list(pa.int64())), [[1], None, [2, 3]]),
    (list_of(I32), pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [[1, 2]]),
    (list_of(STRING), pa.array([[], None], pa.list_(pa.null())), [[], None]),
    (vector(2), pa.array([[1, 2], None], pa.list_(pa.float64())), [[1.0, 2.0], None]),
    (vector(2), pa.array([[1, 2], None], pa.list_(pa.float32(), 2)), [[1.0, 2.0], None]),
    (BLOB, pa.array([b"\xff", None], pa.binary()), [b"\xff", None]),
    (BLOB, pa.array([b"ab"], pa.binary(2)), [b"ab"]),
]


@pytest.mark.accepts("S-059")
@pytest.mark.parametrize(("type_", "column", "stored"), FITTING, ids=str)
def test_a_column_that_loses_nothing_is_cast(
    type_: PropertyType, column: pa.Array, stored: list[object]
) -> None:
    fitted = fit_column(type_, column)

    assert _unfit_rows(fitted) == []
    assert fitted.values.type == type_.arrow_type()
    assert fitted.values.to_pylist() == stored


MISFITTING = [
    (I32, pa.array([1, 2**31, None, -(2**31) - 1]), [1, 3]),
    (I64, pa.array([1, 2**63], pa.uint64()), [1]),
    (U64, pa.array([Decimal(2**64), Decimal(1)], pa.decimal128(20, 0)), [0]),
    (U32, pa.array([-1, 1], pa.int8()), [0]),
    (I64, pa.array([1.0, None]), [0]),
    (I64, pa.array([Decimal("1.0")], pa.decimal128(5, 1)), [0]),
    (F64, pa.array([1.0, math.nan, math.inf, None]), [1, 2]),
    (F32, pa.array([1e39, 1.0]), [0]),
    (F64, pa.array(["1"]), [0]),
    (STRING, pa.array([b"a"]), [0]),
    (STRING, pa.array([datetime(2026, 1, 1)], pa.timestamp("ns")), [0]),
    (STRING, pa.array([{"a": 1}]), [0]),
    (BOOL, pa.array([1, None]), [0]),
    (DATE, pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), [0]),
    (DATE, pa.array([DAYS_MIN - 1, 0, DAYS_MAX + 1], pa.int32()).view(pa.date32()), [0, 2]),
    (DATE, pa.array([2**63], pa.uint64()), [0]),
    (DATETIME, pa.array([2**62, -(2**62), 0], pa.timestamp("s")), [0, 1]),
    (DATETIME, pa.array([MILLISECONDS_MAX + 1, 0, MILLISECONDS_MIN - 1]), [0, 2]),
    (DATETIME, pa.array([1.5]), [0]),
    (list_of(I32), pa.array([[1, None], [1], [2**31]]), [0, 2]),
    (list_of(I32), pa.array([1]), [0]),
    (vector(2), pa.array([[1.0], [1.0, 2.0], [1.0, None], [math.nan, 1.0]]), [0, 2, 3]),
    (BLOB, pa.array([1]), [0]),
]


@pytest.mark.accepts("S-059")
@pytest.mark.parametrize(("type_", "column", "rows"), MISFITTING, ids=str)
def test_nothing_wraps_or_is_cut_silently(
    type_: PropertyType, column: pa.Array, rows: list[int]
) -> None:
    columns = columns_from_arrow(node({"p": optional(type_)}), pa.table({"p": column}))

    assert [bad.index for bad in columns.bad] == rows
    assert all(columns.table["p"][row].as_py() is None for row in rows)
    assert all(bad.reason for bad in columns.bad)
    columns.table.validate(full=True)


@pytest.mark.parametrize(
    ("unit", "ticks", "milliseconds"),
    [
        ("s", 1, 1000),
        ("ms", -1, -1),
        ("us", 1999, 1),
        ("us", -1, -1),
        ("ns", 1_999_999, 1),
        ("ns", -1, -1),
    ],
)
def test_timestamps_lose_only_digits_below_the_millisecond(
    unit: str, ticks: int, milliseconds: int
) -> None:
    """Cut as texts are: the digits go, so an instant before the epoch moves down, not up."""
    for zone in (None, "UTC", "Asia/Tokyo"):
        column = pa.array([ticks, None], pa.int64()).view(pa.timestamp(unit, zone))

        fitted = fit_column(DATETIME, column)

        assert fitted.values.view(pa.int64()).to_pylist() == [milliseconds, None]


def test_a_date_column_is_midnight_for_a_datetime() -> None:
    fitted = fit_column(DATETIME, pa.array([date(1970, 1, 2)], pa.date32()))

    assert fitted.values.view(pa.int64()).to_pylist() == [ONE_DAY_MS]


def test_bytes_that_are_no_text_do_not_reach_a_string_column() -> None:
    raw = pa.array([b"ok", b"\xff\xfe", None], pa.binary()).view(pa.utf8())

    columns = columns_from_arrow(node({"p": optional(STRING)}), pa.table({"p": raw}))

    assert columns.table["p"].to_pylist() == ["ok", None, None]
    assert [bad.index for bad in columns.bad] == [1]


def test_slices_and_chunks_are_read_where_they_are() -> None:
    """Arrow shares buffers between slices; offsets must not leak into the result."""
    lists = pa.array([[9], [1, 2], None, [3], [8]]).slice(1, 3)
    vectors = pa.array([[9.0, 9.0], [1.0, 2.0], None, [5.0, 6.0]], pa.list_(pa.float32(), 2))
    chunked = pa.chunked_array([pa.array(["a"]), pa.array(["x", "b", "c"]).slice(1)])
    table = pa.table({"l": lists, "v": vectors.slice(1), "s": chunked})
    thing = node({"l": optional(list_of(I64)), "v": optional(vector(2)), "s": STRING})

    columns = columns_from_arrow(thing, table)

    assert columns.table.to_pylist() == [
        {"l": [1, 2], "s": "a", "v": [1.0, 2.0]},
        {"l": None, "s": "b", "v": None},
        {"l": [3], "s": "c", "v": [5.0, 6.0]},
    ]


_ANY_VALUE: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**31, 2**53 + 1, 2**63, 2**64, -1, 10**400]),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(["\ud800", "2026-04-14", "2026-04-14T01:02:03.4+05:30", "base64:aGk="]),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=1),
)
_ANY_JSON = st.one_of(_ANY_VALUE, st.lists(_ANY_VALUE, max_size=3))
_ANY_TYPE = st.one_of(
    st.sampled_from([*SCALARS, BLOB]),
    st.sampled_from(SCALARS).map(list_of),
    st.integers(1, 3).map(vector),
)


def _by_the_rule(type_: PropertyType, values: Sequence[object]) -> tuple[pa.Array, list[int]]:
    stored: list[object] = []
    refused: list[int] = []
    for row, value in enumerate(values):
        try:
            stored.append(None if value is None else to_stored(type_, value))
        except Unfit:
            stored.append(None)
            refused.append(row)
    return pa.array(stored, type_.arrow_type()), refused


@settings(deadline=None)
@given(_ANY_TYPE, st.lists(_ANY_JSON, max_size=6))
def test_a_column_of_values_obeys_the_rule_of_one_value(
    type_: PropertyType, values: list[object]
) -> None:
    expected, refused = _by_the_rule(type_, values)

    fitted = fit_values(type_, values)

    assert _unfit_rows(fitted) == refused
    assert fitted.values.equals(expected)
    # Arrow's full check wants whole days in a date64; the storage contract counts milliseconds.
    fitted.values.validate(full=type_.scalar is not Scalar.DATETIME)


_COLUMNS = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.none() | st.integers(0, 2**64 - 1)).map(lambda v: pa.array(v, pa.uint64())),
    st.lists(st.none() | st.integers(-128, 127)).map(lambda v: pa.array(v, pa.int8())),
    st.lists(st.none() | st.floats()).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.none() | st.booleans()).map(lambda v: pa.array(v, pa.bool_())),
    st.lists(st.none() | st.text(max_size=3)).map(lambda v: pa.array(v, pa.utf8())),
    st.lists(st.none() | st.lists(st.none() | st.integers(-5, 2**40), max_size=3)).map(
        lambda v: pa.array(v, pa.list_(pa.int64()))
    ),
)


@settings(deadline=None)
@given(_ANY_TYPE, _COLUMNS)
def test_a_typed_column_obeys_the_rule_of_one_value(type_: PropertyType, column: pa.Array) -> None:
    expected, refused = _by_the_rule(type_, column.to_pylist())

    fitted = fit_column(type_, column)

    assert _unfit_rows(fitted) == refused
    assert fitted.values.equals(expected)


_DATE_LIKE = st.one_of(
    st.dates().map(str),
    st.from_regex(r"[0-9]{4}-[01][0-9]-[0-3][0-9]", fullmatch=True),
    st.text("0123456789-T:Z ", max_size=11),
)
_DATETIME_LIKE = st.one_of(
    _DATE_LIKE,
    st.datetimes().map(lambda at: at.isoformat() + "Z"),
    st.from_regex(
        r"[0-9]{4}-0[1-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,10})?"
        r"([Zz]|[+-][0-2][0-9]:?[0-6][0-9])?\n?",
        fullmatch=True,
    ),
    st.sampled_from(["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-04-14T00Z"]),
)


@settings(deadline=None)
@given(st.lists(st.none() | _DATE_LIKE, max_size=6))
@example(["0000-01-01"])
def test_a_column_of_dates_reads_each_text_as_one_date(texts: list[str | None]) -> None:
    days = days_of_texts(pa.array(texts, pa.utf8()))

    assert days.to_pylist() == [None if text is None else date_days(text) for text in texts]


@settings(deadline=None)
@given(st.lists(st.none() | _DATETIME_LIKE, max_size=6))
@example(["0001-01-01T00:00:00+01:00"])
@example(["2026-04-14T00:00:00Z\n"])
@example(["2026-04-14T00:00:00+0530"])
@example(["2026-04-14T00:00Z"])
def test_a_column_of_datetimes_reads_each_text_as_one_instant(texts: list[str | None]) -> None:
    instants = milliseconds_of_texts(pa.array(texts, pa.utf8()))

    expected = [None if text is None else datetime_milliseconds(text) for text in texts]
    assert instants.to_pylist() == expected


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "text": st.text(max_size=5),
                "flag": st.booleans(),
                "i32": st.integers(-(2**31), 2**31 - 1),
                "u64": st.integers(0, 2**64 - 1),
                "f32": st.floats(width=32, allow_nan=False, allow_infinity=False),
                "f64": st.floats(allow_nan=False, allow_infinity=False),
                "day": st.dates().map(str),
                "at": st.datetimes().map(lambda at: f"{at.isoformat(timespec='milliseconds')}Z"),
                "tags": st.lists(st.text(max_size=2), max_size=3),
                "vector": st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=2),
            },
            optional={"maybe": st.none() | st.integers(-(2**63), 2**63 - 1)},
        ),
        max_size=5,
    )
)
def test_a_record_comes_back_from_its_columns_as_it_went_in(records: list[dict[str, Any]]) -> None:
    types = {"text": STRING, "flag": BOOL, "i32": I32, "u64": U64, "f32": F32, "f64": F64}
    types |= {"day": DATE, "at": DATETIME, "tags": list_of(STRING), "vector": vector(2)}
    types |= {"maybe": optional(I64)}

    columns = columns_from_records(node(types), records)

    assert not columns.bad
    assert _as_json(columns.table) == [{"maybe": None, **record} for record in records]


def _as_json(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    # Python shows a date64 as a bare date, so the instants are read as the numbers they are.
    instants = table["at"].combine_chunks().view(pa.timestamp("ms")).to_pylist()
    for row, at in zip(rows, instants, strict=True):
        row["day"] = str(row["day"])
        row["at"] = f"{at.isoformat(timespec='milliseconds')}Z"
    return rows
