"""CSV files: the header, the delimiter and the encoding are found, then the file is cut.

A plain file is cut where records end, so that each range is whole records; the pass over the file
that finds the places costs a few percent of reading it. Compressed files and those in another
encoding than UTF-8 are read from front to back.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import BinaryIO

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.pipeline.binding import RowRules, bind_columns, known_targets
from omnigraph.pipeline.blocks import Block, CsvBlock, refuse_endless
from omnigraph.pipeline.formats.csv_records import count_lines, cut_blocks, find_records, last_break
from omnigraph.pipeline.formats.model import PlannedFile, TypedFile
from omnigraph.pipeline.input_files import Options, is_compressed, open_input, plain_name, reading
from omnigraph.pipeline.model import RowForm, RowsRange

DELIMITERS = ",;\t|"
UNPACKED_RATIO = 8

_HEAD_BYTES = 1 << 20
_BOM = codecs.BOM_UTF8
_WIDE_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """Text with a delimiter between values and a header in its first line."""

    name: str = "csv"

    def plan(self, file: TypedFile, part_bytes: int, options: Options) -> PlannedFile:
        rules, is_packed = file.rules, is_compressed(file.path)
        encoding = rules.text.encoding or find_wide_encoding(file.path, options)
        rules = replace(rules, text=replace(rules.text, encoding=encoding))
        head = _read_head(file.path, encoding, options)
        form, start, first, notes = _read_header(file.path, head, rules)
        weight = file.size * (UNPACKED_RATIO if is_packed else 1)
        if is_packed or encoding is not None:
            return PlannedFile((_range(file.path, form, start, None, first),), weight, notes)
        if file.size <= part_bytes:
            return PlannedFile((_range(file.path, form, start, file.size, first),), weight, notes)
        ranges = _cut(file.path, form, start, first, part_bytes, options)
        return PlannedFile(tuple(ranges), weight, notes)

    def read(self, range_: RowsRange, part_bytes: int, options: Options) -> Iterator[Block]:
        form, line = range_.form, range_.first
        with reading_text(range_.path, form.text.encoding, options) as read:
            if range_.end is not None:
                data = read(range_.start, range_.end - range_.start)
                yield CsvBlock(line, data, form)
                return
            read(0, range_.start)
            delimiter = _delimiter(form)
            for data in cut_blocks(lambda n: read(None, n), range_.path, delimiter, part_bytes):
                yield CsvBlock(line, data, form)
                line += count_lines(data)


def _range(path: str, form: RowForm, start: int, end: int | None, first: int) -> RowsRange:
    return RowsRange(path, "csv", form, start, end, first)


def _delimiter(form: RowForm) -> bytes:
    return (form.text.delimiter or ",").encode()


def _cut(
    path: str, form: RowForm, start: int, first: int, part_bytes: int, options: Options
) -> Iterator[RowsRange]:
    delimiter, size = _delimiter(form), part_bytes
    with open_input(path, options) as file, reading(path):
        while data := _read_at(file, start, size):
            end = last_break(data, delimiter) if len(data) == size else len(data)
            if not end:
                refuse_endless(data, path)
                size *= 2
                continue
            yield _range(path, form, start, start + end, first)
            first += count_lines(data, end)
            start, size = start + end, part_bytes


def _read_at(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size)


def find_wide_encoding(path: str, options: Options) -> str | None:
    """The encoding that the first bytes of a file tell, unless it is UTF-8."""
    with open_input(path, options) as file, reading(path):
        start = file.read(4)
    return next((name for mark, name in _WIDE_BOMS if start.startswith(mark)), None)


@contextmanager
def reading_text(
    path: str, encoding: str | None, options: Options
) -> Iterator[Callable[[int | None, int], bytes]]:
    """A function that reads (from where, how many bytes) of a file, as UTF-8.

    In another encoding, and of compressed files, only what follows can be read.
    """
    with open_input(path, options) as file, reading(path):
        if encoding is None:

            def read(start: int | None, size: int) -> bytes:
                if start:
                    file.seek(start)
                return file.read(size)

            yield read
            return
        decoder = codecs.getincrementaldecoder(encoding)()
        pending = b""

        def decode(start: int | None, size: int) -> bytes:
            nonlocal pending
            while len(pending) < size:
                raw = file.read(max(size, 4))
                pending += decoder.decode(raw, final=not raw).encode()
                if not raw:
                    break
            found, pending = pending[:size], pending[size:]
            return found

        try:
            yield decode
        except UnicodeDecodeError:
            raise BadRequestError(
                f"cannot read '{path}': it is not in the encoding {encoding} — nothing was written"
            ) from None


def _read_head(path: str, encoding: str | None, options: Options) -> bytes:
    with reading_text(path, encoding, options) as read:
        head = read(0, _HEAD_BYTES)
    # Texts below the first line may hold a NUL, as every other character.
    if b"\0" in head.partition(b"\n")[0]:
        raise _refused(path, "it is not text")
    return head


def _read_header(
    path: str, head: bytes, rules: RowRules
) -> tuple[RowForm, int, int, tuple[str, ...]]:
    """The form of the rows, where they start, on which line, and what was guessed."""
    mark = len(_BOM) if head.startswith(_BOM) else 0
    first_line, _, _ = head[mark:].partition(b"\n")
    delimiter = rules.text.delimiter
    notes: tuple[str, ...] = ()
    if delimiter is None:
        delimiter, notes = _guess_delimiter(path, first_line, rules)
    rules = replace(rules, text=replace(rules.text, delimiter=delimiter))
    if rules.text.header:
        return bind_columns(rules, rules.text.header, path), mark, 1, notes
    records = find_records(head[mark:], delimiter.encode())
    if not len(records.starts):
        raise _refused(path, "it is empty; expected a first line that names its columns")
    is_cut = len(records.starts) == 1 and len(head) >= _HEAD_BYTES
    if is_cut or (records.is_open and len(records.starts) == 1):
        raise _refused(path, "its first line, which names its columns, has no end")
    text = head[mark:][records.starts[0] : records.ends[0]]
    names = _split_header(path, text, delimiter)
    end = int(records.starts[1]) if len(records.starts) > 1 else len(head) - mark
    line = int(records.lines[1]) if len(records.starts) > 1 else 2
    return bind_columns(rules, names, path), mark + end, line, notes


def _split_header(path: str, text: bytes, delimiter: str) -> list[str]:
    try:
        line = text.decode()
    except UnicodeDecodeError:
        raise _refused(
            path, "its first line is not UTF-8; name its encoding in a mapping"
        ) from None
    return [name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=False))]


def _guess_delimiter(path: str, line: bytes, rules: RowRules) -> tuple[str, tuple[str, ...]]:
    """The delimiter that makes most columns of the first line known; a note if it is unusual."""
    usual = "\t" if plain_name(path).lower().endswith((".tsv", ".tab")) else ","
    known = known_targets(rules.entity) | rules.columns.keys() | rules.ignored
    text = line.decode(errors="replace")

    def score(delimiter: str) -> tuple[int, int, bool]:
        names = [name.strip() for name in next(csv.reader([text], delimiter=delimiter), [])]
        return sum(name in known for name in names), len(names), delimiter == usual

    best = max(DELIMITERS, key=score)
    if best == usual or rules.text.header:
        return usual, ()
    return best, (f"{path}: columns are separated by {_spell(best)}, by its first line",)


def _spell(delimiter: str) -> str:
    return "a tab" if delimiter == "\t" else f"'{delimiter}'"


def _refused(path: str, reason: str) -> BadRequestError:
    return BadRequestError(f"cannot read '{path}': {reason} — nothing was written")
