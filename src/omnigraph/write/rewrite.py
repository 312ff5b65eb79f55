"""Rewrite: stage a table as another schema has it, with as little of it written as that takes."""

from __future__ import annotations

from omnigraph.catalog import EntityType, arrow_schema
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.write.new_image import NewImage


def stage_rewrite(
    tables: TableStorage, handle: TableHandle, old: EntityType, new: EntityType
) -> StagedTransaction:
    """Stage every row in its new columns; indexes go, they are derived. All rows have to fit."""
    image = NewImage(tables, handle, old, new)
    batches = (batch for each in image.read() for batch in each.rows.to_batches())
    return tables.rows.stage_rewrite(handle, arrow_schema(new), batches)


def stage_alter(tables: TableStorage, handle: TableHandle, new: EntityType) -> StagedTransaction:
    """Stage another schema over the rows that are there: rows, ids and indexes stay."""
    if handle.row_count == 0:
        return tables.rows.stage_rewrite(handle, arrow_schema(new), ())
    return tables.columns.stage_schema(handle, arrow_schema(new))
