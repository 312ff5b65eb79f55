"""Sidecars: what a writer is about to do, written down before it does it.

Invariant: no HEAD moves before `__recovery/{operation_id}.json` names the table, the version it
stands at and the transaction that will move it. Recovery decides from this file alone.

A file says which version of the rules it was written under. Versions up to the current one keep
their own meaning; a newer one is refused, because guessing would risk data. A file that is
damaged, does not bear its own name or is far too large is refused as well, and stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from omnigraph.errors import InvariantViolated, OmnigraphError, RecoveryRequired
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import GraphCommit

DIRECTORY = "__recovery"
SCHEMA_VERSION = 2
BYTES_MAX = 16 * 1024 * 1024
"""No sidecar of ours comes near this: a table takes a few hundred bytes."""

_T = TypeVar("_T", str, int, dict, list)  # type: ignore[type-arg]


class WriterKind(StrEnum):
    """Who wrote a sidecar; recovery picks its rules by it."""

    MUTATION = "Mutation"
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
    """One table that a schema change adds, or writes anew under another name."""

    table_key: str
    table_path: str
    table_branch: str | None = None


@dataclass(frozen=True, slots=True)
class SidecarTombstone:
    """One table that a schema change hides: versions up to this one are not shown any more."""

    table_key: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaIntent:
    """What a schema change does besides moving HEADs.

    `schema_hash` and `schema_id` name the schema it leads to; None for older writers. `purged` are
    tables, by their path, whose earlier versions have to go.
    """

    registrations: tuple[SidecarTable, ...] = ()
    tombstones: tuple[SidecarTombstone, ...] = ()
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

    `switches` and `commit_properties` belong to the write as well: a publish without them would
    show half of a merge. So do `ancestors`, the commits that a merge brings along.

    `read_versions` and `if_commit` are what the write's publish would have insisted on: recovery
    publishes it only while they still hold. `branch_id` tells the branch from a later one of the
    same name. `merge_source_branch` is where a merge reads rows: it holds the queues there as well.
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


class SidecarStore(Protocol):
    """The part of the text store that sidecars need."""

    def read_text_if_exists(self, path: str, *, bytes_max: int | None = None) -> str | None: ...
    def write_text(self, path: str, text: str) -> None: ...
    def delete(self, path: str) -> None: ...
    def list_dir(self, path: str) -> list[str]: ...


def sidecar_path(operation_id: str) -> str:
    return f"{DIRECTORY}/{operation_id}.json"


def write_sidecar(store: SidecarStore, sidecar: Sidecar) -> None:
    """Phase A: make the intent durable. A failure here leaves nothing to recover."""
    hit(Failpoint.RECOVERY_SIDECAR_WRITE)
    path = sidecar_path(sidecar.operation_id)
    try:
        store.write_text(path, sidecar_to_json(sidecar))
    except OmnigraphError:
        # The file may be there all the same. No HEAD has moved, so it says nothing of worth.
        with suppress(OmnigraphError):
            store.delete(path)
        raise
    hit(Failpoint.COMMIT_AFTER_SIDECAR)


def confirm_sidecar(store: SidecarStore, sidecar: Sidecar, achieved: Mapping[str, int]) -> Sidecar:
    """Phase B is complete: write down the version that each table has reached.

    Replaces the file as a whole, so a reader finds it confirmed in full or not at all.

    Raises:
        InvariantViolated: A pinned table has no achieved version. The file is left as it was.
    """
    missing = [f"'{pin.table_key}'" for pin in sidecar.pins if pin.table_key not in achieved]
    if missing:
        raise InvariantViolated(
            f"sidecar {sidecar.operation_id} cannot be confirmed: no version was achieved for "
            f"{', '.join(missing)}"
        )
    hit(Failpoint.RECOVERY_SIDECAR_CONFIRM)
    pins = (replace(pin, confirmed_version=achieved[pin.table_key]) for pin in sidecar.pins)
    confirmed = replace(sidecar, pins=tuple(pins))
    store.write_text(sidecar_path(sidecar.operation_id), sidecar_to_json(confirmed))
    return confirmed


def delete_sidecar(store: SidecarStore, operation_id: str) -> None:
    """Phase D: the write is published, the intent is history."""
    hit(Failpoint.RECOVERY_SIDECAR_DELETE)
    store.delete(sidecar_path(operation_id))
    hit(Failpoint.RECOVERY_AFTER_SIDECAR_DELETE)


def list_sidecars(store: SidecarStore) -> list[str]:
    """Operation ids of every sidecar there is, oldest first. A failed listing is loud."""
    hit(Failpoint.RECOVERY_SIDECAR_LIST)
    return sorted(
        name.removesuffix(".json") for name in store.list_dir(DIRECTORY) if name.endswith(".json")
    )


def read_sidecar_if_exists(store: SidecarStore, operation_id: str) -> Sidecar | None:
    """Read a sidecar, or None when its writer has deleted it meanwhile."""
    text = store.read_text_if_exists(sidecar_path(operation_id), bytes_max=BYTES_MAX)
    return None if text is None else sidecar_from_json(text, operation_id)


def relocate_sidecars(store: SidecarStore, former: Collection[str], root: str) -> None:
    """Point the sidecars of a graph that lay at one of `former` to where it lies now.

    One that names any other place, or is damaged, stays as it is: recovery refuses it.
    """
    for operation_id in list_sidecars(store):
        path = sidecar_path(operation_id)
        text = store.read_text_if_exists(path, bytes_max=BYTES_MAX)
        moved = None if text is None else _relocate(text, operation_id, former, root)
        if moved is not None:
            store.write_text(path, moved)


def _relocate(text: str, operation_id: str, former: Collection[str], root: str) -> str | None:
    try:
        sidecar_from_json(text, operation_id)
    except RecoveryRequired:
        return None
    body = json.loads(text)
    has_checksum = body.pop("checksum", None) is not None
    for table in body["tables"]:
        old = next((each for each in former if table["table_path"].startswith(f"{each}/")), None)
        if old is None:
            return None
        table["table_path"] = root + table["table_path"].removeprefix(old)
    # As it was written: other fields may be of a writer that knows more.
    return json.dumps({**body, "checksum": _checksum(body)} if has_checksum else body, indent=2)


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
        "switches": [_switch_to_json(each) for each in sidecar.switches] or None,
        "lineage": _lineage_to_json(sidecar),
        "ancestors": [asdict(each) for each in sidecar.ancestors] or None,
        **_schema_to_json(sidecar.schema),
    }
    kept = {"branch", "actor_id"}
    body = {name: each for name, each in value.items() if each is not None or name in kept}
    return json.dumps({**body, "checksum": _checksum(body)}, indent=2)


def _pin_to_json(pin: SidecarPin) -> dict[str, Any]:
    value: dict[str, Any] = {
        "table_key": pin.table_key,
        "table_path": pin.table_path,
        "expected_version": pin.expected_version,
        "post_commit_pin": pin.post_commit_pin,
        "table_branch": pin.table_branch,
        "transactions": [
            {"read_version": pin.expected_version + step, "uuid": uuid}
            for step, uuid in enumerate(pin.transaction_uuids)
        ],
    }
    if pin.confirmed_version is not None:
        value["confirmed_version"] = pin.confirmed_version
    return value


def _switch_to_json(switch: SidecarSwitch) -> dict[str, Any]:
    return {
        "table_key": switch.table_key,
        "version": switch.version,
        "table_branch": switch.table_branch,
    }


def _schema_to_json(schema: SchemaIntent) -> dict[str, Any]:
    return {
        "additional_registrations": [
            {
                "table_key": each.table_key,
                "table_path": each.table_path,
                **({"table_branch": each.table_branch} if each.table_branch else {}),
            }
            for each in schema.registrations
        ]
        or None,
        "tombstones": [
            {"table_key": each.table_key, "tombstone_version": each.version}
            for each in schema.tombstones
        ]
        or None,
        "target_schema_hash": schema.schema_hash,
        "target_schema_id": schema.schema_id,
        "purged": list(schema.purged) or None,
    }


def _lineage_to_json(sidecar: Sidecar) -> dict[str, Any] | None:
    if sidecar.commit_id is None:
        return None
    noted = {"properties": dict(sidecar.commit_properties)} if sidecar.commit_properties else {}
    return {"commit_id": sidecar.commit_id, **noted}


def _checksum(body: Mapping[str, Any]) -> str:
    """A flipped bit in a version number is valid JSON: only a sum over the whole tells."""
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
    if claimed is not None and claimed != _checksum(value):
        raise ValueError("its checksum does not match")
    if value["operation_id"] != operation_id:
        raise ValueError("it bears the name of another operation")
    if version < 1:
        raise ValueError(f"schema_version {version} never existed")
    kind = WriterKind(value["writer_kind"])
    pins = tuple(_pin_from_json(pin) for pin in _field(value, "tables", list))
    # Only a schema change can be about tables that do not exist yet.
    if not pins and kind is not WriterKind.SCHEMA_APPLY:
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
        ancestors=tuple(GraphCommit(**each) for each in _optional(value, "ancestors", list) or []),
    )


def _schema_from_json(value: dict[str, Any]) -> SchemaIntent:
    return SchemaIntent(
        registrations=tuple(
            SidecarTable(
                _field(each, "table_key", str),
                _field(each, "table_path", str),
                _optional(each, "table_branch", str),
            )
            for each in _optional(value, "additional_registrations", list) or []
        ),
        tombstones=tuple(
            SidecarTombstone(_field(each, "table_key", str), _version(each, "tombstone_version"))
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
    return SidecarPin(
        table_key=_field(value, "table_key", str),
        table_path=_field(value, "table_path", str),
        expected_version=_version(value, "expected_version"),
        post_commit_pin=_version(value, "post_commit_pin"),
        table_branch=_optional(value, "table_branch", str),
        transaction_uuids=tuple(_field(step, "uuid", str) for step in steps),
        confirmed_version=_version(value, "confirmed_version")
        if value.get("confirmed_version") is not None
        else None,
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
