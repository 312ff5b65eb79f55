"""Images: rows as plain values that JSON can hold, the way an export spells them.

Date       "2026-04-14"               Blob        "base64:…"
DateTime   "2026-04-14T09:30:00.000Z"  NaN, ±inf   "NaN", "Infinity", "-Infinity"
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

Image = Mapping[str, Any]


def images(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Every row of a batch, by column name."""
    columns = {
        name: plain_values(batch.column(position))
        for position, name in enumerate(batch.schema.names)
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain_values(column: pa.Array) -> list[Any]:
    """The values of a column, JSON-ready."""
    if pa.types.is_date64(column.type):
        # Python would show a date64 without its time of day.
        return [_instant(value) for value in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(column.type):
        return [None if value is None else value.isoformat() for value in column.to_pylist()]
    if pa.types.is_large_binary(column.type):
        return [_base64(value) for value in column.to_pylist()]
    if pa.types.is_floating(column.type):
        return [_number(value) for value in column.to_pylist()]
    if pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
        return [None if not item.is_valid else plain_values(item.values) for item in column]
    return list(column.to_pylist())


def _instant(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    text = pa.scalar(milliseconds, pa.timestamp("ms")).cast(pa.utf8()).as_py()
    return str(text).replace(" ", "T") + "Z"


def _base64(value: bytes | None) -> str | None:
    return None if value is None else "base64:" + base64.b64encode(value).decode()


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def list_changed_properties(before: Image, after: Image) -> list[str]:
    """The properties whose values differ, in column order."""
    names = dict.fromkeys([*before, *after])
    return [name for name in names if _differ(before.get(name), after.get(name))]


def _differ(first: Any, second: Any) -> bool:
    # -0.0 == 0.0 in Python, yet they are two values.
    return repr(first) != repr(second)
