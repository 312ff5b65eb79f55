"""Table changes: what a schema change does to each table. Two catalogues in, values out, no I/O.

Types and properties are paired by identity, so a rename is a rename wherever it occurs.

    AddTable      a new type              an empty table
    RewriteTable  other columns or ids    every row written anew under the same name
    AlterTable    only new empty columns, or only other nullability: no row is read or written
    RenameTable   another name            the same table, shown under the new name
    DropTable     the type is gone        hidden; its versions stay until they are cleaned up
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from omnigraph.catalog import Catalog, EntityType, Property, arrow_schema
from omnigraph.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AddTable:
    new: EntityType


@dataclass(frozen=True, slots=True)
class RewriteTable:
    old: EntityType
    new: EntityType


@dataclass(frozen=True, slots=True)
class AlterTable:
    old: EntityType
    new: EntityType


@dataclass(frozen=True, slots=True)
class RenameTable:
    old: EntityType
    new: EntityType


@dataclass(frozen=True, slots=True)
class DropTable:
    old: EntityType


TableChange: TypeAlias = AddTable | RewriteTable | AlterTable | RenameTable | DropTable


def table_changes(accepted: Catalog, desired: Catalog) -> tuple[TableChange, ...]:
    """Every table that a change of schema touches, in table order; metadata touches none."""
    changes: list[TableChange] = []
    before = {entity.type_id: entity for entity in accepted.entities()}
    after = {entity.type_id: entity for entity in desired.entities()}
    for type_id, new in after.items():
        old = before.get(type_id)
        if old is None:
            changes.append(AddTable(new))
        elif old.table_key != new.table_key:
            changes.append(RenameTable(old, new))
        elif has_other_rows(old, new):
            changes.append(RewriteTable(old, new))
        elif arrow_schema(old) != arrow_schema(new):
            changes.append(AlterTable(old, new))
    changes += [DropTable(old) for type_id, old in before.items() if type_id not in after]
    return tuple(changes)


def has_other_rows(old: EntityType, new: EntityType) -> bool:
    """Whether the rows of a table of `old` have to be written anew to be those of `new`.

    Not where the table only gets columns without values, or only columns that may be null or may
    not: both are facts of its schema, but Lance takes one kind of them at a time.
    """
    if makes_other_ids(old, new) or drops_columns(old, new):
        return True
    before, after = arrow_schema(old), arrow_schema(new)
    sources = column_sources(old, new)
    added = [new.properties[name] for name, source in sources.items() if source is None]
    kept = [name for name, source in sources.items() if source is not None]
    if any(
        name != sources[name] or after.field(name).type != before.field(name).type for name in kept
    ):
        return True
    is_loosened = any(after.field(name) != before.field(name) for name in kept)
    return bool(added) and (is_loosened or any(map(_has_value, added)))


def _has_value(property_: Property) -> bool:
    return property_.default is not None or property_.backfill is not None


def makes_other_ids(old: EntityType, new: EntityType) -> bool:
    """Whether the rows get the ids of another key. Only edges do: no other row names them."""
    return new.kind == "edge" and new.key is not None and _key_of(old) != _key_of(new)


def _key_of(entity: EntityType) -> list[str | int] | None:
    """The key by identities; a rename leaves it as it is."""
    if entity.key is None:
        return None
    return [
        name if name in entity.structural_columns else entity.properties[name].property_id
        for name in entity.key
    ]


def column_sources(old: EntityType, new: EntityType) -> Mapping[str, str | None]:
    """Column of `new` → the column of `old` that holds its values, None for a new property."""
    named = {each.property_id: name for name, each in old.properties.items()}
    sources: dict[str, str | None] = {name: name for name in new.structural_columns}
    for name, each in new.properties.items():
        sources[name] = named.get(each.property_id)
    return sources


def drops_columns(old: EntityType, new: EntityType) -> bool:
    """Whether values of `old` are in no column of `new`."""
    kept = {each.property_id for each in new.properties.values()}
    return any(each.property_id not in kept for each in old.properties.values())
