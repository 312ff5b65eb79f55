"""Date and DateTime texts, as literals, parameters and loaded rows share them."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequestError
from omnigraph.types import parse_date, parse_datetime


@pytest.mark.parametrize(
    ("text", "days"),
    [("1970-01-01", 0), ("1969-12-31", -1), ("2024-02-29", 19782), ("0001-01-01", -719162)],
)
def test_a_date_is_its_days_since_the_epoch(text: str, days: int) -> None:
    assert parse_date(text) == days


@pytest.mark.parametrize(
    "text",
    [
        *("", "20240101", "2024-1-1", "2023-02-29", "2024-13-01", "0000-01-01", "٢٠٢٤-01-01"),
        *(" 2024-01-01", "2024-01-01\n", "2024-01-01T00:00:00Z"),
    ],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match="invalid Date literal"):
        parse_date(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01", 0),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01t00:00:01z", 1000),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01T00:00:00.5Z", 500),
        ("1970-01-01T00:00:00.123999Z", 123),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T22:30:00-01:30", 0),
        ("9999-12-31T23:59:59-23:59", 253402387139000),
    ],
)
def test_an_instant_is_its_milliseconds_in_utc(text: str, milliseconds: int) -> None:
    assert parse_datetime(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2024-01-01Z", "2024-01-01T00:00Z", "2024-01-01T00:00:00Z "),
        *("2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z"),
        *("2024-01-01T00:00:60Z", "2024-01-01T00:00:00.Z"),
        *("2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+0200"),
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match="invalid DateTime literal"):
        parse_datetime(text)
