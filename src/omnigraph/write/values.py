"""Values: what one value of each type may look like, and what is stored for it.

This is the rule of the language. `fit.py` does the same to whole columns; when it meets a column
it cannot take as a whole, it comes here, and the reason a user reads always comes from here.
"""

from __future__ import annotations

import binascii
import math
import re
from decimal import Decimal
from typing import assert_never

import numpy as np

from omnigraph.types import INTEGER_BOUNDS, PropertyType, Scalar, is_unicode
from omnigraph.write.bad_rows import excerpt
from omnigraph.write.instants import (
    DAYS_MAX,
    DAYS_MIN,
    MILLISECONDS_MAX,
    MILLISECONDS_MIN,
    date_days,
    datetime_milliseconds,
)

BLOB_PREFIX = "base64:"

_RANGE_NAMES = {
    Scalar.I32: "Int32",
    Scalar.I64: "Int64",
    Scalar.U32: "UInt32",
    Scalar.U64: "UInt64",
    Scalar.F32: "Float32",
    Scalar.F64: "Float64",
}

_DECIMAL_COMMA = re.compile(r"[+-]?[0-9][0-9.]*,[0-9]+$")
_DAY_FIRST = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{4}\b")
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FAR_YEAR = re.compile(r"([+-]?\d{5,}|-\d{4})-\d\d-\d\d")


class Unfit(Exception):
    """A value does not fit its type. `reason` is written for the user."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def to_stored(type_: PropertyType, value: object) -> object:
    """Return what is stored for `value`, which is not null, as a Python value Arrow can take.

    A Date becomes its day number, a DateTime its milliseconds, a Blob its bytes.

    Raises:
        Unfit: The value is not of the type. Nothing is coerced that would lose anything.
    """
    if type_.is_vector:
        return _vector(type_, value)
    if type_.is_list:
        return _list(type_, value)
    return _scalar(type_.scalar, value)


def unfit_reason(type_: PropertyType, value: object) -> str:
    """Say why `value` was refused by a column of this type."""
    try:
        to_stored(type_, value)
    except Unfit as unfit:
        return unfit.reason
    return f"does not fit {type_}"


def hint_text_form(type_: PropertyType, value: object) -> str:
    """Name the setting of a mapping that reads a number or date spelled as in other countries."""
    if not isinstance(value, str) or type_.is_list:
        return ""
    if type_.scalar.is_float and _DECIMAL_COMMA.match(value):
        return ' — the setting `decimal: ","` of a mapping reads decimal commas of CSV files'
    date = _DAY_FIRST.match(value) if type_.scalar in (Scalar.DATE, Scalar.DATETIME) else None
    if date is None:
        return ""
    pattern = date[1].join(("%d", "%m", "%Y"))
    return f' — a setting like `dates: "{pattern}"` of a mapping reads other dates of CSV files'


def _scalar(scalar: Scalar, value: object) -> object:
    match scalar:
        case Scalar.STRING:
            return _text(value)
        case Scalar.BOOL:
            if not isinstance(value, bool):
                raise _mismatch("Bool", value)
            return value
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return _integer(scalar, value)
        case Scalar.F32 | Scalar.F64:
            return _float(scalar, value)
        case Scalar.DATE:
            return _date(value)
        case Scalar.DATETIME:
            return _datetime(value)
        case Scalar.BLOB:
            return _blob(value)
        case Scalar.VECTOR:
            raise AssertionError("a vector is no scalar")
    assert_never(scalar)


def _mismatch(what: str, value: object) -> Unfit:
    return Unfit(f"expects {what}, got {_kind(value)}")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float() | Decimal():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
        case _:
            return f"a value of type {type(value).__name__}"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _mismatch("String", value)
    if not is_unicode(value):
        raise Unfit("is not valid Unicode: it has a lone surrogate")
    return value


def _integer(scalar: Scalar, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _mismatch(scalar.value, value)
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    if not isinstance(value, int) and not math.isfinite(value):
        raise Unfit(f"expects {scalar.value}, got {excerpt(value)}, which is not an integer")
    low, high = INTEGER_BOUNDS[scalar]
    # Some JSON parsers hand over an integer beyond 64 bits as a float: it is out of range first.
    if not low <= value <= high:
        raise Unfit(f"{excerpt(value)} exceeds {_RANGE_NAMES[scalar]} range")
    if not isinstance(value, int):
        raise Unfit(f"expects {scalar.value}, got {excerpt(value)}, which is not an integer")
    return value


def _float(scalar: Scalar, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _mismatch(scalar.value, value)
    try:
        number = float(value)
    except OverflowError:
        raise Unfit(f"{excerpt(value)} exceeds {_RANGE_NAMES[scalar]} range") from None
    if not math.isfinite(number):
        raise Unfit(f"expects a finite {scalar.value}, got {excerpt(number)}")
    if scalar is Scalar.F32:
        with np.errstate(over="ignore"):
            number = float(np.float32(number))
        if not math.isfinite(number):
            raise Unfit(f"{excerpt(value)} exceeds {_RANGE_NAMES[scalar]} range")
    return number


def _date(value: object) -> int:
    match value:
        case str():
            days = date_days(value)
            if days is None:
                _refuse_far_year("Date", value)
                expected = (
                    "there is no such day" if _ISO_DATE.fullmatch(value) else "expects YYYY-MM-DD"
                )
                raise Unfit(f"invalid Date literal {excerpt(value)}: {expected}")
            return days
        case int() if not isinstance(value, bool):
            if not DAYS_MIN <= value <= DAYS_MAX:
                raise _far("Date", value)
            return value
        case _:
            raise _mismatch("a Date text or its day number", value)


def _datetime(value: object) -> int:
    match value:
        case str():
            milliseconds = datetime_milliseconds(value)
            if milliseconds is None:
                _refuse_far_year("DateTime", value)
                raise Unfit(
                    f"invalid DateTime literal {excerpt(value)}: "
                    "expects RFC 3339, as in 2026-04-14T09:30:00Z"
                )
            return milliseconds
        case int() if not isinstance(value, bool):
            if not MILLISECONDS_MIN <= value <= MILLISECONDS_MAX:
                raise _far("DateTime", value)
            return value
        case _:
            raise _mismatch("a DateTime text or its epoch milliseconds", value)


def _refuse_far_year(name: str, text: str) -> None:
    if _FAR_YEAR.match(text):
        raise _far(name, text)


def _far(name: str, value: object) -> Unfit:
    return Unfit(f"{excerpt(value)} exceeds {name} range: years 0001 to 9999")


def _blob(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise _mismatch(f"Blob as a string `{BLOB_PREFIX}<payload>`", value)
    if not value.startswith(BLOB_PREFIX):
        raise Unfit(
            "is an external URI, which is not allowed here — "
            f"give the bytes themselves as `{BLOB_PREFIX}<payload>`"
        )
    try:
        return binascii.a2b_base64(value[len(BLOB_PREFIX) :], strict_mode=True)
    except ValueError as error:
        raise Unfit(f"invalid base64 payload: {str(error).lower()}") from None


def _list(type_: PropertyType, value: object) -> list[object]:
    if not isinstance(value, list | tuple):
        raise Unfit(f"{type_} expects a JSON array, got {_kind(value)}")
    element = type_.element()
    stored: list[object] = []
    for position, item in enumerate(value):
        if item is None:
            raise Unfit(f"element {position} is null; elements of {type_} must not be null")
        try:
            stored.append(to_stored(element, item))
        except Unfit as unfit:
            raise Unfit(f"element {position}: {unfit.reason}") from None
    return stored


def _vector(type_: PropertyType, value: object) -> list[float]:
    if not isinstance(value, list | tuple):
        raise Unfit(f"{type_} expects a JSON array, got {_kind(value)}")
    if len(value) != type_.dimension:
        raise Unfit(f"expects {type_.dimension} dimensions, got {len(value)}")
    if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
        raise Unfit(f"elements must be numeric in a {type_}")
    try:
        return [_float(Scalar.F32, item) for item in value]
    except Unfit as unfit:
        raise Unfit(f"elements must be finite: {unfit.reason}") from None
