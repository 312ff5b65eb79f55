"""In schema: a snapshot of the past as another schema shows it, matched by identity.

A type keeps its number and a property its own, whatever they are called, so

    renamed since       the old values, under the name of today
    added since         null; of a type, no rows
    dropped since       not shown
    dropped and added   another identity: null

Values only: nothing is opened, the entries say how each table is to be shown.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog import Catalog, EntityType, arrow_schema, unify
from omnigraph.manifest.model import Snapshot, TableEntry
from omnigraph.storage.handles import ShownColumns
from omnigraph.storage.location import table_path

GONE = "#"
"""What no property has in its name: it marks columns that gave theirs up."""


def project_to_schema(snapshot: Snapshot, own: Catalog | None, wanted: Catalog) -> Snapshot:
    """The snapshot, whose tables are in `own`, in the types of `wanted`.

    Without `own`, when its text is gone, types and properties are matched by name.
    """
    if own is wanted:
        return snapshot
    if own is None:
        entries = _by_name(snapshot, wanted)
    else:
        entries = _by_identity(snapshot, unify(wanted, own)(own), wanted)
    return replace(snapshot, entries=dict(sorted(entries.items())))


def find_renamed_columns(old: EntityType, new: EntityType) -> dict[str, str]:
    """Column of `old` → its name in `new`, of those that differ.

    A column that is gone gives its name up, for it may be another property's by now.
    """
    names = {each.property_id: name for name, each in new.properties.items()}
    renamed = {}
    for name, each in old.properties.items():
        shown = names.get(each.property_id)
        if shown is None and name in new.properties:
            shown = f"{name}{GONE}{each.property_id}"
        if shown not in (None, name):
            renamed[name] = shown
    return renamed


def _by_identity(snapshot: Snapshot, own: Catalog, wanted: Catalog) -> dict[str, TableEntry]:
    known = {each.type_id: each for each in own.entities()}
    entries = {}
    for entity in wanted.entities():
        old = known.get(entity.type_id)
        entry = None if old is None else snapshot.entries.get(old.table_key)
        if old is None or entry is None:
            entries[entity.table_key] = _build_empty_entry(entity)
        else:
            shown = show_as(old, entity)
            entries[entity.table_key] = replace(entry, table_key=entity.table_key, shown=shown)
    return entries


def _by_name(snapshot: Snapshot, wanted: Catalog) -> dict[str, TableEntry]:
    return {
        each.table_key: replace(
            snapshot.entries[each.table_key], shown=ShownColumns(schema=arrow_schema(each))
        )
        for each in wanted.entities()
        if each.table_key in snapshot.entries
    }


def show_as(old: EntityType, new: EntityType) -> ShownColumns | None:
    """How a table of `old` is shown as one of `new`; None when it is one as it stands."""
    renamed = find_renamed_columns(old, new)
    schema = arrow_schema(new)
    before = [(each.name, each.type) for each in arrow_schema(old)]
    if not renamed and before == [(each.name, each.type) for each in schema]:
        return None
    return ShownColumns(tuple(sorted(renamed.items())), schema)


def _build_empty_entry(entity: EntityType) -> TableEntry:
    """The table of a type that was added later."""
    return TableEntry(
        table_key=entity.table_key,
        table_path=table_path(entity.kind, entity.name),
        version=0,
        table_branch=None,
        row_count=0,
        shown=ShownColumns(schema=arrow_schema(entity)),
    )
