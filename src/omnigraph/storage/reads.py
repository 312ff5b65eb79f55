"""Reads: scans of one open dataset, filtered by a typed predicate.

A predicate goes down to Lance when it can be spelled safely, and is evaluated in memory when it
cannot; either way the same rows come back. Blob columns are left out unless asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from omnigraph.errors import BadRequestError
from omnigraph.storage.blobs import blob_columns
from omnigraph.storage.counters import record
from omnigraph.storage.filters import is_pushable, to_lance
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.masks import keep, to_mask
from omnigraph.storage.predicates import Predicate, columns_of

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
BATCH_ROWS = 8_192


def scan_stream(
    handle: TableHandle,
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
    *,
    with_row_id: bool = False,
    limit: int | None = None,
    include_blobs: bool = False,
    batch_rows: int = BATCH_ROWS,
    fragment_ids: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows, of some fragments only if they are named, a batch at a time."""
    if fragment_ids is not None and len(fragment_ids) == 0:
        return  # to Lance, no fragments are all of them
    wanted = projection(handle.schema, columns, include_blobs=include_blobs)
    pushed = predicate is None or _is_pushable(predicate, handle)
    read = wanted if pushed or predicate is None else _with(wanted, columns_of(predicate))
    options: dict[str, Any] = {
        "columns": [name for name in read if name not in handle.absent],
        "with_row_id": with_row_id,
        "batch_size": batch_rows,
        "scan_in_order": True,
        # Blobs arrive as bytes when they are asked for; as descriptors they are of no use.
        "blob_handling": "all_binary",
    }
    if fragment_ids is not None:
        options["fragments"] = [handle._dataset.get_fragment(each) for each in fragment_ids]
    if predicate is not None and pushed:
        options |= {"filter": to_lance(predicate, handle.schema), "prefilter": True}
    if pushed and limit is not None:
        options["limit"] = limit
    with lance_errors("reading a table", handle.location):
        batches = iter(handle._dataset.scanner(**options).to_reader())
    mask = None if pushed else predicate
    yield from _counted(_limited(_rows(handle, batches, mask, wanted, with_row_id), limit))


def projection(
    schema: pa.Schema, columns: Sequence[str] | None, *, include_blobs: bool
) -> list[str]:
    """The columns a scan returns; names it does not have are refused."""
    blobs = set(blob_columns(schema))
    if columns is None:
        return [name for name in schema.names if include_blobs or name not in blobs]
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise BadRequestError(f"there is no column {unknown} — the table has {schema.names}")
    if not include_blobs and blobs.intersection(columns):
        raise BadRequestError(f"{sorted(blobs.intersection(columns))} are blobs: ask for them")
    return list(columns)


def to_table(
    handle: TableHandle,
    batches: Iterator[pa.RecordBatch],
    columns: Sequence[str] | None,
    *,
    with_row_id: bool,
    include_blobs: bool,
) -> pa.Table:
    """Collect batches under the logical schema, which also an empty result has."""
    wanted = projection(handle.schema, columns, include_blobs=include_blobs)
    return pa.Table.from_batches(batches, result_schema(handle.schema, wanted, with_row_id))


def result_schema(schema: pa.Schema, columns: Sequence[str], with_row_id: bool) -> pa.Schema:
    """The schema of a scan's result: logical fields, then the row id."""
    fields = [schema.field(name).remove_metadata() for name in columns]
    return pa.schema([*fields, pa.field(ROW_ID, pa.uint64())] if with_row_id else fields)


def count_rows(handle: TableHandle, predicate: Predicate | None = None) -> int:
    """Count the matching rows; without a predicate no data is read."""
    if predicate is None:
        return handle.row_count
    if _is_pushable(predicate, handle):
        with lance_errors("counting rows", handle.location):
            count = int(handle._dataset.count_rows(filter=to_lance(predicate, handle.schema)))
        record(scans=1)
        return count
    batches = scan_stream(handle, columns_of(predicate), predicate)
    return sum(batch.num_rows for batch in batches)


def take_rows(handle: TableHandle, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Return the rows with these row ids, in this order; every id has to be there."""
    wanted = projection(handle.schema, columns, include_blobs=False)
    schema = result_schema(handle.schema, wanted, with_row_id=False)
    if len(row_ids) == 0:
        return schema.empty_table()
    with lance_errors("fetching rows", handle.location):
        present = [name for name in wanted if name not in handle.absent]
        rows = handle._dataset._take_rows(list(row_ids), columns=present or ["id"])
    if rows.num_rows != len(row_ids):
        raise BadRequestError(
            f"{len(row_ids) - rows.num_rows} of {len(row_ids)} row ids are not in version "
            f"{handle.version} of '{handle.location}'"
        )
    record(rows_taken=rows.num_rows)
    return pa.Table.from_batches(
        _shaped([fill_absent(handle, each) for each in rows.to_batches()], schema), schema
    )


def scan_addresses(handle: TableHandle, predicate: Predicate) -> np.ndarray:
    """The physical addresses of the matching rows: fragment id, then position in it."""
    pushed = is_pushable(predicate, handle.schema)
    options: dict[str, Any] = {"columns": [] if pushed else columns_of(predicate)}
    if pushed:
        options |= {"filter": to_lance(predicate, handle.schema), "prefilter": True}
    with lance_errors("reading a table", handle.location):
        rows = handle._dataset.scanner(with_row_address=True, **options).to_table()
    if not pushed:
        rows = keep(predicate, rows)
    record(scans=1, rows_scanned=rows.num_rows)
    return np.asarray(rows.column(ROW_ADDRESS).to_numpy(), dtype=np.uint64)


def row_count(dataset: LanceDataset) -> int:
    """The live rows of a version, from its manifest."""
    return int(dataset.count_rows())


def _is_pushable(predicate: Predicate, handle: TableHandle) -> bool:
    """Whether Lance can evaluate it: it knows nothing of columns that are not there."""
    known = handle.absent.isdisjoint(columns_of(predicate))
    return known and is_pushable(predicate, handle.schema)


def fill_absent(handle: TableHandle, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the columns that the version does not have, all null."""
    for name in sorted(handle.absent):
        nulls = pa.nulls(batch.num_rows, handle.schema.field(name).type)
        batch = batch.append_column(name, nulls)
    return batch


def _with(columns: list[str], more: list[str]) -> list[str]:
    return list(dict.fromkeys([*columns, *more]))


def _rows(
    handle: TableHandle,
    batches: Iterator[pa.RecordBatch],
    mask: Predicate | None,
    wanted: list[str],
    with_row_id: bool,
) -> Iterator[pa.RecordBatch]:
    schema = result_schema(handle.schema, wanted, with_row_id)
    while True:
        with lance_errors("reading a table", handle.location):
            batch = next(batches, None)
        if batch is None:
            return
        if handle.absent:
            batch = fill_absent(handle, batch)
        if mask is not None:
            batch = batch.filter(to_mask(mask, batch))
        yield from _shaped([batch], schema)


def _shaped(batches: list[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [batch.column(name) for name in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches:
        if left is None:
            yield batch
            continue
        if left > 0:
            yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        yield batch
    record(scans=1, rows_scanned=rows)
