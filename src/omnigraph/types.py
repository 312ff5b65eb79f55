"""Types: the property types of the schema language and their Arrow forms.

Dates and instants are whole numbers everywhere but in text: days and milliseconds since the epoch.
pyarrow is imported when a form is first asked for, so that parsing and checking stay light.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Literal

from omnigraph.dataclass import dataclass
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
    Vector. `unit` makes whole milliseconds (I64) a duration: of whole days, or of any length; only
    a part of an expression has one. All are None for every other type.
    """

    scalar: Scalar
    is_list: bool = False
    nullable: bool = False
    dimension: int | None = None
    variants: tuple[str, ...] | None = None
    unit: Literal["days", "any"] | None = None

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
        return self.scalar.is_numeric and not self.is_list and self.unit is None

    @property
    def is_integer(self) -> bool:
        return self.is_numeric and self.scalar.is_integer

    @property
    def is_duration(self) -> bool:
        return self.unit is not None

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
        elif self.is_duration:
            return "duration"
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
        if self.is_list != other.is_list or self.is_duration != other.is_duration:
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


# Narrower than what Python reads as ISO 8601, so that every release reads the same texts.
_DATE_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HOUR_AND_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_DATETIME_TEXT = re.compile(
    rf"{_DATE_TEXT.pattern}(?:[Tt ]{_HOUR_AND_MINUTE}:[0-5][0-9](?:\.[0-9]+)?"
    rf"(?:[Zz]|[+-]{_HOUR_AND_MINUTE})?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_date(text: str) -> int:
    """Return the days since the epoch that `YYYY-MM-DD` names.

    Raises:
        BadRequestError: The text is not a calendar date.
    """
    if _DATE_TEXT.fullmatch(text):
        with suppress(ValueError):  # no such day
            return (date.fromisoformat(text) - _EPOCH.date()).days
    raise BadRequestError(f"invalid Date literal '{text}' — expected YYYY-MM-DD")


def parse_datetime(text: str) -> int:
    """Return the milliseconds since the epoch, UTC, that an RFC 3339 text names.

    An offset is converted, no zone means UTC, a bare date is its midnight, and digits beyond
    the millisecond are cut off.

    Raises:
        BadRequestError: The text is not a date and time.
    """
    if _DATETIME_TEXT.fullmatch(text):
        with suppress(ValueError):  # no such day
            instant = datetime.fromisoformat(text.upper())
            if instant.tzinfo is None:
                instant = instant.replace(tzinfo=UTC)
            return (instant - _EPOCH) // timedelta(milliseconds=1)
    raise BadRequestError(
        f"invalid DateTime literal '{text}' — expected RFC 3339, as in 2026-04-14T09:30:00Z"
    )


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


DAYS = PropertyType(Scalar.I64, nullable=True, unit="days")
DURATION = PropertyType(Scalar.I64, nullable=True, unit="any")
