"""Rendering query results: table, kv, csv, jsonl and json.

Text from the graph is data, not instructions: control characters are shown as escapes, so a stored
value cannot move the cursor, recolour the terminal or start a formula in a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.executor import QueryResult

COLUMN_WIDTH_MAX = 80
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class Format(StrEnum):
    TABLE = "table"
    KV = "kv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"


def result_to_json(result: QueryResult, target: dict[str, str | None]) -> dict[str, Any]:
    """The read envelope."""
    rows = result.rows()
    return {
        "query_name": result.query_name,
        "target": target,
        "row_count": len(rows),
        "columns": result.columns,
        "rows": rows,
        "graph_commit_id": result.commit_id,
    }


def render(result: QueryResult, target: dict[str, str | None], format_: Format) -> Iterator[str]:
    """The lines of a result in one of the formats."""
    match format_:
        case Format.JSON:
            yield json.dumps(result_to_json(result, target), indent=2, ensure_ascii=False)
        case Format.JSONL:
            envelope = result_to_json(result, target)
            facts = {name: envelope[name] for name in ("query_name", "target", "row_count")}
            yield json.dumps({"kind": "metadata", **facts}, ensure_ascii=False)
            for row in envelope["rows"]:
                yield json.dumps(row, ensure_ascii=False)
        case Format.CSV:
            yield from _csv_lines(result)
        case Format.KV:
            yield _headline(result, target)
            yield from _kv_lines(result)
        case Format.TABLE:
            yield _headline(result, target)
            yield from _table_lines(result)


def _headline(result: QueryResult, target: dict[str, str | None]) -> str:
    snapshot = target.get("snapshot")
    where = f"snapshot {snapshot}" if snapshot else f"branch {target['branch']}"
    return f"{len(result)} rows from {where} via {result.query_name}"


def _table_lines(result: QueryResult) -> Iterator[str]:
    columns = [_shown(name) for name in result.columns]
    cells = [[_shown(_text(row[name])) for name in result.columns] for row in result]
    widths = [
        max([len(column), *(len(row[place]) for row in cells)])
        for place, column in enumerate(columns)
    ]
    yield _joined(columns, widths)
    yield "-+-".join("-" * width for width in widths)
    for row in cells:
        yield _joined(row, widths)


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return " | ".join(padded).rstrip()


def _kv_lines(result: QueryResult) -> Iterator[str]:
    if len(result) == 0:
        yield "(no rows)"
    for number, row in enumerate(result, start=1):
        if number > 1:
            yield ""
        yield f"row {number}"
        for name in result.columns:
            yield f"{_escaped(name)}: {_escaped(_text(row[name]))}"


def _csv_lines(result: QueryResult) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result:
        writer.writerow([_csv_cell(row[name]) for name in result.columns])
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


def _shown(text: str) -> str:
    escaped = _escaped(text)
    if len(escaped) > COLUMN_WIDTH_MAX:
        return escaped[: COLUMN_WIDTH_MAX - 1] + "…"
    return escaped


def _escaped(text: str) -> str:
    """The text on one line, with everything a terminal would act on made visible."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
