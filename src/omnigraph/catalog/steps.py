"""Steps: what a migration does, one frozen value each, with its JSON form and its line of text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from omnigraph.catalog.model import EntityKind, TypeKind

Json: TypeAlias = dict[str, Any]

DROP_TYPE_CODES: dict[EntityKind, str] = {"node": "OG-DS-102", "edge": "OG-DS-103"}
DROP_PROPERTY_CODE = "OG-DS-104"
ADD_REQUIRED_CODE = "OG-MF-103"
CHANGE_TYPE_CODE = "OG-MF-106"


class DropMode(StrEnum):
    """Whether earlier versions keep what is dropped (soft) or lose it for good (hard)."""

    SOFT = "soft"
    HARD = "hard"


class Tier(StrEnum):
    """How much care a change needs: none, a scan of the data, or an explicit yes."""

    SAFE = "safe"
    VALIDATED = "validated"
    DESTRUCTIVE = "destructive"


@dataclass(frozen=True, slots=True)
class AddType:
    """A new type; a node or edge type starts with an empty table."""

    type_kind: TypeKind
    name: str

    def to_json(self) -> Json:
        return {"kind": "add_type", "type_kind": self.type_kind, "name": self.name}

    def __str__(self) -> str:
        return f"add {self.type_kind} {self.name}"


@dataclass(frozen=True, slots=True)
class RenameType:
    """The same identity and data under a new name."""

    type_kind: TypeKind
    old_name: str
    new_name: str

    def to_json(self) -> Json:
        return {
            "kind": "rename_type",
            "type_kind": self.type_kind,
            "from": self.old_name,
            "to": self.new_name,
        }

    def __str__(self) -> str:
        return f"rename {self.type_kind} {self.old_name} to {self.new_name}"


@dataclass(frozen=True, slots=True)
class AddProperty:
    """A new nullable property; rows that exist get null."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: str

    def to_json(self) -> Json:
        return {
            "kind": "add_property",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "property_type": self.property_type,
        }

    def __str__(self) -> str:
        return (
            f"add property {self.property_name}: {self.property_type} "
            f"to {self.type_kind} {self.type_name}"
        )


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """The same values under a new name; node ids stay as they are, even for a member of the key."""

    type_kind: TypeKind
    type_name: str
    old_name: str
    new_name: str

    def to_json(self) -> Json:
        return {
            "kind": "rename_property",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "from": self.old_name,
            "to": self.new_name,
        }

    def __str__(self) -> str:
        return (
            f"rename property {self.old_name} of {self.type_kind} {self.type_name} "
            f"to {self.new_name}"
        )


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """A new `@index`: a wish that maintenance fulfils, so no data is touched."""

    type_kind: TypeKind
    type_name: str
    constraint: str

    def to_json(self) -> Json:
        return {
            "kind": "add_constraint",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "constraint": self.constraint,
        }

    def __str__(self) -> str:
        return f"add {self.constraint} to {self.type_kind} {self.type_name}"


@dataclass(frozen=True, slots=True)
class ExtendEnum:
    """More variants for an enum; the stored values stay valid."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]

    def to_json(self) -> Json:
        return {
            "kind": "extend_enum",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "added_values": list(self.added_values),
        }

    def __str__(self) -> str:
        return (
            f"extend enum {self.property_name} of {self.type_kind} {self.type_name} "
            f"with {', '.join(self.added_values)}"
        )


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata:
    """A changed `@description` or `@instruction`; `annotations` are the ones that hold from now."""

    type_kind: TypeKind
    name: str
    annotations: tuple[tuple[str, str], ...]

    def to_json(self) -> Json:
        return {
            "kind": "update_type_metadata",
            "type_kind": self.type_kind,
            "name": self.name,
            "annotations": _annotations_json(self.annotations),
        }

    def __str__(self) -> str:
        return f"update metadata of {self.type_kind} {self.name}"


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata:
    """A changed `@description` of a property."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[tuple[str, str], ...]

    def to_json(self) -> Json:
        return {
            "kind": "update_property_metadata",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "annotations": _annotations_json(self.annotations),
        }

    def __str__(self) -> str:
        return (
            f"update metadata of property {self.property_name} of {self.type_kind} {self.type_name}"
        )


@dataclass(frozen=True, slots=True)
class DropType:
    """A type and its table leave the schema. `code` and `tier` tell the reader what that means."""

    type_kind: EntityKind
    name: str
    mode: DropMode

    @property
    def code(self) -> str:
        return DROP_TYPE_CODES[self.type_kind]

    @property
    def tier(self) -> Tier:
        return Tier.DESTRUCTIVE

    def to_json(self) -> Json:
        return {
            "kind": "drop_type",
            "type_kind": self.type_kind,
            "name": self.name,
            "mode": self.mode.value,
            "code": self.code,
            "tier": self.tier.value,
        }

    def __str__(self) -> str:
        return f"drop {self.type_kind} {self.name} ({self.mode}) [{self.code}, {self.tier}]"


@dataclass(frozen=True, slots=True)
class DropProperty:
    """A property and its values leave the schema."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    mode: DropMode

    @property
    def code(self) -> str:
        return DROP_PROPERTY_CODE

    @property
    def tier(self) -> Tier:
        return Tier.DESTRUCTIVE

    def to_json(self) -> Json:
        return {
            "kind": "drop_property",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "mode": self.mode.value,
            "code": self.code,
            "tier": self.tier.value,
        }

    def __str__(self) -> str:
        return (
            f"drop property {self.property_name} of {self.type_kind} {self.type_name} "
            f"({self.mode}) [{self.code}, {self.tier}]"
        )


@dataclass(frozen=True, slots=True)
class UnsupportedChange:
    """A difference that no step covers. One of these refuses the whole plan.

    `rule` is the word and the properties of a constraint that it would add, in new names: what the
    rows there are can be held against.
    """

    entity: str
    reason: str
    code: str | None = None
    rule: tuple[str, tuple[str, ...]] | None = None

    def to_json(self) -> Json:
        document: Json = {
            "kind": "unsupported_change",
            "entity": self.entity,
            "reason": self.reason,
        }
        return document if self.code is None else document | {"code": self.code}

    def __str__(self) -> str:
        code = f"[{self.code}] " if self.code else ""
        return f"unsupported: {code}{self.reason}"


MigrationStep: TypeAlias = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | AddConstraint
    | ExtendEnum
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropType
    | DropProperty
    | UnsupportedChange
)


def _annotations_json(annotations: tuple[tuple[str, str], ...]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in annotations]
