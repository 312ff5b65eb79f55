"""Text values: the texts of a column as values of a type, a column at a time.

Integers, numbers and truth values are read from their usual spellings, lists and vectors from JSON
or by a separator. Dates in ISO form and blobs stay texts, which every load reads. What cannot be
read so stays the text it is, to be refused with its reason.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.pipeline.model import TextForm
from omnigraph.types import PropertyType, Scalar

NULL_WORDS = ("", "NULL", "null", "NA", "N/A", "n/a", "None", "\\N")
"""What stands for no value in a column that holds no texts."""

TRUE_WORDS = ("true", "True", "TRUE", "1", "yes", "Yes", "YES", "t", "T", "y", "Y")
FALSE_WORDS = ("false", "False", "FALSE", "0", "no", "No", "NO", "f", "F", "n", "N")


def reader_type(type_: PropertyType, form: TextForm) -> pa.DataType:
    """The type to read a column of texts with: what Arrow reads by itself as we do, else text."""
    if type_.is_list or type_.is_vector:
        return pa.utf8()
    match type_.scalar:
        case Scalar.BOOL:
            return pa.bool_()
        case Scalar.U64:
            return pa.uint64()
        case Scalar.I32 | Scalar.I64 | Scalar.U32:
            return pa.int64()
        case Scalar.F32 | Scalar.F64:
            return pa.float64()
        case _:
            return pa.utf8()


def convert_texts(texts: pa.Array, type_: PropertyType, form: TextForm) -> pa.Array | None:
    """Texts as values that a load takes for the type; None when one of them is none."""
    if _stays_text(type_, form):
        return texts
    if not _is_plain_text(type_):
        texts = _without_words(texts)
    if type_.is_list or type_.is_vector:
        return _lists(texts, type_, form)
    try:
        return _convert_scalars(pc.utf8_trim_whitespace(texts), type_.scalar, form)
    except (pa.ArrowInvalid, ValueError, OverflowError):
        return None


def value_of_text(text: str | None, type_: PropertyType, form: TextForm) -> Any:
    """One text as the value it spells, or itself."""
    if text is None:
        return None
    found = convert_texts(pa.array([text], pa.utf8()), type_, form)
    if found is not None:
        return found[0].as_py() if not pa.types.is_date32(found.type) else text
    if type_.is_list or type_.is_vector:
        return text
    try:
        return float(text) if type_.scalar.is_integer else text
    except ValueError:
        return text


def _is_plain_text(type_: PropertyType) -> bool:
    return type_.scalar is Scalar.STRING and not type_.is_list


def _stays_text(type_: PropertyType, form: TextForm) -> bool:
    return not (type_.is_list or type_.is_vector) and type_.scalar is Scalar.STRING


def _without_words(texts: pa.Array) -> pa.Array:
    is_word = pc.is_in(texts, pa.array(NULL_WORDS))
    return pc.if_else(is_word, pa.scalar(None, pa.utf8()), texts)


def _convert_scalars(texts: pa.Array, scalar: Scalar, form: TextForm) -> pa.Array | None:
    match scalar:
        case Scalar.BOOL:
            return _truths(texts)
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            width = pa.uint64() if scalar is Scalar.U64 else pa.int64()
            return pc.cast(pc.replace_substring_regex(texts, r"^\+", ""), width)
        case Scalar.F32 | Scalar.F64:
            return pc.cast(_with_point(texts, form), pa.float64())
        case Scalar.DATE | Scalar.DATETIME:
            return texts if form.dates is None else _dates(texts, scalar, form.dates)
        case _:
            return texts


def _truths(texts: pa.Array) -> pa.Array | None:
    is_true = pc.is_in(texts, pa.array(TRUE_WORDS))
    is_known = pc.or_(is_true, pc.is_in(texts, pa.array(FALSE_WORDS)))
    if not pc.all(pc.or_(is_known, texts.is_null()), min_count=0).as_py():
        return None
    return pc.if_else(texts.is_null(), pa.scalar(None, pa.bool_()), is_true)


def _with_point(texts: pa.Array, form: TextForm) -> pa.Array:
    if form.decimal == ".":
        return texts
    if pc.any(pc.match_substring(texts, "."), min_count=0).as_py():
        raise ValueError("both a point and a decimal comma")
    return pc.replace_substring(texts, form.decimal, ".")


def _dates(texts: pa.Array, scalar: Scalar, pattern: str) -> pa.Array | None:
    """Dates by a pattern, each distinct text once: Arrow's own reader knows few patterns."""
    distinct = pc.dictionary_encode(texts)
    found = []
    for text in distinct.dictionary.to_pylist():
        instant = datetime.strptime(text, pattern)
        instant = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
        found.append(_spell(instant, scalar))
    return pc.take(pa.array(found, pa.utf8()), distinct.indices)


def _spell(instant: datetime, scalar: Scalar) -> str:
    if scalar is Scalar.DATE:
        return instant.date().isoformat()
    return instant.isoformat(timespec="milliseconds")


def _lists(texts: pa.Array, type_: PropertyType, form: TextForm) -> pa.Array | None:
    if form.lists is not None:
        return _split(texts, type_, form)
    present = texts.drop_null().to_pylist()
    try:
        # One text for all: the parser runs once, whatever the number of rows.
        values = iter(orjson.loads(f"[{','.join(present)}]"))
    except orjson.JSONDecodeError:
        return None
    each = [next(values, None) if there else None for there in texts.is_valid().to_pylist()]
    if next(values, None) is not None or not all(isinstance(v, list | None) for v in each):
        return None
    try:
        return pa.array(each, _json_list(type_))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _json_list(type_: PropertyType) -> pa.DataType:
    if type_.is_vector:
        return pa.list_(pa.float64())
    return pa.list_(reader_type(type_.element(), TextForm()))


def _split(texts: pa.Array, type_: PropertyType, form: TextForm) -> pa.Array | None:
    assert form.lists is not None
    parts = pc.split_pattern(texts, form.lists)
    item = PropertyType(Scalar.F32) if type_.is_vector else type_.element()
    items = convert_texts(pc.utf8_trim_whitespace(parts.flatten()), item, form)
    if items is None or items.null_count:
        return None
    return pa.ListArray.from_arrays(parts.offsets, items, mask=parts.is_null())
