"""Count changes: what a checked load would do to each table, row by row, typed.

A loaded row whose id is there already replaces that row, unless both have the same content. Rows
without an id of their own are new; where they replace the whole table, the table is compared as a
bag of rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from omnigraph.branch.equality import equal_rows
from omnigraph.catalog import EntityType, arrow_schema
from omnigraph.dataclass import dataclass
from omnigraph.pipeline.columns import CheckPlan, KeyColumns
from omnigraph.pipeline.model import LoadMode, StagedPart
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.unattached import read_unattached, stream_unattached
from omnigraph.write.convert import ID
from omnigraph.write.fork import open_pin

_SAMPLED_ROWS = 1_000
_BAG_ROWS_MAX = 5_000_000


@dataclass(frozen=True, slots=True)
class Counts:
    """What a load does to one table. An overwrite also removes rows that it does not bring."""

    inserted: int = 0
    replaced: int = 0
    unchanged: int = 0
    refused: int = 0
    removed: int = 0

    @property
    def changes_nothing(self) -> bool:
        return not (self.inserted or self.replaced or self.removed)


def list_unchanged(check: CheckPlan, tables: TableStorage) -> frozenset[str]:
    """The tables that already have every loaded row, and after an overwrite no other."""
    keys = [key for key in check.list_table_keys() if _may_be_unchanged(check, tables, key)]
    counted = {key: count_changes(check, tables, key) for key in keys}
    return frozenset(key for key, counts in counted.items() if counts.changes_nothing)


def count_changes(check: CheckPlan, tables: TableStorage, key: str) -> Counts:
    """What the loaded rows of a table do to it."""
    total = sum(part.row_count for part in check.parts if part.table_key == key)
    committed = check.entries[key].row_count
    if check.mode is LoadMode.APPEND or committed == 0:
        return Counts(inserted=total)
    is_overwrite = check.mode is LoadMode.OVERWRITE
    if check.has_made_ids(key):
        if is_overwrite and _is_same_bag(check, tables, key):
            return Counts(unchanged=total)
        return Counts(inserted=total, removed=committed if is_overwrite else 0)
    met = unchanged = 0
    for rows in _read_rows(check, key):
        found, equal = _meet(check, tables, key, rows)
        met, unchanged = met + found, unchanged + equal
    removed = committed - met if is_overwrite else 0
    return Counts(total - met, met - unchanged, unchanged, removed=removed)


def count_edges_added(check: CheckPlan) -> int:
    """How many edges a merge adds beside others because they have neither an id nor a key."""
    if check.mode is not LoadMode.MERGE:
        return 0
    keys = [key for key in check.list_table_keys() if key.startswith("edge:")]
    used = {key for key in keys if check.entries[key].row_count}
    parts = [part for part in check.parts if part.table_key in used and part.has_made_ids]
    return sum(part.row_count for part in parts)


def _may_be_unchanged(check: CheckPlan, tables: TableStorage, key: str) -> bool:
    """Whether the first rows are there already: most loads change something, and end here."""
    parts = [part for part in check.parts if part.table_key == key]
    committed = check.entries[key].row_count if key in check.entries else 0
    loaded = sum(part.row_count for part in parts)
    if check.mode is LoadMode.APPEND or committed < loaded:
        return False
    if check.mode is LoadMode.OVERWRITE and committed != loaded:
        return False
    if check.has_made_ids(key):
        return check.mode is LoadMode.OVERWRITE
    rows = next(_read_rows(check, key)).slice(0, _SAMPLED_ROWS)
    return _meet(check, tables, key, rows)[1] == int(rows.num_rows)


def _read_rows(check: CheckPlan, key: str) -> Iterator[pa.Table]:
    """The loaded rows, a part at a time or less."""
    for part in check.parts:
        if part.table_key == key:
            yield from read_part(check, part)


def read_part(check: CheckPlan, part: StagedPart) -> Iterator[pa.Table]:
    """The rows of a part, in memory or written."""
    if part.rows is not None:
        yield part.rows
        return
    schema = arrow_schema(check.catalog.entity(part.table_key))
    has_blobs = any(_is_blob(each.type) for each in schema)
    for fragment in part.fragments:
        if has_blobs:
            yield from stream_unattached(fragment, schema, check.storage_options)
        else:
            yield read_unattached(fragment, schema.names, check.storage_options)


def _meet(check: CheckPlan, tables: TableStorage, key: str, rows: pa.Table) -> tuple[int, int]:
    """How many of the rows are there already by id, and how many of those are the same."""
    schema = arrow_schema(check.catalog.entity(key))
    ids = rows[ID].combine_chunks()
    columns = KeyColumns(check, tables)
    there = columns.read_committed(key, schema.names, among=ids, by=ID).select(schema.names)
    new = rows.filter(pc.is_in(ids, there[ID].combine_chunks()))
    return there.num_rows, int(np.count_nonzero(equal_rows(_by_id(new), _by_id(there))))


def _by_id(rows: pa.Table) -> pa.RecordBatch:
    """The rows by id, in one batch, without what a schema says beside its types."""
    ordered = rows.take(pc.sort_indices(rows[ID].combine_chunks())).combine_chunks()
    arrays = [ordered[name].combine_chunks() for name in ordered.column_names]
    return pa.RecordBatch.from_arrays(arrays, names=ordered.column_names)


def _is_same_bag(check: CheckPlan, tables: TableStorage, key: str) -> bool:
    """Whether a table has the loaded rows, each as often, whatever their ids."""
    entity = check.catalog.entity(key)
    committed = check.entries[key].row_count
    loaded = sum(part.row_count for part in check.parts if part.table_key == key)
    if loaded != committed or loaded > _BAG_ROWS_MAX or not _can_be_sorted(entity):
        return False
    names = [name for name in arrow_schema(entity).names if name != ID]
    if not names:
        return True
    there = tables.reads.scan(open_pin(tables, check.entries[key]), names)
    new = pa.concat_tables([rows.select(names) for rows in _read_rows(check, key)])
    order = [(name, "ascending") for name in names]
    first, second = new.sort_by(order), there.sort_by(order)
    return all(first[name].combine_chunks().equals(second[name].combine_chunks()) for name in names)


def _can_be_sorted(entity: EntityType) -> bool:
    types = [each.type for each in arrow_schema(entity)]
    return not any(pat.is_nested(type_) or _is_blob(type_) for type_ in types)


def _is_blob(type_: pa.DataType) -> bool:
    return bool(pat.is_large_binary(type_))
