"""Instants: Date and DateTime texts to days and milliseconds since the epoch, a column at a time.

What is stored can always be shown again: a Date is a day of the years 0001 to 9999, a DateTime a
millisecond of them. `types.parse_date` and `types.parse_datetime` say what a text means; Arrow's
own parser is used for the spellings that it reads the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequestError
from omnigraph.types import parse_date, parse_datetime

DAY_MS = 86_400_000
DAYS_MIN = (date.min - date(1970, 1, 1)).days
DAYS_MAX = (date.max - date(1970, 1, 1)).days
MILLISECONDS_MIN = DAYS_MIN * DAY_MS
MILLISECONDS_MAX = (DAYS_MAX + 1) * DAY_MS - 1

# The spellings that nearly all data has. Arrow's parser takes more than we do, so it is only
# shown these; every other text goes to the parser of the language.
_PLAIN_DATETIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,3})?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"
)


def date_days(text: str) -> int | None:
    """The day a Date text names, or None when it names none that can be stored."""
    return _parse_within(parse_date, text, DAYS_MIN, DAYS_MAX)


def datetime_milliseconds(text: str) -> int | None:
    """The instant a DateTime text names, or None when it names none that can be stored."""
    return _parse_within(parse_datetime, text, MILLISECONDS_MIN, MILLISECONDS_MAX)


def days_of_texts(texts: pa.StringArray) -> pa.Int64Array:
    """The day of every text; null where the text is null or names none."""
    try:
        days = pc.cast(pc.cast(texts, pa.date32()), pa.int32())
    except pa.ArrowInvalid:
        return _each_distinct(texts, date_days)
    # Arrow knows a year 0000, which has no place in the calendar we show dates in.
    lowest = pc.min(days).as_py()
    if lowest is not None and lowest < DAYS_MIN:
        return _each_distinct(texts, date_days)
    return pc.cast(days, pa.int64())


def milliseconds_of_texts(texts: pa.StringArray) -> pa.Int64Array:
    """The instant of every text; null where the text is null or names none."""
    is_plain = pc.match_substring_regex(texts, _PLAIN_DATETIME)
    if pc.all(is_plain, min_count=0).as_py():
        return _plain_milliseconds(texts)
    plain = _plain_milliseconds(pc.if_else(is_plain, texts, None))
    others = _each_distinct(pc.if_else(is_plain, None, texts), datetime_milliseconds)
    return pc.coalesce(plain, others)


def _plain_milliseconds(texts: pa.StringArray) -> pa.Int64Array:
    try:
        instants = pc.cast(pc.cast(texts, pa.timestamp("ms", "UTC")), pa.int64())
    except pa.ArrowInvalid:
        return _each_distinct(texts, datetime_milliseconds)
    # An offset can carry a text of the first or last day out of the years that can be shown.
    extremes = pc.min_max(instants).as_py()
    if extremes["min"] is None:
        return instants
    if extremes["min"] >= MILLISECONDS_MIN and extremes["max"] <= MILLISECONDS_MAX:
        return instants
    return _each_distinct(texts, datetime_milliseconds)


def _each_distinct(texts: pa.StringArray, parse: Callable[[str], int | None]) -> pa.Int64Array:
    distinct = pc.dictionary_encode(texts)
    parsed = [parse(text) for text in distinct.dictionary.to_pylist()]
    return pc.take(pa.array(parsed, pa.int64()), distinct.indices)


def _parse_within(parse: Callable[[str], int], text: str, low: int, high: int) -> int | None:
    try:
        number = parse(text)
    except BadRequestError:
        return None
    return number if low <= number <= high else None
