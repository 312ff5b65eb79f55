"""Parquet: ranges are row groups, read in batches that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq

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
from omnigraph.pipeline.input_files import Options, open_raw
from omnigraph.pipeline.model import RowForm, RowsRange

KIND = "Parquet"


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
        ranges = tuple(_group_ranges(file.path, form, sizes, part_bytes))
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
            for batch in batches:
                yield to_block(batch, range_.form, first)
                first += batch.num_rows


def _group_ranges(
    path: str, form: RowForm, sizes: list[tuple[int, int]], part_bytes: int
) -> Iterator[RowsRange]:
    """Neighbouring row groups together, while they are small."""
    start, first, rows, weight = 0, 1, 0, 0
    for index, (count, size) in enumerate(sizes):
        rows, weight = rows + count, weight + size
        if weight >= part_bytes or index == len(sizes) - 1:
            yield RowsRange(path, "parquet", form, start, index + 1, first)
            start, first, rows, weight = index + 1, first + rows, 0, 0
