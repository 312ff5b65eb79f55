"""Ranges: the input of a load, cut into ranges that tasks can read on their own.

Plain files with one record per line are cut by bytes, wherever a cut falls: a line belongs to the
range it starts in. Compressed files and files of other shapes are read from front to back, one task
each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, assert_never

import orjson

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.input_files import Options, is_gzip, matching, open_input, reading, size_of
from omnigraph.pipeline.model import (
    FrameRange,
    LineRange,
    ParquetRange,
    Range,
    RecordsRange,
    StreamRange,
    TextRange,
)

Source: TypeAlias = str | Path | Iterable[Mapping[str, Any]] | Iterable[str | Path]

RECORDS_PER_RANGE = 150_000
TEXT = "data"
_SNIFFED_BYTES = 1 << 16
_GZIP_RATIO = 8


@dataclass(frozen=True, slots=True)
class Input:
    """All ranges of a load in input order, and whether one of them is all there is and small.

    `file_bytes` is the size of input that tasks read from files; rows in this process have none.
    """

    ranges: Iterable[Range] = field(repr=False)
    is_small: bool
    options: Options = field(default_factory=dict, repr=False)
    file_bytes: int = 0
    parts: int = 1


def plan_input(data: Source, part_bytes: int, options: Options = MappingProxyType({})) -> Input:
    """Cut the input into ranges. `options` are for files in an object store.

    Raises:
        BadRequestError: A file is not there or cannot be read, or a pattern matches none.
    """
    match data:
        case str() if is_text(data):
            return _text_input(data.encode(), part_bytes)
        case str() | Path():
            return _files_input(matching(str(data), options), part_bytes, options)
        case list() | tuple() if data and all(isinstance(each, str | Path) for each in data):
            paths = chain.from_iterable(matching(str(each), options) for each in data)
            return _files_input(list(paths), part_bytes, options)
        case _:
            return _records_input(data)


def is_text(text: str) -> bool:
    """Whether a string is the records themselves and not the path of a file."""
    stripped = text.lstrip()
    return not stripped or stripped.startswith(("{", "//")) or stripped[:2] in _ARRAY_STARTS


_ARRAY_STARTS = ("[", "[{", "[]", "[ ", "[\n", "[\r", "[\t")


def source_name(range_: Range) -> str:
    """What a user calls the input that a range is part of."""
    match range_:
        case LineRange(path) | StreamRange(path):
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
    name = source_name(range_)
    match range_:
        case RecordsRange():
            return f"{name} {line}"
        case FrameRange() | ParquetRange():
            return f"{name} row {line}"
        case _:
            return f"{name}:{line}" if column is None else f"{name}:{line}:{column}"


def _files_input(paths: list[str], part_bytes: int, options: Options) -> Input:
    files = [(path, size_of(path, options)) for path in paths]
    ranges = list(chain.from_iterable(_file_ranges(*file, part_bytes, options) for file in files))
    weight = sum(size * (_GZIP_RATIO if is_gzip(path) else 1) for path, size in files)
    is_small = weight <= part_bytes and len(paths) == 1
    return Input(ranges, is_small, dict(options), file_bytes=weight, parts=len(ranges))


def _file_ranges(path: str, size: int, part_bytes: int, options: Options) -> Iterator[Range]:
    is_document = _is_document(_head(path, options))
    if is_document or is_gzip(path):
        yield StreamRange(path, is_document)
        return
    for start in range(0, size, part_bytes):
        yield LineRange(path, start, min(start + part_bytes, size))


def _head(path: str, options: Options) -> bytes:
    with open_input(path, options) as file, reading(path):
        return file.read(_SNIFFED_BYTES)


def _is_document(head: bytes) -> bool:
    """Whether the first record does not stand on one line of its own."""
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or stripped.startswith(b"//"):
            continue
        if stripped.startswith(b"["):
            return True
        is_cut = number == len(lines) - 1 and len(head) == _SNIFFED_BYTES
        return not is_cut and not _is_json(stripped)
    return False


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _text_input(data: bytes, part_bytes: int) -> Input:
    if _is_document(data[:_SNIFFED_BYTES]):
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
