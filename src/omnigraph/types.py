"""Types: the property types of the schema language and their Arrow forms.

Dates and instants are whole numbers everywhere but in text: days and milliseconds since the epoch.
pyarrow is imported when a form is first asked for, so that parsing and checking stay light.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    import pyarrow as pa

VECTOR_DIMENSION_MAX = 2**31 - 1


class Scalar(StrEnum):
    """What one element of a property is. `VECTOR` needs a dimension beside it."""

    STRING = "String"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    BLOB = "Blob"
    VECTOR = "Vector"

    @property
    def is_integer(self) -> bool:
        return self in _INTEGERS

    @property
    def is_float(self) -> bool:
        return self in (Scalar.F32, Scalar.F64)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float


_INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})

INTEGER_BOUNDS: dict[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class PropertyType:
    """The type of one property, parameter or expression.

    `variants` is the sorted set of an enum (whose scalar is String), `dimension` the width of a
    Vector. Both are None for every other type.
    """

    scalar: Scalar
    is_list: bool = False
    nullable: bool = False
    dimension: int | None = None
    variants: tuple[str, ...] | None = None

    @property
    def is_vector(self) -> bool:
        return self.scalar is Scalar.VECTOR

    @property
    def is_blob(self) -> bool:
        return self.scalar is Scalar.BLOB

    @property
    def is_enum(self) -> bool:
        return self.variants is not None

    @property
    def is_numeric(self) -> bool:
        """Whether this is one number (not a list or vector of them)."""
        return self.scalar.is_numeric and not self.is_list

    @property
    def is_text(self) -> bool:
        """Whether this is one string, enum included."""
        return self.scalar is Scalar.STRING and not self.is_list

    def __str__(self) -> str:
        """The canonical spelling, as error texts show it and as the schema language reads it."""
        if self.variants is not None:
            text = f"enum({', '.join(self.variants)})"
        elif self.is_vector:
            text = f"Vector({self.dimension})"
        else:
            text = self.scalar.value
        if self.is_list:
            text = f"[{text}]"
        return text + ("?" if self.nullable else "")

    def element(self) -> PropertyType:
        """The type of one member of this list."""
        assert self.is_list
        return PropertyType(self.scalar, variants=self.variants)

    def compatible_with(self, other: PropertyType) -> bool:
        """Whether two values of these types may be compared or assigned (nullability aside)."""
        if self.is_list != other.is_list:
            return False
        if self.is_vector or other.is_vector:
            return self.scalar is other.scalar and self.dimension == other.dimension
        return self.scalar is other.scalar or (self.scalar.is_numeric and other.scalar.is_numeric)

    def arrow_type(self) -> pa.DataType:
        """The stored Arrow type. A Blob is its logical placeholder, LargeBinary."""
        import pyarrow as pa

        if self.is_vector:
            assert self.dimension is not None
            return pa.list_(pa.field("item", pa.float32(), nullable=True), self.dimension)
        scalar = _arrow_scalars()[self.scalar]
        return pa.list_(pa.field("item", scalar, nullable=True)) if self.is_list else scalar

    def arrow_field(self, name: str) -> pa.Field:
        """The stored Arrow field; nullable exactly when the property is."""
        import pyarrow as pa

        return pa.field(name, self.arrow_type(), nullable=self.nullable)


@cache
def _arrow_scalars() -> dict[Scalar, pa.DataType]:
    import pyarrow as pa

    return {
        Scalar.STRING: pa.utf8(),
        Scalar.BOOL: pa.bool_(),
        Scalar.I32: pa.int32(),
        Scalar.I64: pa.int64(),
        Scalar.U32: pa.uint32(),
        Scalar.U64: pa.uint64(),
        Scalar.F32: pa.float32(),
        Scalar.F64: pa.float64(),
        Scalar.DATE: pa.date32(),
        # Date64 counts milliseconds and is what the storage contract names; not a Timestamp.
        Scalar.DATETIME: pa.date64(),
        Scalar.BLOB: pa.large_binary(),
    }


_DATE_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME_TEXT = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]+))?"
    r"(?P<zone>[Zz]|(?P<sign>[+-])(?P<zone_hour>[0-9]{2}):(?P<zone_minute>[0-9]{2}))?)?"
)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_MS = 86_400_000


def parse_date(text: str) -> int:
    """Return the days since the epoch that `YYYY-MM-DD` names.

    Raises:
        BadRequestError: The text is not a calendar date.
    """
    days = _epoch_days(text)
    if days is None:
        raise BadRequestError(f"invalid Date literal '{text}' — expected YYYY-MM-DD")
    return days


def parse_datetime(text: str) -> int:
    """Return the milliseconds since the epoch, UTC, that an RFC 3339 text names.

    An offset is converted, no zone means UTC, a bare date is its midnight, and digits beyond
    the millisecond are cut off.

    Raises:
        BadRequestError: The text is not a date and time.
    """
    found = _DATETIME_TEXT.fullmatch(text)
    days = _epoch_days(found["date"]) if found else None
    time_ms = _time_ms(found) if found else None
    if days is None or time_ms is None:
        raise BadRequestError(
            f"invalid DateTime literal '{text}' — expected RFC 3339, as in 2026-04-14T09:30:00Z"
        )
    return days * _DAY_MS + time_ms


def is_unicode(text: str) -> bool:
    """Whether a text can be stored: half of a surrogate pair has no form in UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def repeat(value: pa.Scalar, count: int) -> pa.Array:
    """One value, `count` times."""
    import pyarrow as pa

    # pa.repeat fails when it is asked for an empty array of lists.
    return pa.repeat(value, count) if count else pa.array([], value.type)


def _epoch_days(text: str) -> int | None:
    if not _DATE_TEXT.fullmatch(text):
        return None
    try:
        return date(int(text[:4]), int(text[5:7]), int(text[8:])).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def _time_ms(found: re.Match[str]) -> int | None:
    """The time of day in UTC; it leaves the day when the zone offset carries it over."""
    if found["hour"] is None:
        return 0
    hour, minute, second = (int(found[part]) for part in ("hour", "minute", "second"))
    offset_minutes = 0
    if found["sign"] is not None:
        zone_hour, zone_minute = int(found["zone_hour"]), int(found["zone_minute"])
        if zone_hour > 23 or zone_minute > 59:
            return None
        offset_minutes = (zone_hour * 60 + zone_minute) * (-1 if found["sign"] == "-" else 1)
    if hour > 23 or minute > 59 or second > 59:
        return None
    milliseconds = int((found["fraction"] or "")[:3].ljust(3, "0"))
    return ((hour * 60 + minute - offset_minutes) * 60 + second) * 1000 + milliseconds
