"""Parquet: ranges are row groups, read in batches that fit in memory.

Programs often write a file of up to a million rows as one group. Where there are few groups, each
is read by several tasks. A group has no place to start from but its beginning, so a task unpacks
the rows in front of its own too: a small part of loading them, unless they are far away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.dataclass import dataclass
from omnigraph.machine import count_cores
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

KIND = "Parquet"
SLICES = 4
"""Into how many ranges a large row group is cut, in a file that has fewer of them than this."""


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """Files of columns in row groups."""

    name: str = "parquet"

    def plan(self, file: TypedFile, part_bytes: int, options: Options) -> PlannedFile:
        refuse_packed(file.path, KIND)
        with (
            open_raw(file.path, options) as raw,
            reading_columns(file.path, KIND),
            pq.ParquetFile(raw) as opened,
        ):
            schema, metadata = opened.schema_arrow, opened.metadata
            groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
            sizes = [(group.num_rows, group.total_byte_size) for group in groups]
        form = bind_schema(file.rules, schema, file.path)
        is_sliced = len(sizes) < SLICES and count_cores() > 1 and not is_object(file.path)
        slices = SLICES if is_sliced else 1
        ranges = tuple(_group_ranges(file.path, form, sizes, part_bytes, slices))
        return PlannedFile(ranges, sum(size for _, size in sizes))

    def read(self, range_: RowsRange, part_bytes: int, options: Options) -> Iterator[Block]:
        first, path = range_.first, range_.path
        with (
            open_raw(path, options) as raw,
            reading_columns(path, KIND),
            pq.ParquetFile(raw) as file,
        ):
            groups = list(range(range_.start, range_.end or 0))
            found = [file.metadata.row_group(index) for index in groups]
            rows = sum(group.num_rows for group in found)
            size = sum(group.total_byte_size for group in found)
            batches = file.iter_batches(
                rows_per_batch(rows, size, part_bytes),
                row_groups=groups,
                columns=[name for name, _ in range_.form.columns],
                use_threads=False,
            )
            for batch in _slice_rows(batches, range_.skipped, range_.count):
                yield to_block(batch, range_.form, first)
                first += batch.num_rows


def _slice_rows(
    batches: Iterable[pa.RecordBatch], skipped: int, count: int | None
) -> Iterator[pa.RecordBatch]:
    """`count` rows behind the first `skipped` ones; None: all of them."""
    for batch in batches:
        kept = batch.slice(min(skipped, batch.num_rows), count)
        skipped = max(0, skipped - batch.num_rows)
        if kept.num_rows:
            yield kept
        if count is not None:
            count -= kept.num_rows
            if count == 0:
                return


def _group_ranges(
    path: str, form: RowForm, sizes: list[tuple[int, int]], part_bytes: int, slices_max: int
) -> Iterator[RowsRange]:
    """Neighbouring row groups together, while they are small; a large one in slices."""
    start, first, rows, weight = 0, 1, 0, 0
    for index, (count, size) in enumerate(sizes):
        slices = min(slices_max, size // part_bytes, count)
        if start == index and slices > 1:
            cuts = [count * each // slices for each in range(slices + 1)]
            for begin, end in pairwise(cuts):
                place = first + begin
                yield RowsRange(path, "parquet", form, index, index + 1, place, begin, end - begin)
            start, first = index + 1, first + count
            continue
        rows, weight = rows + count, weight + size
        if weight >= part_bytes or index == len(sizes) - 1:
            yield RowsRange(path, "parquet", form, start, index + 1, first)
            start, first, rows, weight = index + 1, first + rows, 0, 0
