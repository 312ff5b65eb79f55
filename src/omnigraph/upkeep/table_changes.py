"""Table changes: what a schema change does to each table. Two catalogues in, values out, no I/O.

Types and properties are paired by identity, so a rename is a rename wherever it occurs.

    AddTable      a new type              an empty table
    RewriteTable  other columns           every row written anew under the same name
    RenameTable   another name            the same table, shown under the new name
    DropTable     the type is gone        hidden; its versions stay until they are cleaned up
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from omnigraph.catalog import Catalog, EntityType, arrow_schema
from omnigraph.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AddTable:
    new: EntityType


@dataclass(frozen=True, slots=True)
class RewriteTable:
    old: EntityType
    new: EntityType


@dataclass(frozen=True, slots=True)
class RenameTable:
    old: EntityType
    new: EntityType


@dataclass(frozen=True, slots=True)
class DropTable:
    old: EntityType


TableChange: TypeAlias = AddTable | RewriteTable | RenameTable | DropTable


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
        elif has_other_columns(old, new):
            changes.append(RewriteTable(old, new))
    changes += [DropTable(old) for type_id, old in before.items() if type_id not in after]
    return tuple(changes)


def has_other_columns(old: EntityType, new: EntityType) -> bool:
    """Whether a table of `old` is not one of `new` as it stands."""
    return arrow_schema(old) != arrow_schema(new) or any(
        name != source for name, source in column_sources(old, new).items()
    )


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
