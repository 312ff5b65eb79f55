"""Guess: what one column of a sample holds."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.types import PropertyType, Scalar

ENUM_WORDS_MAX = 12
ENUM_ROWS_PER_WORD = 5
"""A word of an enum is seen so often on average; fewer rows than that prove nothing."""
VECTOR_LENGTH_MIN = 8

RESERVED = frozenset(
    {
        "id",
        "src",
        "dst",
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
_WORD = r"^[A-Za-z0-9_-]+$"


@dataclass(frozen=True, slots=True)
class ColumnGuess:
    """A column and the property it becomes; `type` is None when it becomes none.

    `texts` are its values where they could name a row, which they do when all are unique.
    """

    column: str
    property: str
    type: PropertyType | None
    texts: pa.Array | None
    is_unique: bool
    source_type: pa.DataType


def guess_column(name: str, values: pa.ChunkedArray) -> ColumnGuess:
    """What a column holds, as far as the sample says."""
    whole = values.combine_chunks()
    whole = whole if isinstance(whole, pa.Array) else pa.array(whole)
    type_ = _guess_type(whole)
    texts = None
    if type_ is not None and type_.scalar in (Scalar.STRING, Scalar.I64) and not type_.is_list:
        texts = whole.cast(pa.utf8())
    is_unique = texts is not None and pc.count_distinct(texts, mode="all").as_py() == len(texts)
    is_key = is_unique and not whole.null_count
    return ColumnGuess(name, to_property(name), type_, texts, is_key, whole.type)


def to_property(column: str) -> str:
    """The nearest name that a property may have."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", column.strip()).strip("_") or "column"
    name = name[0].lower() + name[1:] if name[0].isalpha() else f"_{name}"
    return f"{name}_" if name in RESERVED else name


def _guess_type(values: pa.Array) -> PropertyType | None:
    nullable = values.null_count > 0
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return _guess_type(values.dictionary_decode())
    if (
        pa.types.is_fixed_size_list(type_)
        or pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
    ):
        return _guess_list(values, nullable)
    if pa.types.is_null(type_):
        return PropertyType(Scalar.STRING, nullable=True)
    scalar = _scalar_of(type_)
    if scalar is Scalar.STRING:
        return _guess_text(values, nullable)
    return None if scalar is None else PropertyType(scalar, nullable=nullable)


def _scalar_of(type_: pa.DataType) -> Scalar | None:
    tests = (
        (pa.types.is_boolean, Scalar.BOOL),
        (pa.types.is_uint64, Scalar.U64),
        (pa.types.is_integer, Scalar.I64),
        (pa.types.is_floating, Scalar.F64),
        (pa.types.is_decimal, Scalar.F64),
        (pa.types.is_date32, Scalar.DATE),
        (pa.types.is_timestamp, Scalar.DATETIME),
        (pa.types.is_date64, Scalar.DATETIME),
        (pa.types.is_string, Scalar.STRING),
        (pa.types.is_large_string, Scalar.STRING),
        (pa.types.is_binary, Scalar.BLOB),
        (pa.types.is_large_binary, Scalar.BLOB),
    )
    return next((scalar for test, scalar in tests if test(type_)), None)


def _guess_list(values: pa.Array, nullable: bool) -> PropertyType | None:
    element = _scalar_of(values.type.value_type)
    if element is None or element is Scalar.BLOB:
        return None
    lengths = pc.unique(pc.list_value_length(values).drop_null())
    if element.is_float and len(lengths) == 1 and lengths[0].as_py() >= VECTOR_LENGTH_MIN:
        return PropertyType(Scalar.VECTOR, nullable=nullable, dimension=lengths[0].as_py())
    return PropertyType(element, is_list=True, nullable=nullable)


def _guess_text(values: pa.Array, nullable: bool) -> PropertyType:
    present = values.drop_null().cast(pa.utf8())
    for scalar, stored in ((Scalar.DATE, pa.date32()), (Scalar.DATETIME, pa.timestamp("ms"))):
        if len(present) and _can_cast(present, stored):
            return PropertyType(scalar, nullable=nullable)
    words = pc.unique(present)
    is_few = 2 <= len(words) <= ENUM_WORDS_MAX and len(present) >= len(words) * ENUM_ROWS_PER_WORD
    if is_few and pc.all(pc.match_substring_regex(words, _WORD)).as_py():
        variants = tuple(sorted(words.to_pylist()))
        return PropertyType(Scalar.STRING, nullable=nullable, variants=variants)
    return PropertyType(Scalar.STRING, nullable=nullable)


def _can_cast(texts: pa.Array, type_: pa.DataType) -> bool:
    try:
        texts.cast(type_)
    except (pa.ArrowException, ValueError):
        return False
    return True
