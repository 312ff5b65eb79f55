"""JSON files, with one object per line or otherwise: rows of one type, or records that name theirs.

Plain files with one object per line are cut by bytes, wherever a cut falls: a line belongs to the
range it starts in. Compressed files and files of other shapes are read from front to back.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.blocks import Block
from omnigraph.pipeline.formats.csv_file import UNPACKED_RATIO
from omnigraph.pipeline.formats.model import PlannedFile, TypedFile
from omnigraph.pipeline.input_files import Options, is_compressed, open_input, reading
from omnigraph.pipeline.model import LineRange, Range, RowForm, RowsRange, StreamRange

SNIFFED_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Objects, one per line or in any other layout."""

    name: str = "json"

    def plan(self, file: TypedFile, part_bytes: int, options: Options) -> PlannedFile:
        form = file.rules.to_form()
        return plan_json(file.path, file.size, part_bytes, options, form)

    def read(self, range_: RowsRange, part_bytes: int, options: Options) -> Iterator[Block]:
        raise AssertionError("JSON is read by lines and streams")


def plan_json(
    path: str, size: int, part_bytes: int, options: Options, form: RowForm | None = None
) -> PlannedFile:
    """Cut a file of records, or with a form of rows."""
    ranges = tuple(_ranges(path, size, part_bytes, options, form))
    return PlannedFile(ranges, size * (UNPACKED_RATIO if is_compressed(path) else 1))


def _ranges(
    path: str, size: int, part_bytes: int, options: Options, form: RowForm | None
) -> Iterator[Range]:
    head = read_head(path, options)
    is_document_ = is_document(head)
    if is_document_ or is_compressed(path):
        yield StreamRange(path, is_document_, form)
        return
    for start in range(0, size, part_bytes):
        yield LineRange(path, start, min(start + part_bytes, size), form)


def read_head(path: str, options: Options) -> bytes:
    """The beginning of a file, decompressed."""
    with open_input(path, options) as file, reading(path):
        return file.read(SNIFFED_BYTES)


def is_document(head: bytes) -> bool:
    """Whether the first record does not stand on one line of its own."""
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or stripped.startswith(b"//"):
            continue
        if stripped.startswith(b"["):
            return True
        is_cut = number == len(lines) - 1 and len(head) == SNIFFED_BYTES
        return not is_cut and not _is_json(stripped)
    return False


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
