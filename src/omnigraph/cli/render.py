"""Rendering query results: table, kv, csv, jsonl and json.

Text from the graph is data, not instructions: control characters are shown as escapes, so a stored
value cannot move the cursor, recolour the terminal or start a formula in a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class Format(StrEnum):
    TABLE = "table"
    KV = "kv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Look:
    """How a table looks: how wide a column may be, and whether longer cells are cut or wrapped."""

    column_width_max: int = 80
    is_wrapped: bool = False


def render(envelope: Mapping[str, Any], format_: Format, look: Look = Look()) -> Iterator[str]:
    """The lines of a read envelope in one of the formats."""
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
            yield from _table_lines(columns, rows, look)


def _columns(envelope: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    named = envelope.get("columns")
    return list(named) if named else sorted({name for row in rows for name in row})


def _headline(envelope: Mapping[str, Any]) -> str:
    target = envelope["target"]
    snapshot = target.get("snapshot")
    where = f"snapshot {snapshot}" if snapshot else f"branch {target['branch']}"
    return f"{envelope['row_count']} rows from {where} via {envelope['query_name']}"


def _table_lines(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], look: Look
) -> Iterator[str]:
    heads = [_shown(name, look) for name in columns]
    cells = [[_shown(_text(row.get(name)), look) for name in columns] for row in rows]
    widths = [
        max(len(line) for cell in (heads[place], *(row[place] for row in cells)) for line in cell)
        for place in range(len(columns))
    ]
    yield from _joined(heads, widths)
    yield "-+-".join("-" * width for width in widths)
    for row in cells:
        yield from _joined(row, widths)


def _joined(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """One row: as many lines as its tallest cell."""
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
            yield f"{_escaped(name)}: {_escaped(_text(row.get(name)))}"


def _csv_lines(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_csv_cell(row.get(name)) for name in columns])
    yield buffer.getvalue().removesuffix("\n")


def _csv_cell(value: Any) -> str:
    text = _text(value)
    # A leading quote keeps a spreadsheet from running a stored text as a formula.
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA_STARTS) else text


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shown(text: str, look: Look) -> list[str]:
    """A cell on one line, cut when it is too long; or on several."""
    escaped, width = _escaped(text), look.column_width_max
    if len(escaped) <= width:
        return [escaped]
    if look.is_wrapped:
        return [escaped[start : start + width] for start in range(0, len(escaped), width)]
    return [escaped[: width - 1] + "…"]


def _escaped(text: str) -> str:
    """The text on one line, with everything a terminal would act on made visible."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
