"""Rewrite: the rows of a table in the columns of another schema, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from omnigraph.catalog import EntityType, arrow_schema
from omnigraph.storage.blobs import blob_columns
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.upkeep.table_changes import column_sources

BATCH_ROWS = 8_192
BATCH_ROWS_WITH_BLOBS = 64
"""Blobs are held as bytes while they are copied, so few of them at a time."""


def rewrite_rows(
    tables: TableStorage, handle: TableHandle, old: EntityType, new: EntityType
) -> Iterator[pa.RecordBatch]:
    """Every row of the table: kept values under their present names, null where there is none."""
    sources = column_sources(old, new)
    schema = arrow_schema(new)
    wanted = [source for source in sources.values() if source is not None]
    small = BATCH_ROWS_WITH_BLOBS if blob_columns(handle.schema) else BATCH_ROWS
    for batch in tables.reads.scan_stream(handle, wanted, include_blobs=True, batch_rows=small):
        yield pa.RecordBatch.from_arrays(
            [_column(batch, sources, field) for field in schema], schema=schema
        )


def _column(batch: pa.RecordBatch, sources: Mapping[str, str | None], field: pa.Field) -> pa.Array:
    source = sources[field.name]
    if source is None:
        return pa.nulls(batch.num_rows, field.type)
    return batch.column(source)


def stage_rewrite(
    tables: TableStorage, handle: TableHandle, old: EntityType, new: EntityType
) -> StagedTransaction:
    """Stage the table in its new columns; indexes go, they are derived."""
    return tables.rows.stage_rewrite(
        handle, arrow_schema(new), rewrite_rows(tables, handle, old, new)
    )
