"""Images: rows as plain values that JSON can hold, the way an export spells them.

Date       "2026-04-14"               Blob        "base64:…"
DateTime   "2026-04-14T09:30:00.000Z"  NaN, ±inf   "NaN", "Infinity", "-Infinity"
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from omnigraph.executor.result import json_values

Image = Mapping[str, Any]


def images(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Every row of a batch, by column name."""
    columns = {
        name: plain_values(batch.column(position))
        for position, name in enumerate(batch.schema.names)
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain_values(column: pa.Array) -> list[Any]:
    """The values of a column, JSON-ready: as a query shows them, and blobs as texts."""
    if pa.types.is_large_binary(column.type):
        return [
            None if value is None else "base64:" + base64.b64encode(value).decode()
            for value in column.to_pylist()
        ]
    return json_values(column)


def list_changed_properties(before: Image, after: Image) -> list[str]:
    """The properties whose values differ, in column order."""
    names = dict.fromkeys([*before, *after])
    return [name for name in names if _differ(before.get(name), after.get(name))]


def _differ(first: Any, second: Any) -> bool:
    # -0.0 == 0.0 in Python, yet they are two values.
    return repr(first) != repr(second)
