"""Pending: rows that are not written yet, read together with those of a table.

The committed side is scanned with the filter pushed down, the pending side is filtered in memory
by the same predicate. With a key column the pending image of a row is the truth: a committed row
whose key is pending is hidden, whether or not its pending image matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.projection import projection

Pending: TypeAlias = Sequence[pa.RecordBatch] | pa.Table


def to_pending_table(pending: Pending, schema: pa.Schema, *, include_blobs: bool) -> pa.Table:
    """The pending rows under the schema of the table; absent columns are null."""
    rows = pending
    if not isinstance(rows, pa.Table):
        rows = pa.Table.from_batches(pending) if pending else schema.empty_table()
    names = projection(schema, None, include_blobs=include_blobs)
    fields = [schema.field(name) for name in names]
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in fields
    ]
    plain = pa.schema([field.remove_metadata().with_nullable(True) for field in fields])
    return pa.Table.from_arrays(columns, schema=plain)


def hide_pending(committed: pa.Table, pending: pa.Table, key_column: str) -> pa.Table:
    """The committed rows whose key is not pending."""
    # Null keys are never equal, so they hide nothing.
    keys = pending.column(key_column).combine_chunks().drop_null()
    hidden = pc.is_in(committed.column(key_column), value_set=keys)
    return committed.filter(pc.invert(hidden))
