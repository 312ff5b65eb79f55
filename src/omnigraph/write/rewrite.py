"""Rewrite: stage a table as another schema has it, with as little of it written as that takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from omnigraph.catalog import EntityType, arrow_schema
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.parts import WrittenPart, count_rows, rewrite_part
from omnigraph.storage.table_tasks import cut_fragments
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.work_progress import WRITING, one_part
from omnigraph.write.new_image import NewImage


def stage_rewrite(
    tables: TableStorage, handle: TableHandle, old: EntityType, new: EntityType
) -> StagedTransaction:
    """Stage every row in its new columns; indexes go, they are derived. All rows have to fit."""
    tasks = tables.tasks
    if tasks is not None and tasks.takes(handle):
        groups = cut_fragments(tables.reads.fragments(handle))
        parts = tasks.run(handle, partial(rewrite_group, old, new), groups, WRITING, count_rows)
        return tables.parts.stage_rewrite(handle, arrow_schema(new), parts)
    batches = NewImage(tables, handle, old, new).read_batches()
    with one_part(WRITING, handle.row_count):
        return tables.rows.stage_rewrite(handle, arrow_schema(new), batches)


def rewrite_group(
    old: EntityType,
    new: EntityType,
    tables: TableStorage,
    handle: TableHandle,
    fragment_ids: Sequence[int],
) -> WrittenPart:
    """Write the rows of some fragments in their new columns, as a task."""
    image = NewImage(tables, handle, old, new, fragment_ids)
    return rewrite_part(handle, arrow_schema(new), image.read_batches())


def stage_alter(tables: TableStorage, handle: TableHandle, new: EntityType) -> StagedTransaction:
    """Stage another schema over the rows that are there: rows, ids and indexes stay."""
    if handle.row_count == 0:
        return tables.rows.stage_rewrite(handle, arrow_schema(new), ())
    return tables.columns.stage_schema(handle, arrow_schema(new))
