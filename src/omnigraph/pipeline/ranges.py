"""Ranges: the input of a load, cut into ranges that tasks can read on their own.

Files are cut by their format (`formats/`), records that a program has are cut here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain, islice
from typing import Any, assert_never

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.formats.json_file import SNIFFED_BYTES, is_document
from omnigraph.pipeline.input_files import Options
from omnigraph.pipeline.model import (
    FrameRange,
    LineRange,
    ParquetRange,
    Range,
    RecordsRange,
    RowsRange,
    StreamRange,
    TextRange,
)
from omnigraph.pipeline.spooled import show_names

RECORDS_PER_RANGE = 150_000
TEXT = "data"


@dataclass(frozen=True, slots=True)
class Input:
    """All ranges of a load in input order, and whether they are small together.

    `file_bytes` is the size of input that tasks read from files; rows in this process have none.
    `notes` say what was guessed about the files, `models` what made their vectors, as far as that
    is known, by `Type.property`.
    """

    ranges: Iterable[Range] = field(repr=False)
    is_small: bool
    options: Options = field(default_factory=dict, repr=False)
    file_bytes: int = 0
    parts: int = 1
    notes: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)


def plan_values(data: str | Iterable[Any], part_bytes: int) -> Input:
    """Cut records that a program has into ranges: a text, or values."""
    if isinstance(data, str):
        return _text_input(data.encode(), part_bytes)
    return _records_input(data)


def is_text(text: str) -> bool:
    """Whether a string is the records themselves and not the path of a file."""
    stripped = text.lstrip()
    return not stripped or stripped.startswith(("{", "//")) or stripped[:2] in _ARRAY_STARTS


_ARRAY_STARTS = ("[", "[{", "[]", "[ ", "[\n", "[\r", "[\t")


def source_name(range_: Range) -> str:
    """What a user calls the input that a range is part of."""
    match range_:
        case LineRange(path) | StreamRange(path) | RowsRange(path):
            return path
        case TextRange():
            return TEXT
        case RecordsRange():
            return "record"
        case FrameRange(table_key) | ParquetRange(table_key):
            return table_key.partition(":")[2]
        case _:
            assert_never(range_)


def location_text(range_: Range, line: int, column: int | None) -> str:
    """Name the location of a record: `people.jsonl:7`, `record 7` or `Person row 7`."""
    name = show_names(source_name(range_))
    match range_:
        case RecordsRange():
            return f"{name} {line}"
        case FrameRange() | ParquetRange():
            return f"{name} row {line}"
        case RowsRange(format="parquet", start=start, end=end) if end == start + 1:
            return f"{name} row {line} (row group {start})"
        case RowsRange(format="parquet" | "arrow"):
            return f"{name} row {line}"
        case _:
            return f"{name}:{line}" if column is None else f"{name}:{line}:{column}"


def _text_input(data: bytes, part_bytes: int) -> Input:
    if is_document(data[:SNIFFED_BYTES]):
        return Input([TextRange(data, is_document=True)], len(data) <= part_bytes)
    return Input(list(_text_ranges(data, part_bytes)), len(data) <= part_bytes)


def _text_ranges(data: bytes, part_bytes: int) -> Iterator[Range]:
    start = 0
    while start < len(data):
        newline = data.find(b"\n", min(start + part_bytes, len(data)) - 1)
        end = newline + 1 if newline >= 0 else len(data)
        yield TextRange(data[start:end])
        start = end


def _records_input(records: Iterable[Any]) -> Input:
    def chunks() -> Iterator[Range]:
        first, rest = 1, iter(records)
        while chunk := tuple(islice(rest, RECORDS_PER_RANGE)):
            yield RecordsRange(first, chunk)
            first += len(chunk)

    ranges = chunks()
    ahead = list(islice(ranges, 2))
    return Input(chain(ahead, ranges), is_small=len(ahead) <= 1)
