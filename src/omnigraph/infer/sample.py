"""Sample: the first rows of a file as Arrow columns, whatever its format."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.ipc as ipc
import pyarrow.json as pj
import pyarrow.parquet as pq

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError

SAMPLE_BYTES = 16 * 1024 * 1024
SAMPLE_ROWS = 100_000

_DELIMITERS = ",;\t|"
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4")
_PARQUET, _ARROW = (".parquet",), (".arrow", ".feather", ".ipc")
_TEXT, _JSON = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of a file; `is_whole` when there are no others."""

    path: str
    rows: pa.Table
    is_whole: bool


def read_sample(path: str) -> Sample:
    """Read the first rows of a file.

    Raises:
        BadRequestError: It cannot be read, or is of no known format, or has no rows.
    """
    ending = os.path.splitext(_plain_name(path))[1].lower()
    with _reading(path):
        if ending in _PARQUET:
            sample = _read_parquet(path)
        elif ending in _ARROW:
            sample = _read_arrow(path)
        elif ending in _TEXT:
            text, is_whole = _read_text(path)
            sample = Sample(path, _read_csv(text), is_whole)
        elif ending in _JSON:
            text, is_whole = _read_text(path)
            sample = Sample(path, pj.read_json(pa.BufferReader(text)), is_whole)
        else:
            known = ", ".join((*_TEXT, *_JSON, *_PARQUET, *_ARROW))
            raise BadRequestError(f"{path}: its format is not known by its name — one of {known}")
    if sample.rows.num_rows == 0 or sample.rows.num_columns == 0:
        raise BadRequestError(f"{path}: there are no rows to infer a type from")
    return sample


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise BadRequestError(f"{path}: there is no such file") from None
    except (OSError, pa.ArrowException, UnicodeError, csv.Error) as error:
        reason = str(error).splitlines()[0][:200]
        raise BadRequestError(f"{path}: cannot be read: {reason}") from None


def _plain_name(path: str) -> str:
    return path.removesuffix(next((each for each in _COMPRESSIONS if path.endswith(each)), ""))


def type_stem(path: str) -> str:
    """What a file is called, without its directory and endings."""
    return os.path.splitext(os.path.basename(_plain_name(path)))[0]


def _read_text(path: str) -> tuple[bytes, bool]:
    """The first whole lines of a file, and whether that is all of it."""
    with pa.input_stream(path, compression="detect") as stream:
        data = stream.read(SAMPLE_BYTES)
        if len(data) < SAMPLE_BYTES or not stream.read(1):
            return data, True
    return data[: data.rfind(b"\n") + 1], False


def _read_csv(text: bytes) -> pa.Table:
    header = text.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode()
    delimiter = max(_DELIMITERS, key=header.count)
    return pcsv.read_csv(
        pa.BufferReader(text),
        parse_options=pcsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pcsv.ConvertOptions(strings_can_be_null=True),
    )


def _read_parquet(path: str) -> Sample:
    file = pq.ParquetFile(path)
    batch = next(file.iter_batches(SAMPLE_ROWS), None)
    rows = file.schema_arrow.empty_table() if batch is None else pa.Table.from_batches([batch])
    return Sample(path, rows, file.metadata.num_rows == rows.num_rows)


def _read_arrow(path: str) -> Sample:
    with pa.memory_map(path) as source:
        try:
            rows = ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            rows = ipc.open_stream(source).read_all()
        return Sample(path, rows.slice(0, SAMPLE_ROWS), rows.num_rows <= SAMPLE_ROWS)
