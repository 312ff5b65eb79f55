"""Sidecar: what a writer is about to do, as one value and as JSON. Pure: no I/O.

The JSON has a schema version. Versions up to the current one keep their own meaning; a newer one
is refused, because guessing would risk data. A text that is damaged or has the id of another
operation is refused as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, field, fields
from enum import StrEnum
from typing import Any, TypeVar

import orjson

from omnigraph.dataclass import dataclass
from omnigraph.errors import RecoveryRequired
from omnigraph.manifest import GraphCommit, Lineage, Tombstone

DIRECTORY = "__recovery"
SCHEMA_VERSION = 2

_T = TypeVar("_T", str, int, dict, list)  # type: ignore[type-arg]


class WriterKind(StrEnum):
    """The kind of writer; recovery picks its rules by it. An unknown one is refused.

    So an older Omnigraph does not take a group for its last member.
    """

    MUTATION = "Mutation"
    MUTATION_GROUP = "MutationGroup"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"


@dataclass(frozen=True, slots=True)
class SidecarPin:
    """One table whose HEAD will move. `table_branch` is the Lance branch it moves on."""

    table_key: str
    table_path: str
    expected_version: int
    post_commit_pin: int
    table_branch: str | None
    transaction_uuids: tuple[str, ...] = ()
    confirmed_version: int | None = None


@dataclass(frozen=True, slots=True)
class SidecarSwitch:
    """One table that a merge points at a version which is there already: no HEAD moves."""

    table_key: str
    version: int
    table_branch: str | None


@dataclass(frozen=True, slots=True)
class SidecarTable:
    """One table that a schema change adds, or shows under another name.

    `version` is given for one that is there already and does not move.
    """

    table_key: str
    table_path: str
    table_branch: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class SchemaIntent:
    """What a schema change does besides moving HEADs.

    `schema_hash` and `schema_id` name the schema it leads to; None for older writers. `purged` are
    tables, by their path, whose earlier versions have to go.
    """

    registrations: tuple[SidecarTable, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    schema_hash: str | None = None
    schema_id: str | None = None
    purged: tuple[str, ...] = ()

    @property
    def table_keys(self) -> frozenset[str]:
        named = [each.table_key for each in self.registrations]
        return frozenset([*named, *(each.table_key for each in self.tombstones)])


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The intent of one write. `branch` is None for main; `started_at` is in microseconds.

    `switches` and `commit_properties` belong to the write as well: without them a publish would
    make half of a merge visible. So do `ancestors`, the commits that a merge brings along.

    `read_versions` and `if_commit` are what the write's publish would have insisted on: recovery
    publishes it only while they still hold. `branch_id` tells the branch from a later one of the
    same name. `earlier` are the commits of a group before its last one, which the fields without
    a list are about. `merge_source_branch` is where a merge reads rows: it holds the queues there
    as well. `is_confirmed` says that every table is ready, new ones too; of a write with
    `is_checked` also that the checks of its branch hold.
    """

    operation_id: str
    writer_kind: WriterKind
    started_at: int
    branch: str | None
    actor_id: str | None
    commit_id: str | None
    pins: tuple[SidecarPin, ...]
    merge_source_commit_id: str | None = None
    merge_source_branch: str | None = None
    schema_version: int = SCHEMA_VERSION
    branch_id: str | None = None
    read_versions: Mapping[str, int] = field(default_factory=dict)
    if_commit: str | None = None
    switches: tuple[SidecarSwitch, ...] = ()
    commit_properties: Mapping[str, Any] = field(default_factory=dict)
    schema: SchemaIntent = SchemaIntent()
    ancestors: tuple[GraphCommit, ...] = ()
    earlier: tuple[Lineage, ...] = ()
    is_confirmed: bool = False
    is_checked: bool = False

    @property
    def changes_schema(self) -> bool:
        """Whether the write leads its branch to another schema: an apply, or a merge of schemas."""
        is_apply = self.writer_kind is WriterKind.SCHEMA_APPLY
        return is_apply or self.schema.schema_hash is not None

    @property
    def stages_schema_files(self) -> bool:
        """Whether the schema files are laid down before the publish; else it is confirmed."""
        return self.writer_kind is WriterKind.SCHEMA_APPLY and self.branch is None

    @property
    def actors(self) -> str | None:
        """Who wrote: of a group, all of its actors."""
        named = [*(each.actor for each in self.earlier), self.actor_id]
        return ", ".join(dict.fromkeys(each for each in named if each is not None)) or None


def sidecar_path(operation_id: str) -> str:
    return f"{DIRECTORY}/{operation_id}.json"


def sidecar_to_json(sidecar: Sidecar) -> str:
    """Pretty JSON; absent optional fields are left out."""
    value = {
        "schema_version": sidecar.schema_version,
        "operation_id": sidecar.operation_id,
        "started_at": str(sidecar.started_at),
        "branch": sidecar.branch,
        "branch_id": sidecar.branch_id,
        "actor_id": sidecar.actor_id,
        "writer_kind": sidecar.writer_kind.value,
        "tables": [_pin_to_json(pin) for pin in sidecar.pins],
        "read_versions": dict(sorted(sidecar.read_versions.items())) or None,
        "if_commit": sidecar.if_commit,
        "merge_source_commit_id": sidecar.merge_source_commit_id,
        "merge_source_branch": sidecar.merge_source_branch,
        "switches": [asdict(each) for each in sidecar.switches] or None,
        "lineage": _lineage_to_json(sidecar),
        "earlier_commits": [_commit_to_json(each) for each in sidecar.earlier] or None,
        "ancestors": [asdict(each) for each in sidecar.ancestors] or None,
        "is_confirmed": sidecar.is_confirmed or None,
        "is_checked": sidecar.is_checked or None,
        **_schema_to_json(sidecar.schema),
    }
    kept = {"branch", "actor_id"}
    body = {name: each for name, each in value.items() if each is not None or name in kept}
    sealed = {**body, "checksum": checksum_of(body)}
    return orjson.dumps(sealed, option=orjson.OPT_INDENT_2).decode()


def _commit_to_json(commit: Lineage) -> dict[str, Any]:
    return {field.name: getattr(commit, field.name) for field in fields(Lineage)}


def _pin_to_json(pin: SidecarPin) -> dict[str, Any]:
    value = {
        "table_key": pin.table_key,
        "table_path": pin.table_path,
        "expected_version": pin.expected_version,
        "post_commit_pin": pin.post_commit_pin,
        "table_branch": pin.table_branch,
        "transactions": [
            {"read_version": pin.expected_version + number, "uuid": uuid}
            for number, uuid in enumerate(pin.transaction_uuids)
        ],
    }
    confirmed = pin.confirmed_version
    return value if confirmed is None else {**value, "confirmed_version": confirmed}


def _schema_to_json(schema: SchemaIntent) -> dict[str, Any]:
    tables = [asdict(each) for each in schema.registrations]
    hidden = [(each.table_key, each.version) for each in schema.tombstones]
    return {
        "additional_registrations": [
            {name: each for name, each in table.items() if each is not None} for table in tables
        ]
        or None,
        "tombstones": [{"table_key": key, "tombstone_version": at} for key, at in hidden] or None,
        "target_schema_hash": schema.schema_hash,
        "target_schema_id": schema.schema_id,
        "purged": list(schema.purged) or None,
    }


def _lineage_to_json(sidecar: Sidecar) -> dict[str, Any] | None:
    if sidecar.commit_id is None:
        return None
    noted = {"properties": dict(sidecar.commit_properties)} if sidecar.commit_properties else {}
    return {"commit_id": sidecar.commit_id, **noted}


def checksum_of(body: Mapping[str, Any]) -> str:
    """A flipped bit in a version number is valid JSON: only a checksum detects it."""
    plain = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def sidecar_from_json(text: str, operation_id: str) -> Sidecar:
    """Read a sidecar; unknown fields are ignored.

    Raises:
        RecoveryRequired: The file is damaged or written by a newer Omnigraph. It stays where it is.
    """
    path = sidecar_path(operation_id)
    try:
        value = json.loads(text)
        version = _field(value, "schema_version", int)
        if version > SCHEMA_VERSION:
            raise RecoveryRequired(
                f"'{path}' has schema_version {version}, this Omnigraph reads up to "
                f"{SCHEMA_VERSION} — open the graph with a newer Omnigraph",
                operation_id=operation_id,
            )
        return _sidecar(value, version, operation_id)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecoveryRequired(
            f"'{path}' cannot be read ({_reason(error)}) — it is kept; restore it or move it "
            "away after looking at the tables it should name",
            operation_id=operation_id,
        ) from error


def _sidecar(value: dict[str, Any], version: int, operation_id: str) -> Sidecar:
    claimed = value.pop("checksum", None)
    if claimed is not None and claimed != checksum_of(value):
        raise ValueError("its checksum does not match")
    if value["operation_id"] != operation_id:
        raise ValueError("it bears the name of another operation")
    if version < 1:
        raise ValueError(f"schema_version {version} never existed")
    kind = WriterKind(value["writer_kind"])
    pins = tuple(_pin_from_json(pin) for pin in _field(value, "tables", list))
    # Only a schema change can be about tables that do not exist yet.
    if not pins and kind is not WriterKind.SCHEMA_APPLY and not value.get("target_schema_hash"):
        raise ValueError("it names no table")
    if len({pin.table_key for pin in pins}) < len(pins):
        raise ValueError("it names a table twice")
    reads = _optional(value, "read_versions", dict) or {}
    lineage = _optional(value, "lineage", dict) or {}
    return Sidecar(
        operation_id=operation_id,
        writer_kind=kind,
        started_at=int(value["started_at"]),
        branch=_optional(value, "branch", str),
        actor_id=_optional(value, "actor_id", str),
        commit_id=_optional(lineage, "commit_id", str),
        pins=pins,
        merge_source_commit_id=_optional(value, "merge_source_commit_id", str),
        merge_source_branch=_optional(value, "merge_source_branch", str),
        schema_version=version,
        branch_id=_optional(value, "branch_id", str),
        read_versions={key: _version(reads, key) for key in reads},
        if_commit=_optional(value, "if_commit", str),
        switches=tuple(map(_switch_from_json, _optional(value, "switches", list) or [])),
        commit_properties=_optional(lineage, "properties", dict) or {},
        schema=_schema_from_json(value),
        earlier=tuple(Lineage(**each) for each in _optional(value, "earlier_commits", list) or []),
        ancestors=tuple(GraphCommit(**each) for each in _optional(value, "ancestors", list) or []),
        is_confirmed=value.get("is_confirmed") is True,
        is_checked=value.get("is_checked") is True,
    )


def _schema_from_json(value: dict[str, Any]) -> SchemaIntent:
    return SchemaIntent(
        registrations=tuple(
            SidecarTable(
                _field(each, "table_key", str),
                _field(each, "table_path", str),
                _optional(each, "table_branch", str),
                _version(each, "version") if each.get("version") is not None else None,
            )
            for each in _optional(value, "additional_registrations", list) or []
        ),
        tombstones=tuple(
            Tombstone(_field(each, "table_key", str), _version(each, "tombstone_version"))
            for each in _optional(value, "tombstones", list) or []
        ),
        schema_hash=_optional(value, "target_schema_hash", str),
        schema_id=_optional(value, "target_schema_id", str),
        purged=tuple(_optional(value, "purged", list) or []),
    )


def _switch_from_json(value: dict[str, Any]) -> SidecarSwitch:
    return SidecarSwitch(
        table_key=_field(value, "table_key", str),
        version=_version(value, "version"),
        table_branch=_optional(value, "table_branch", str),
    )


def _pin_from_json(value: dict[str, Any]) -> SidecarPin:
    steps = _optional(value, "transactions", list) or []
    is_confirmed = value.get("confirmed_version") is not None
    return SidecarPin(
        table_key=_field(value, "table_key", str),
        table_path=_field(value, "table_path", str),
        expected_version=_version(value, "expected_version"),
        post_commit_pin=_version(value, "post_commit_pin"),
        table_branch=_optional(value, "table_branch", str),
        transaction_uuids=tuple(_field(step, "uuid", str) for step in steps),
        confirmed_version=_version(value, "confirmed_version") if is_confirmed else None,
    )


def _field(value: dict[str, Any], name: str, kind: type[_T]) -> _T:
    found = value[name]
    if not isinstance(found, kind) or isinstance(found, bool):
        raise TypeError(f"`{name}` is not of type {kind.__name__}")
    return found


def _optional(value: dict[str, Any], name: str, kind: type[_T]) -> _T | None:
    return None if value.get(name) is None else _field(value, name, kind)


def _version(value: dict[str, Any], name: str) -> int:
    found = _field(value, name, int)
    if found < 0:
        raise ValueError(f"`{name}` is negative")
    return found


def _reason(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"not JSON: {error.msg} at character {error.pos}"
        case KeyError():
            return f"it has no `{error.args[0]}`"
        case _:
            return str(error)
