"""Rendering query results: table, kv, csv, jsonl and json.

Text from the graph is data, not instructions: control characters are printed as escapes, so that a
stored value cannot move the cursor, recolour the terminal or start a formula in a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from omnigraph.dataclass import dataclass

COLUMN_WIDTH_MAX = 80
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class Format(StrEnum):
    TABLE = "table"
    KV = "kv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Look:
    """How wide a column of a table may be, and whether longer cells are cut or wrapped."""

    column_width_max: int = COLUMN_WIDTH_MAX
    is_wrapped: bool = False


def render(envelope: Mapping[str, Any], format_: Format, look: Look = Look()) -> Iterator[str]:
    """Yield the lines of a query result in one of the formats."""
    rows: list[Mapping[str, Any]] = envelope["rows"]
    columns = _columns(envelope, rows)
    match format_:
        case Format.JSON:
            yield json.dumps(envelope, indent=2, ensure_ascii=False)
        case Format.JSONL:
            facts = {name: envelope[name] for name in ("query_name", "target", "row_count")}
            yield json.dumps({"kind": "metadata", **facts}, ensure_ascii=False)
            for row in rows:
                yield json.dumps(row, ensure_ascii=False)
        case Format.CSV:
            yield from _csv_lines(columns, rows)
        case Format.KV:
            yield _headline(envelope)
            yield from _kv_lines(columns, rows)
        case Format.TABLE:
            yield _headline(envelope)
            yield from render_table(columns, rows, look)


def _columns(envelope: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    named = envelope.get("columns")
    return list(named) if named else sorted({name for row in rows for name in row})


def _headline(envelope: Mapping[str, Any]) -> str:
    target = envelope["target"]
    snapshot = target.get("snapshot")
    where = f"snapshot {snapshot}" if snapshot else f"branch {target['branch']}"
    return f"{envelope['row_count']} rows from {where} via {envelope['query_name']}"


def render_table(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], look: Look = Look()
) -> Iterator[str]:
    """Yield the lines of a table, one row after the other."""
    heads = [_fit_cell(name, look) for name in columns]
    cells = [[_fit_cell(_to_text(row.get(name)), look) for name in columns] for row in rows]
    widths = [
        max(len(line) for cell in column for line in cell)
        for column in zip(heads, *cells, strict=True)
    ]
    yield from _join_cells(heads, widths)
    yield "-+-".join("-" * width for width in widths)
    for row in cells:
        yield from _join_cells(row, widths)


def _join_cells(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of one row, as many as its tallest cell has."""
    for line in zip_longest(*cells, fillvalue=""):
        padded = (part.ljust(width) for part, width in zip(line, widths, strict=True))
        yield " | ".join(padded).rstrip()


def _kv_lines(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not rows:
        yield "(no rows)"
    for number, row in enumerate(rows, start=1):
        if number > 1:
            yield ""
        yield f"row {number}"
        for name in columns:
            yield f"{_escape(name)}: {_escape(_to_text(row.get(name)))}"


def _csv_lines(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_csv_cell(row.get(name)) for name in columns])
    yield buffer.getvalue().removesuffix("\n")


def _csv_cell(value: Any) -> str:
    text = _to_text(value)
    # A leading quote keeps a spreadsheet from running a stored text as a formula.
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA_STARTS) else text


def _to_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _fit_cell(text: str, look: Look) -> list[str]:
    """Cut a cell that is too wide, or wrap it."""
    escaped, width = _escape(text), look.column_width_max
    if len(escaped) <= width:
        return [escaped]
    if look.is_wrapped:
        return [escaped[start : start + width] for start in range(0, len(escaped), width)]
    return [escaped[: width - 1] + "…"]


def _escape(text: str) -> str:
    """Escape everything that a terminal would act on; the result is one line."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
