"""Steps: what a migration does, one frozen value each, with its JSON form and its line of text."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from omnigraph.catalog.model import EntityKind, TypeKind
from omnigraph.catalog.type_changes import Tier
from omnigraph.dataclass import dataclass
from omnigraph.json_form import JsonForm, without_empty

Json: TypeAlias = dict[str, Any]

DROP_TYPE_CODES: dict[EntityKind, str] = {"node": "OG-DS-102", "edge": "OG-DS-103"}
ADD_REQUIRED_CODE = "OG-MF-103"
REQUIRE_CODE = "OG-MF-104"
CHANGE_TYPE_CODE = "OG-MF-106"
DESTRUCTIVE = "destructive"
"""The tier of a drop: it needs an explicit yes."""

_JSON_NAMES = {"old_name": "from", "new_name": "to", "old_type": "from", "new_type": "to"}
_JSON_NAMES |= {"old_bounds": "from", "new_bounds": "to"}

Rule: TypeAlias = tuple[str, tuple[str, ...]]
"""The name and the properties, in new names, of a constraint that rows may break."""


class DropMode(StrEnum):
    """Whether earlier versions keep what is dropped (soft) or lose it for good (hard)."""

    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True)
class _Step(JsonForm):
    """What all steps share: a `kind`, and JSON that holds their fields in order."""

    kind: ClassVar[str]

    def to_json(self) -> Json:
        facts = JsonForm.to_json(self)
        if "annotations" in facts:
            facts["annotations"] = [{"name": n, "value": v} for n, v in facts["annotations"]]
        return {"kind": self.kind} | {_JSON_NAMES.get(name, name): facts[name] for name in facts}


@dataclass(frozen=True, slots=True)
class _PropertyStep(_Step):
    """A step about one property of one type."""

    type_kind: TypeKind
    type_name: str
    property_name: str


@dataclass(frozen=True, slots=True)
class AddType(_Step):
    """A new type; a node or edge type starts with an empty table."""

    kind: ClassVar = "add_type"
    type_kind: TypeKind
    name: str

    def __str__(self) -> str:
        return f"add {self.type_kind} {self.name}"


@dataclass(frozen=True, slots=True)
class RenameType(_Step):
    """The same identity and data under a new name."""

    kind: ClassVar = "rename_type"
    type_kind: TypeKind
    old_name: str
    new_name: str

    def __str__(self) -> str:
        return f"rename {self.type_kind} {self.old_name} to {self.new_name}"


@dataclass(frozen=True, slots=True)
class AddProperty(_PropertyStep):
    """A new property; rows that exist get what `backfill` makes, else the default, else null."""

    kind: ClassVar = "add_property"
    property_type: str
    default: str | int | float | bool | None = None
    backfill: str | None = None

    @property
    def is_filled(self) -> bool:
        """Whether rows that exist get a value."""
        return self.default is not None or self.backfill is not None

    def to_json(self) -> Json:
        return {name: fact for name, fact in _Step.to_json(self).items() if fact is not None}

    def __str__(self) -> str:
        filled = self.default if self.backfill is None else self.backfill
        return (
            f"add property {self.property_name}: {self.property_type} "
            f"to {self.type_kind} {self.type_name}"
            f"{f', {filled} for rows that exist' if self.is_filled else ''}"
        )


@dataclass(frozen=True, slots=True)
class ChangeType(_PropertyStep):
    """The same values in another type. A validated one needs every row to fit."""

    kind: ClassVar = "change_type"
    old_type: str
    new_type: str
    tier: Tier

    @property
    def code(self) -> str | None:
        if self.tier is Tier.SAFE:
            return None
        is_required = self.old_type == f"{self.new_type}?"
        return REQUIRE_CODE if is_required else CHANGE_TYPE_CODE

    def to_json(self) -> Json:
        return _Step.to_json(self) | without_empty({"code": self.code})

    def __str__(self) -> str:
        return (
            f"change property {self.property_name} of {self.type_kind} {self.type_name} "
            f"from {self.old_type} to {self.new_type}"
        )


@dataclass(frozen=True, slots=True)
class RenameProperty(_Step):
    """The same values under a new name; node ids stay as they are, even for a member of the key."""

    kind: ClassVar = "rename_property"
    type_kind: TypeKind
    type_name: str
    old_name: str
    new_name: str

    def __str__(self) -> str:
        return (
            f"rename property {self.old_name} of {self.type_kind} {self.type_name} "
            f"to {self.new_name}"
        )


@dataclass(frozen=True, slots=True)
class AddConstraint(_Step):
    """A new constraint. An index, built later by maintenance, has no rule that rows may break."""

    kind: ClassVar = "add_constraint"
    type_kind: TypeKind
    type_name: str
    constraint: str
    rule: Rule | None = None

    def to_json(self) -> Json:
        facts = _Step.to_json(self)
        return facts if facts.pop("rule") is None else facts | {"tier": Tier.VALIDATED.value}

    def __str__(self) -> str:
        return f"add {self.constraint} to {self.type_kind} {self.type_name}"


@dataclass(frozen=True, slots=True)
class DropConstraint(_Step):
    """A constraint that holds no more; of a key, the ids stay."""

    kind: ClassVar = "drop_constraint"
    type_kind: TypeKind
    type_name: str
    constraint: str

    def __str__(self) -> str:
        return f"drop {self.constraint} of {self.type_kind} {self.type_name}"


@dataclass(frozen=True, slots=True)
class ChangeCardinality(_Step):
    """Other bounds of `@card`; closer ones need every node to keep them."""

    kind: ClassVar = "change_cardinality"
    type_kind: TypeKind
    type_name: str
    old_bounds: str
    new_bounds: str
    tier: Tier

    def __str__(self) -> str:
        return (
            f"change @card of {self.type_kind} {self.type_name} "
            f"from {self.old_bounds} to {self.new_bounds}"
        )


@dataclass(frozen=True, slots=True)
class ExtendEnum(_PropertyStep):
    """More variants for an enum; the stored values stay valid."""

    kind: ClassVar = "extend_enum"
    added_values: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"extend enum {self.property_name} of {self.type_kind} {self.type_name} "
            f"with {', '.join(self.added_values)}"
        )


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata(_Step):
    """A changed `@description` or `@instruction`; `annotations` are the ones that hold from now."""

    kind: ClassVar = "update_type_metadata"
    type_kind: TypeKind
    name: str
    annotations: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"update metadata of {self.type_kind} {self.name}"


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata(_PropertyStep):
    """A changed `@description` or `@default` of a property; rows that exist keep their values."""

    kind: ClassVar = "update_property_metadata"
    annotations: tuple[tuple[str, str | int | float | bool], ...]

    def __str__(self) -> str:
        return (
            f"update metadata of property {self.property_name} of {self.type_kind} {self.type_name}"
        )


@dataclass(frozen=True, slots=True)
class DropType(_Step):
    """A type and its table leave the schema."""

    kind: ClassVar = "drop_type"
    type_kind: EntityKind
    name: str
    mode: DropMode

    @property
    def code(self) -> str:
        return DROP_TYPE_CODES[self.type_kind]

    def to_json(self) -> Json:
        return _Step.to_json(self) | {"code": self.code, "tier": DESTRUCTIVE}

    def __str__(self) -> str:
        return f"drop {self.type_kind} {self.name} ({self.mode}) [{self.code}, {DESTRUCTIVE}]"


@dataclass(frozen=True, slots=True)
class DropProperty(_PropertyStep):
    """A property and its values leave the schema."""

    kind: ClassVar = "drop_property"
    code: ClassVar = "OG-DS-104"
    mode: DropMode

    def to_json(self) -> Json:
        return _Step.to_json(self) | {"code": self.code, "tier": DESTRUCTIVE}

    def __str__(self) -> str:
        return (
            f"drop property {self.property_name} of {self.type_kind} {self.type_name} "
            f"({self.mode}) [{self.code}, {DESTRUCTIVE}]"
        )


@dataclass(frozen=True, slots=True)
class UnsupportedChange:
    """A difference that no step covers. One of these refuses the whole plan."""

    entity: str
    reason: str
    code: str | None = None

    def to_json(self) -> Json:
        facts = {"entity": self.entity, "reason": self.reason, "code": self.code}
        return {"kind": "unsupported_change"} | without_empty(facts)

    def __str__(self) -> str:
        code = f"[{self.code}] " if self.code else ""
        return f"unsupported: {code}{self.reason}"


MigrationStep: TypeAlias = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | ChangeType
    | AddConstraint
    | DropConstraint
    | ChangeCardinality
    | ExtendEnum
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropType
    | DropProperty
    | UnsupportedChange
)
