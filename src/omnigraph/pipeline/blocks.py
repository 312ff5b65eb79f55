"""Blocks: a range, read in parts that fit in memory.

A block is either lines as bytes, which the parser takes as a whole, or records that are already
separate. The first line of a range is line 1 of it; the driver knows where the range begins.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import field
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.dataclass import dataclass
from omnigraph.errors import ResourceLimitError
from omnigraph.pipeline.documents import RECORD_BYTES_MAX, RawRecord, scan_records
from omnigraph.pipeline.input_files import Options, open_input, open_raw, reading
from omnigraph.pipeline.model import (
    FrameRange,
    LineRange,
    ParquetRange,
    Range,
    RecordsRange,
    RowForm,
    RowsRange,
    StreamRange,
    TextRange,
)

_NO_OPTIONS: Options = MappingProxyType({})
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RECORDS_PER_BLOCK = 50_000


@dataclass(frozen=True, slots=True)
class LinesBlock:
    """Whole lines; `first_line` counts from 1 in the range."""

    first_line: int
    data: bytes = field(repr=False)
    form: RowForm | None = None


@dataclass(frozen=True, slots=True)
class RawBlock:
    """Records as text, each with its line."""

    records: list[RawRecord] = field(repr=False)
    form: RowForm | None = None


@dataclass(frozen=True, slots=True)
class CsvBlock:
    """Whole records of CSV text; `first_line` counts from 1 in the file."""

    first_line: int
    data: bytes = field(repr=False)
    form: RowForm


@dataclass(frozen=True, slots=True)
class ValuesBlock:
    """Records as Python values; the number of a record is its line."""

    first: int
    records: tuple[Any, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class RowsBlock:
    """Typed rows of one table; the number of a row is its line."""

    table_key: str
    first: int
    rows: pa.Table = field(repr=False)
    constants: tuple[tuple[str, Any], ...] = ()


Block: TypeAlias = LinesBlock | RawBlock | CsvBlock | ValuesBlock | RowsBlock


def read_blocks(range_: Range, part_bytes: int, options: Options = _NO_OPTIONS) -> Iterator[Block]:
    """Yield the blocks of a range. `options` are for files in an object store.

    Raises:
        BadRequestError: The file cannot be read.
    """
    match range_:
        case LineRange():
            yield LinesBlock(1, _read_lines(range_, options), range_.form)
        case StreamRange(path):
            with open_input(path, options) as file:
                yield from _stream_blocks(file, range_, part_bytes)
        case RowsRange():
            from omnigraph.pipeline.formats.table import FORMATS

            yield from FORMATS[range_.format].read(range_, part_bytes, options)
        case TextRange(data, is_document):
            if is_document:
                whole = StreamRange("data", is_document=True)
                yield from _stream_blocks(io.BytesIO(data), whole, part_bytes)
            else:
                yield LinesBlock(1, data)
        case RecordsRange(first, records):
            yield ValuesBlock(first, records)
        case FrameRange(table_key, first, rows):
            yield RowsBlock(table_key, first, rows)
        case ParquetRange(table_key, path, first):
            yield from _parquet_blocks(table_key, path, first, options)
        case _:
            assert_never(range_)


def _read_lines(range_: LineRange, options: Options) -> bytes:
    """The lines that start within the range; the last one may end beyond it."""
    with open_raw(range_.path, options) as file, reading(range_.path):
        if range_.start > 0:
            # A line that begins before the range belongs to the previous range.
            file.seek(range_.start - 1)
            file.readline()
        position = file.tell()
        if position >= range_.end:
            return b""
        data = file.read(range_.end - position)
        if not data.endswith(b"\n"):
            rest = file.readline(RECORD_BYTES_MAX + 1)
            refuse_endless(rest, range_.path)
            data += rest
    return data.removeprefix(_BYTE_ORDER_MARK) if range_.start == 0 else data


def refuse_endless(line: bytes, path: str) -> None:
    if len(line) > RECORD_BYTES_MAX:
        raise ResourceLimitError(
            f"the size of a record in '{path}'",
            limit=RECORD_BYTES_MAX,
            actual=len(line),
            advice="split it into smaller records; nothing was written",
        )


def _stream_blocks(file: BinaryIO, range_: StreamRange, part_bytes: int) -> Iterator[Block]:
    path, form = range_.path, range_.form

    def read(size: int) -> bytes:
        with reading(path):
            return file.read(size)

    if range_.is_document:
        pending: list[RawRecord] = []
        size = 0
        for record in scan_records(read):
            pending.append(record)
            size += len(record.text)
            if size >= part_bytes or len(pending) >= _RECORDS_PER_BLOCK:
                yield RawBlock(pending, form)
                pending, size = [], 0
        if pending:
            yield RawBlock(pending, form)
        return
    line = 1
    data = read(part_bytes).removeprefix(_BYTE_ORDER_MARK)
    while data:
        more = read(part_bytes)
        cut = data.rfind(b"\n") + 1 if more else len(data)
        if cut:
            yield LinesBlock(line, data[:cut], form)
            line += data.count(b"\n", 0, cut)
        data = data[cut:] + more
        if b"\n" not in data:
            refuse_endless(data, path)


def _parquet_blocks(table_key: str, path: str, first: int, options: Options) -> Iterator[Block]:
    with open_raw(path, options) as raw, pq.ParquetFile(raw) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group)
            yield RowsBlock(table_key, first, rows)
            first += rows.num_rows
