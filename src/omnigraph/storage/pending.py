"""Pending: reading a table together with rows that are not written yet.

The committed side is scanned with the filter pushed down, the pending side is filtered in memory
by the same predicate. With a key column the pending image of a row is the truth: a committed row
whose key is pending does not show, whether or not its pending image matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequestError
from omnigraph.storage import reads
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.masks import keep
from omnigraph.storage.predicates import Predicate

Pending: TypeAlias = Sequence[pa.RecordBatch] | pa.Table


def scan_with_pending(
    handle: TableHandle,
    pending: Pending,
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
    key_column: str | None = None,
    *,
    include_blobs: bool = False,
) -> pa.Table:
    """Return the committed rows and then the pending ones that match."""
    wanted = reads.projection(handle.schema, columns, include_blobs=include_blobs)
    if key_column is not None and key_column not in wanted:
        raise BadRequestError(f"the projection {wanted} has to include the key '{key_column}'")
    batches = reads.scan_stream(handle, wanted, predicate, include_blobs=include_blobs)
    committed = reads.to_table(
        handle, batches, wanted, with_row_id=False, include_blobs=include_blobs
    )
    rows = _pending_table(pending, handle.schema, include_blobs=include_blobs)
    if key_column is not None:
        # Null keys are never equal, so they hide nothing.
        keys = rows.column(key_column).combine_chunks().drop_null()
        hidden = pc.is_in(committed.column(key_column), value_set=keys)
        committed = committed.filter(pc.invert(hidden))
    matching = rows if predicate is None else keep(predicate, rows)
    return pa.concat_tables([committed, matching.select(wanted).cast(committed.schema)])


def count_rows_with_pending(
    handle: TableHandle,
    pending: Pending,
    predicate: Predicate | None = None,
    key_column: str | None = None,
) -> int:
    """Count what `scan_with_pending` would return."""
    if key_column is not None:
        found = scan_with_pending(handle, pending, [key_column], predicate, key_column)
        return int(found.num_rows)
    rows = _pending_table(pending, handle.schema)
    matching = rows if predicate is None else keep(predicate, rows)
    return reads.count_rows(handle, predicate) + int(matching.num_rows)


def _pending_table(pending: Pending, schema: pa.Schema, *, include_blobs: bool = False) -> pa.Table:
    """The pending rows under the schema of the table; absent columns are null."""
    rows = pending if isinstance(pending, pa.Table) else _from_batches(pending, schema)
    names = reads.projection(schema, None, include_blobs=include_blobs)
    fields = [schema.field(name) for name in names]
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in fields
    ]
    plain = pa.schema([field.remove_metadata().with_nullable(True) for field in fields])
    return pa.Table.from_arrays(columns, schema=plain)


def _from_batches(pending: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(pending) if pending else schema.empty_table()
