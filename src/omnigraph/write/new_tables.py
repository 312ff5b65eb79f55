"""New tables: where the table of a type that is added lies, and making it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from omnigraph.catalog import EntityType, arrow_schema
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.location import TableLocation, table_path
from omnigraph.storage.tables import TableStorage


def free_path(entity: EntityType) -> str:
    """A path that no manifest has ever named, in this store of the graph or in another one.

    Incarnations are never used twice, on whichever branch; see `draw_next_id`.
    """
    return f"{table_path(entity.kind, entity.name)}-{entity.incarnation_id:x}"


def create_empty(tables: TableStorage, location: TableLocation, entity: EntityType) -> TableHandle:
    """Make the empty table of a type at a free path."""
    if tables.exists(location.uri):
        # Of an unfinished change. A schema that a manifest names is kept, and what is kept has its
        # incarnations for good, so no manifest names this path.
        tables.delete_table(location.uri)
    tables.create_table(location, arrow_schema(entity))
    return open_head(tables, location)


def open_head(tables: TableStorage, location: TableLocation) -> TableHandle:
    """A table as its latest version has it. The caller holds its queue."""
    version = tables.head_version(location)
    made_by = tables.read_transaction(location, version)
    return tables.open_at(location, version, incarnation=made_by.uuid if made_by else None)


def create_with_rows(
    tables: TableStorage,
    location: TableLocation,
    entity: EntityType,
    rows: Iterator[pa.RecordBatch],
) -> TableHandle:
    """Make the table of a type at a free path, with rows that are checked already."""
    tables.create_table(location, arrow_schema(entity), rows)
    return open_head(tables, location)
