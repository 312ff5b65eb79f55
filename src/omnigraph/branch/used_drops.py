"""Used drops: what one side of a merge has dropped while the other went on using it.

The rows of a dropped type, and the values of a dropped property, are not in the merged graph. If
the other side has written some of them since both parted, they would be lost without a word: that
is a conflict, which names both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.branch.compare import differences
from omnigraph.branch.conflicts import ConflictKind
from omnigraph.branch.descent import Descent, open_entry
from omnigraph.branch.differences import Differences
from omnigraph.branch.equality import equal_rows
from omnigraph.branch.row_batches import is_valid, to_row_ids
from omnigraph.branch.schema_images import SchemaImages
from omnigraph.catalog import Catalog, EntityType
from omnigraph.errors import MergeConflict
from omnigraph.manifest import Snapshot
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage

State: TypeAlias = tuple[Snapshot, Catalog]


def find_used_drops(
    tables: TableStorage, base: State, side: State, merged: Catalog
) -> Iterator[MergeConflict]:
    """What a side has written since the base, of types and properties that the merge has not."""
    known = {each.type_id: each for each in merged.entities()}
    before, own = base[1], side[1]
    in_base = {each.type_id: each for each in before.entities()}
    images = SchemaImages(tables, own)
    shown: Snapshot | None = None
    for entity in own.entities():
        old, new = in_base.get(entity.type_id), known.get(entity.type_id)
        if old is None:
            continue
        gone = _list_gone(old, entity, new)
        if new is not None and not gone:
            continue
        shown = shown or images.show(base[0], before)
        entry, was = side[0].entries[entity.table_key], shown.entries[entity.table_key]
        if was.shows_same_rows(entry):
            continue
        handles = open_entry(tables, was), open_entry(tables, entry)
        found = differences(Descent(tables), *handles)
        if new is None:
            count = len(found) - found.rows["after"].null_count
            if count:
                yield _conflict(entity, None, count, side[0].branch)
            continue
        for name in gone:
            count = _count_changed(tables, *handles, found, name)
            if count:
                yield _conflict(entity, name, count, side[0].branch)


def _list_gone(old: EntityType, own: EntityType, new: EntityType | None) -> list[str]:
    """The properties, as a side calls them, that it and the base have and the merge has not."""
    left = set() if new is None else {each.property_id for each in new.properties.values()}
    was = {each.property_id for each in old.properties.values()}
    return [
        name
        for name, each in own.properties.items()
        if each.property_id in was and each.property_id not in left
    ]


def _count_changed(
    tables: TableStorage, before: TableHandle, after: TableHandle, found: Differences, name: str
) -> int:
    """How many rows that are there have another value in a column, or a first one."""
    rows = found.rows.filter(found.rows["after"].is_valid())
    is_new = ~is_valid(rows["before"])
    added = _read(tables, after, rows.filter(pa.array(is_new))["after"], name)
    kept = rows.filter(pa.array(~is_new))
    pairs = [
        _read(tables, handle, kept[side], name)
        for handle, side in ((before, "before"), (after, "after"))
    ]
    changed = ~equal_rows(*pairs) if kept.num_rows else np.zeros(0, dtype=np.bool_)
    return int(changed.sum()) + int(added.num_rows) - int(added.column(0).null_count)


def _read(
    tables: TableStorage, handle: TableHandle, row_ids: pa.ChunkedArray, name: str
) -> pa.RecordBatch:
    batches = list(tables.reads.take_stream(handle, to_row_ids(row_ids), [name]))
    schema = pa.schema([handle.schema.field(name)])
    table = pa.Table.from_batches(batches) if batches else schema.empty_table()
    columns = [each.combine_chunks() for each in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _conflict(entity: EntityType, name: str | None, count: int, branch: str) -> MergeConflict:
    what = f"{entity.kind} {entity.name}"
    subject = what if name is None else f"property {name} of {what}"
    rows = f"{count} row{'' if count == 1 else 's'}"
    return MergeConflict(
        ConflictKind.DROP_VS_USE.value,
        entity.table_key,
        None,
        f"{subject} is dropped on the other side, and branch '{branch}' has written {rows} of it "
        "since — drop it on both sides, or take the drop back",
    )
