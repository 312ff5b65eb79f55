"""Row batches: rows of a table by their row ids, as many at a time as memory is meant for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.branch.equality import equal_rows
from omnigraph.branch.images import images
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.tables import TableStorage

BATCH_BYTES = 4 * 1024 * 1024
BATCH_ROWS_MAX = 8_192
FIRST_ROWS = 1_024
_BYTES_OF_TEXT = 64


def equal_in_batches(
    tables: TableStorage,
    first: TableHandle,
    first_rows: RowIds,
    second: TableHandle,
    second_rows: RowIds,
) -> np.ndarray:
    """Which of the paired rows, of the same id each, are equal; read a bounded batch at a time."""
    size = BatchSize(first, second)
    parts = [np.empty(0, dtype=np.bool_)]
    for part in size.cut(len(first_rows)):
        # Rows are paired by id, so of all columns that one need not be read.
        one = _take(tables, first, first_rows[part], _columns_to_compare(first))
        other = _take(tables, second, second_rows[part], _columns_to_compare(second))
        parts.append(equal_rows(one, other))
        size.learn(one, other)
    return np.concatenate(parts)


def _columns_to_compare(handle: TableHandle) -> list[str]:
    return [name for name in handle.schema.names if name != "id"] or ["id"]


class BatchSize:
    """How many rows to read at once: `BATCH_BYTES` of them, as far as can be known.

    What a text takes is not known before one is read, so the first batch is a small one, and each
    may be eight times the one before it.
    """

    def __init__(self, *handles: TableHandle, most: int = BATCH_ROWS_MAX) -> None:
        self._most = min([most, *(_batch_rows(each.schema) for each in handles)])
        has_blobs = any(map(pa.types.is_large_binary, (t for h in handles for t in h.schema.types)))
        self.rows = 1 if has_blobs else min(FIRST_ROWS, self._most)

    def learn(self, *batches: pa.RecordBatch) -> None:
        """Choose the size of the next batches by what the last ones took."""
        fitting = BATCH_BYTES * batches[0].num_rows // max(sum(b.nbytes for b in batches), 1)
        self.rows = max(1, min(self._most, 8 * self.rows, fitting))

    def cut(self, count: int) -> Iterator[slice]:
        """Parts of so many rows, each of the size that was chosen by then."""
        first = 0
        while first < count:
            part = slice(first, first + self.rows)
            yield part
            first = part.stop


def _batch_rows(schema: pa.Schema) -> int:
    """How many rows may be in memory at once: fewer when rows are wide."""
    width = sum(_width(field.type) for field in schema)
    return max(1, min(BATCH_ROWS_MAX, BATCH_BYTES // max(width, 1)))


def _width(type_: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * _width(type_.value_type)
    if pa.types.is_large_binary(type_):
        return 64 * 1024
    try:
        return int(max(type_.bit_width // 8, 1))
    except ValueError:
        return _BYTES_OF_TEXT


def take_rows(
    tables: TableStorage,
    handle: TableHandle,
    row_ids: RowIds,
    size: BatchSize | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows with these row ids, in that order, a bounded batch at a time."""
    size = size or BatchSize(handle)
    for part in size.cut(len(row_ids)):
        batch = _take(tables, handle, row_ids[part])
        yield batch
        size.learn(batch)


def _take(
    tables: TableStorage, handle: TableHandle, row_ids: RowIds, columns: list[str] | None = None
) -> pa.RecordBatch:
    (batch,) = tables.reads.take_stream(handle, row_ids, columns, batch_rows=len(row_ids))
    return batch


def read_images(
    tables: TableStorage,
    handle: TableHandle,
    rows: pa.ChunkedArray,
    size: BatchSize | None = None,
) -> Iterator[dict[str, Any] | None]:
    """The row of each row id as plain values; None where the row id is null."""
    found = (
        image
        for batch in take_rows(tables, handle, to_row_ids(rows.drop_null()), size)
        for image in images(batch)
    )
    return (next(found) if is_there else None for is_there in is_valid(rows))


def to_row_ids(column: pa.ChunkedArray) -> RowIds:
    return np.asarray(column.to_numpy(), dtype=np.uint64)


def is_valid(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)
