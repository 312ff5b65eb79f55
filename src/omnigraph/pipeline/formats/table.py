"""The formats, by name, by the ending of a file, and by its first bytes."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.errors import BadRequestError
from omnigraph.pipeline.formats.arrow_ipc import ArrowFormat
from omnigraph.pipeline.formats.csv_file import CsvFormat
from omnigraph.pipeline.formats.json_file import JsonFormat
from omnigraph.pipeline.formats.model import FileFormat
from omnigraph.pipeline.formats.parquet import ParquetFormat
from omnigraph.pipeline.input_files import (
    Options,
    check_compression,
    open_input,
    plain_name,
    reading,
)

JSON = JsonFormat()
CSV = CsvFormat()
PARQUET = ParquetFormat()
ARROW = ArrowFormat()

FORMATS: Mapping[str, FileFormat] = {each.name: each for each in (JSON, CSV, PARQUET, ARROW)}

ENDINGS: Mapping[str, FileFormat] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), JSON),
    **dict.fromkeys((".csv", ".tsv", ".tab"), CSV),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), ARROW),
}

_MAGIC = (
    (b"PAR1", PARQUET),
    (b"ARROW1", ARROW),
    (b"\xff\xff\xff\xff", ARROW),
)
_PACKED = (
    (b"\x1f\x8b", ".gz"),
    (b"BZh", ".bz2"),
    (b"\x28\xb5\x2f\xfd", ".zst"),
)
_SPREADSHEETS = (".xls", ".xlsx", ".xlsm", ".ods", ".numbers")
_HEAD_BYTES = 4096


def find_format(path: str, options: Options, *, is_typed: bool) -> FileFormat:
    """The format of a file: by its ending, else by its first bytes.

    Of text that is no JSON only a file of a given type is taken as CSV.

    Raises:
        BadRequestError: It is compressed in an unknown way, or no format that is known.
    """
    check_compression(path)
    if path.lower().endswith(_SPREADSHEETS):
        raise _unknown(path, "it is a spreadsheet; save each sheet as CSV")
    known = ending_format(path)
    if known is not None and known is not JSON:
        return known
    with open_input(path, options) as file, reading(path):
        head = file.read(_HEAD_BYTES)
    for magic, found in _MAGIC:
        if head.startswith(magic):
            return found
    packed = next((ending for magic, ending in _PACKED if head.startswith(magic)), None)
    if packed is not None:
        raise _unknown(path, f"it is compressed, but its name does not end in {packed}")
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _unknown(path, "it is not text, and no Parquet or Arrow file either")
    if known is not None or not is_typed or _looks_like_json(head):
        return JSON
    return CSV


def ending_format(path: str) -> FileFormat | None:
    """The format that the name of a file tells."""
    name = plain_name(path).lower()
    return next((found for ending, found in ENDINGS.items() if name.endswith(ending)), None)


def _looks_like_json(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"["))


def _unknown(path: str, reason: str) -> BadRequestError:
    return BadRequestError(f"cannot read '{path}': {reason} — nothing was written")
