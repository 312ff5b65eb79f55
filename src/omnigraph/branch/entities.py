"""Entities: one node or edge as a snapshot shows it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.branch.descent import open_entry
from omnigraph.branch.images import images
from omnigraph.errors import NotFoundError
from omnigraph.manifest import Snapshot, TableEntry
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.tables import TableStorage


def entry_of(snapshot: Snapshot, table_key: str) -> TableEntry:
    """The table of a key in a snapshot.

    Raises:
        NotFoundError: The snapshot has no such table.
    """
    entry = snapshot.entries.get(table_key)
    if entry is None:
        raise NotFoundError(
            f"there is no table '{table_key}' — name one as node:<Type> or edge:<Type>"
        )
    return entry


def read_entity(tables: TableStorage, entry: TableEntry, entity_id: str) -> dict[str, Any] | None:
    """One node or edge of a table, None when it is not there."""
    same = IsIn("id", pa.array([entity_id], pa.utf8()))
    rows = tables.reads.scan(open_entry(tables, entry), predicate=same, limit=1, include_blobs=True)
    found = [image for batch in rows.to_batches() for image in images(batch)]
    return found[0] if found else None
