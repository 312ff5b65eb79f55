"""Arrow files and streams, Feather files: ranges are record batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.blocks import Block
from omnigraph.pipeline.formats.columnar import (
    bind_schema,
    reading_columns,
    refuse_packed,
    rows_per_batch,
    to_block,
)
from omnigraph.pipeline.formats.model import PlannedFile, TypedFile
from omnigraph.pipeline.input_files import Options, is_object, open_raw
from omnigraph.pipeline.model import RowForm, RowsRange

KIND = "Arrow"
_MAGIC = b"ARROW1"


@dataclass(frozen=True, slots=True)
class ArrowFormat:
    """The format of Arrow itself, in files (`.arrow`, `.feather`) and streams (`.arrows`)."""

    name: str = "arrow"

    def plan(self, file: TypedFile, part_bytes: int, options: Options) -> PlannedFile:
        refuse_packed(file.path, KIND)
        with open_arrow(file.path, options) as opened:
            form = bind_schema(file.rules, opened.schema, file.path)
            if not isinstance(opened, pa.RecordBatchFileReader):
                whole = RowsRange(file.path, self.name, form)
                return PlannedFile((whole,), file.size)
            ranges = tuple(_batch_ranges(file.path, form, opened, part_bytes))
        return PlannedFile(ranges, file.size)

    def read(self, range_: RowsRange, part_bytes: int, options: Options) -> Iterator[Block]:
        first = range_.first
        with open_arrow(range_.path, options) as opened:
            for batch in _batches(opened, range_):
                used = batch.select([name for name, _ in range_.form.columns])
                rows = rows_per_batch(batch.num_rows, used.nbytes, part_bytes)
                for start in range(0, batch.num_rows, rows):
                    block = to_block(used.slice(start, rows), range_.form, first)
                    yield block
                    first += block.rows.num_rows


def _batches(opened: Any, range_: RowsRange) -> Iterator[pa.RecordBatch]:
    if range_.end is None:
        yield from opened
        return
    for index in range(range_.start, range_.end):
        yield opened.get_batch(index)


@contextmanager
def open_arrow(path: str, options: Options) -> Iterator[Any]:
    """Open a file or a stream, whichever it is."""
    with open_raw(path, options) as raw, reading_columns(path, KIND):
        is_file = raw.read(len(_MAGIC)) == _MAGIC
        raw.seek(0)
        source = raw if is_object(path) else pa.memory_map(path)
        open_source = pa.ipc.open_file if is_file else pa.ipc.open_stream
        with open_source(source) as opened:
            yield opened


def _batch_ranges(
    path: str, form: RowForm, opened: pa.RecordBatchFileReader, part_bytes: int
) -> Iterator[RowsRange]:
    start, first, rows, weight = 0, 1, 0, 0
    for index in range(opened.num_record_batches):
        batch = opened.get_batch(index)
        rows, weight = rows + batch.num_rows, weight + batch.nbytes
        if weight >= part_bytes or index == opened.num_record_batches - 1:
            yield RowsRange(path, "arrow", form, start, index + 1, first)
            start, first, rows, weight = index + 1, first + rows, 0, 0
