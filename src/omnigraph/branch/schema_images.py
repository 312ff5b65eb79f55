"""Schema images: the states of a merge, each shown in the schema that the merge leads to.

Types and properties are matched by identity. What is needed of a table decides how it is shown:

    the same columns                   as it stands
    other names, fewer, empty new ones through other columns of the same version; nothing is read
    other values: a default, a         an image in memory: rows as a schema change would write them
    backfill, another type or id
    no such type there                 an empty image

A value that is not one of its new type has no place in an image, and two rows of one id cannot be
told apart: both are conflicts, for the merge would compare something else than was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

import pyarrow as pa

from omnigraph.branch.conflicts import ConflictKind
from omnigraph.catalog import Catalog, EntityType, arrow_schema
from omnigraph.dataclass import dataclass
from omnigraph.errors import MergeConflict
from omnigraph.manifest import Snapshot, TableEntry
from omnigraph.manifest.schema_view import show_as
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.ulids import new_ulid
from omnigraph.write.fork import open_pin
from omnigraph.write.new_image import NewImage
from omnigraph.write.table_changes import column_sources, makes_other_ids

SAMPLES_MAX = 3


@dataclass(slots=True)
class SchemaImages:
    """The tables of a merge in the schema it leads to. Make a new one for every merge."""

    tables: TableStorage
    merged: Catalog
    conflicts: list[MergeConflict] = field(default_factory=list)
    _empty: dict[int, TableEntry] = field(default_factory=dict)
    _made: dict[tuple[object, ...], TableEntry] = field(default_factory=dict)

    def show(self, snapshot: Snapshot, own: Catalog) -> Snapshot:
        """A snapshot, whose tables are in `own`, in the types of the merge."""
        known = {each.type_id: each for each in own.entities()}
        entries = {}
        for entity in self.merged.entities():
            old = known.get(entity.type_id)
            entry = None if old is None else snapshot.entries.get(old.table_key)
            if old is None or entry is None:
                entries[entity.table_key] = self._show_empty(entity)
            else:
                entries[entity.table_key] = self._show(entry, old, entity, snapshot.branch)
        return replace(snapshot, entries=entries)

    def _show(self, entry: TableEntry, old: EntityType, new: EntityType, branch: str) -> TableEntry:
        new = _without_lost_hints(old, new)
        if not needs_image(old, new):
            return replace(entry, table_key=new.table_key, shown=show_as(old, new))
        names = tuple((name, each.property_id) for name, each in old.properties.items())
        key = (entry.table_path, entry.table_branch, entry.version, entry.transaction_uuid, names)
        if key not in self._made:
            handle = open_pin(self.tables, entry)
            rows = _Rows(NewImage(self.tables, handle, old, new))
            image = self.tables.make_image(arrow_schema(new), rows.read())
            self.conflicts += rows.find_conflicts(new, branch)
            self._made[key] = _to_entry(new, image)
        return self._made[key]

    def _show_empty(self, entity: EntityType) -> TableEntry:
        if entity.type_id not in self._empty:
            image = self.tables.make_image(arrow_schema(entity), ())
            self._empty[entity.type_id] = _to_entry(entity, image)
        return self._empty[entity.type_id]


def _without_lost_hints(old: EntityType, new: EntityType) -> EntityType:
    """A type without the backfills that rows of `old` cannot give: what they name is gone."""
    sources = column_sources(old, new)
    lost = {
        name: replace(each, backfill=None)
        for name, each in new.properties.items()
        if each.backfill and any(sources.get(member) is None for member in each.backfill.members)
    }
    return replace(new, properties={**new.properties, **lost}) if lost else new


def needs_image(old: EntityType, new: EntityType) -> bool:
    """Whether rows of `old` have other values as rows of `new`, and not only other columns."""
    if makes_other_ids(old, new):
        return True
    for name, source in column_sources(old, new).items():
        if name not in new.properties:
            continue
        found = new.properties[name]
        if source is None:
            if found.default is not None or found.backfill is not None:
                return True
        elif old.properties[source].type.arrow_type() != found.type.arrow_type():
            return True
    return False


def _to_entry(entity: EntityType, image: TableHandle) -> TableEntry:
    return TableEntry(
        table_key=entity.table_key,
        table_path=f"image/{new_ulid()}",
        version=image.version,
        table_branch=None,
        row_count=image.row_count,
        image=image,
    )


@dataclass(slots=True)
class _Rows:
    """The rows of an image as they are read, with what is wrong with them."""

    image: NewImage
    unfit: int = 0
    samples: list[str] = field(default_factory=list)
    ids: list[pa.Array] = field(default_factory=list)

    def read(self) -> Iterator[pa.RecordBatch]:
        for batch in self.image.read():
            bad = batch.old_ids.filter(pa.array(batch.unfit))
            self.unfit += len(bad)
            self.samples += bad[: SAMPLES_MAX - len(self.samples)].to_pylist()
            self.ids.append(batch.rows["id"].combine_chunks())
            yield from batch.rows.to_batches()

    def find_conflicts(self, entity: EntityType, branch: str) -> Iterator[MergeConflict]:
        if self.unfit:
            named = ", ".join(f"'{each}'" for each in self.samples)
            yield MergeConflict(
                ConflictKind.ROWS_DO_NOT_FIT.value,
                entity.table_key,
                None,
                f"{self.unfit} rows of {entity.name} on branch '{branch}', or where the branches "
                f"parted, have values that the other side's type does not hold, such as {named} — "
                "give the property its wider type back on that side, merge, and narrow it then",
            )
        ids = pa.concat_arrays([pa.array([], pa.utf8()), *self.ids])
        if len(ids.unique()) < len(ids):
            yield MergeConflict(
                ConflictKind.ROWS_DO_NOT_FIT.value,
                entity.table_key,
                None,
                f"several rows of {entity.name} on branch '{branch}', or where the branches "
                "parted, have one key by the other side's @key — take the @key back on that side, "
                "merge, and add it then",
            )
