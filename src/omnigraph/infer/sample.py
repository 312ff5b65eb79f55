"""Sample: the first rows of a file as Arrow columns, whatever its format.

Files are opened and told apart as a load does it, and refused in the same words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pj
import pyarrow.parquet as pq

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.infer.written import USUAL, Written, read_written
from omnigraph.pipeline.documents import RawRecord, scan_records
from omnigraph.pipeline.formats import parquet
from omnigraph.pipeline.formats.arrow_ipc import open_arrow
from omnigraph.pipeline.formats.columnar import reading_columns, refuse_packed
from omnigraph.pipeline.formats.csv_file import DELIMITERS, find_wide_encoding, reading_text
from omnigraph.pipeline.formats.csv_records import count_lines, last_break
from omnigraph.pipeline.formats.table import find_format
from omnigraph.pipeline.input_files import Options, open_input, open_raw, plain_name, size_of

SAMPLE_BYTES = 16 * 1024 * 1024
SAMPLE_ROWS = 100_000

_BOM = b"\xef\xbb\xbf"
_CHANGED = re.compile(r"Column\(/([^)]*)\) changed from (\w+) to (\w+) in row (\d+)")


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of a file; `is_whole` when there are no others.

    `ragged` rows, with more or fewer values than there are columns, are left out.
    """

    path: str
    rows: pa.Table
    is_whole: bool
    ragged: int = 0
    written: Written = USUAL


def read_sample(path: str, options: Options) -> Sample:
    """Read the first rows of a file.

    Raises:
        BadRequestError: It cannot be read, or is of no known format, or has no rows.
    """
    size_of(path, options)  # refuses a device, which may have no end
    sample = _READERS[find_format(path, options, is_typed=True).name](path, options)
    if sample.rows.num_rows == 0 or sample.rows.num_columns == 0:
        raise BadRequestError(f"{path}: there are no rows to infer a type from")
    return sample


def type_stem(path: str) -> str:
    """What a file is called, without its directory and endings."""
    return os.path.splitext(os.path.basename(plain_name(path)))[0]


def _read_csv(path: str, options: Options) -> Sample:
    with reading_text(path, find_wide_encoding(path, options), options) as read:
        text = read(0, SAMPLE_BYTES).removeprefix(_BOM)
        is_whole = not read(None, 1)
    delimiter = _guess_delimiter(path, text)
    if not is_whole:
        text = text[: last_break(text, delimiter.encode())]
    _refuse_unreadable(path, text)
    ragged: list[int] = []

    def leave_out(row: Any) -> str:
        ragged.append(row.number)
        return "skip"

    with reading_columns(path, "CSV"):
        rows = pcsv.read_csv(
            pa.BufferReader(text),
            # Arrow counts ragged rows only without threads.
            read_options=pcsv.ReadOptions(use_threads=False),
            parse_options=pcsv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=leave_out
            ),
            convert_options=pcsv.ConvertOptions(strings_can_be_null=True),
        )
    rows, written = read_written(rows)
    return Sample(path, rows, is_whole, len(ragged), written)


def _guess_delimiter(path: str, text: bytes) -> str:
    header = text.split(b"\n", 1)[0].decode(errors="replace")
    usual = "\t" if plain_name(path).lower().endswith((".tsv", ".tab")) else ","
    best: str = max((usual, *DELIMITERS), key=header.count)
    return best


def _refuse_unreadable(path: str, text: bytes) -> None:
    if b"\0" in text.partition(b"\n")[0]:
        raise _refused(path, "it is not text")
    if not text.strip():
        raise _refused(path, "it is empty; expected a first line that names its columns")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = 1 + count_lines(text[: error.start])
        raise _refused(path, f"line {line} is not UTF-8; save the file as UTF-8") from None


def _read_json(path: str, options: Options) -> Sample:
    with open_input(path, options) as file:
        scanned = scan_records(file.read)
        records = list(islice(scanned, SAMPLE_ROWS))
        is_whole = next(scanned, None) is None
    # A line break is white space outside a string and invalid inside one.
    text = b"\n".join(record.text.replace(b"\n", b" ") for record in records)
    if not text:
        return Sample(path, pa.table({}), is_whole)
    try:
        rows = pj.read_json(
            pa.BufferReader(text), read_options=pj.ReadOptions(block_size=len(text) + 1)
        )
    except pa.ArrowInvalid as error:
        raise _find_wrong(path, records, str(error)) from None
    return Sample(path, rows, is_whole)


def _find_wrong(path: str, records: list[RawRecord], said: str) -> BadRequestError:
    """What Arrow could not read: a record that is no object, or a member of two types."""
    for record in records:
        try:
            is_object = isinstance(orjson.loads(record.text), dict)
            reason = "" if is_object else "not a JSON object"
        except orjson.JSONDecodeError as error:
            reason = f"not a JSON object: {error.msg.partition(':')[0]}"
        if reason:
            return BadRequestError(f"{path}:{record.line}: {reason} — nothing was written")
    changed = _CHANGED.search(said)
    if changed is None:
        return _refused(path, "its records do not have the same members of the same types")
    member, before, after, row = changed.groups()
    line = records[min(int(row), len(records) - 1)].line
    return BadRequestError(
        f"{path}:{line}: the member '{member}' is a {after} here and a {before} before — make it "
        "one of them; nothing was written"
    )


def _read_parquet(path: str, options: Options) -> Sample:
    refuse_packed(path, parquet.KIND)
    with (
        open_raw(path, options) as raw,
        reading_columns(path, parquet.KIND),
        pq.ParquetFile(raw) as file,
    ):
        batch = next(file.iter_batches(SAMPLE_ROWS), None)
        rows = file.schema_arrow.empty_table() if batch is None else pa.Table.from_batches([batch])
        return Sample(path, rows, file.metadata.num_rows == rows.num_rows)


def _read_arrow(path: str, options: Options) -> Sample:
    with open_arrow(path, options) as opened:
        batches, count = [], 0
        for batch in _list_batches(opened):
            batches.append(batch)
            count += batch.num_rows
            if count > SAMPLE_ROWS:
                break
        rows = pa.Table.from_batches(batches, opened.schema)
    return Sample(path, rows.slice(0, SAMPLE_ROWS), count <= SAMPLE_ROWS)


def _list_batches(opened: Any) -> Any:
    if isinstance(opened, pa.RecordBatchFileReader):
        return map(opened.get_batch, range(opened.num_record_batches))
    return opened


def _refused(path: str, reason: str) -> BadRequestError:
    return BadRequestError(f"cannot read '{path}': {reason} — nothing was written")


_READERS: Mapping[str, Callable[[str, Options], Sample]] = {
    "csv": _read_csv,
    "json": _read_json,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}
