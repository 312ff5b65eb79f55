"""Repair: tables with versions that were committed outside Omnigraph, and what to do about them.

    classification         versions past the pin are          preview   confirm   confirm and force
    no_drift               none                               no_op     no_op     no_op
    verified_maintenance   compactions only                   preview   healed    healed
    suspicious             something that may change rows     preview   refused   forced
    unverifiable           unknown: a transaction is missing  preview   refused   forced

Nothing is rewritten: existing HEADs are published in one commit. Covered drift is recovery's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import BadRequestError, NotFoundError
from omnigraph.json_form import JsonForm
from omnigraph.manifest import MAIN, ManifestState, Publish, TableEntry, publish
from omnigraph.storage.handles import TransactionInfo
from omnigraph.storage.tables import TableStorage
from omnigraph.ulids import new_ulid
from omnigraph.upkeep.content_keeping import refuse_while_pending
from omnigraph.upkeep.progress import OnProgress, track
from omnigraph.write.drift import read_head
from omnigraph.write.environment import WriteEnvironment, publish_turn, queue_keys
from omnigraph.write.intent import mint_commit
from omnigraph.write.pins import handle_to_pin

REPAIR_ACTOR = "omnigraph:repair"
FORCED_ACTOR = "omnigraph:repair:force"

_REWRITE = "Rewrite"
_RESERVE = "BaseOperation"
"""How Lance's Python shows the reservation of fragment ids that precedes its own compaction."""


class Drift(StrEnum):
    """What lies between a pin and HEAD."""

    NONE = "no_drift"
    MAINTENANCE = "verified_maintenance"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"


class Action(StrEnum):
    """What repair did about the drift."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"
    FORCED = "forced"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class TableRepair(JsonForm):
    """One table. `manifest_version` is its pin."""

    table_key: str
    manifest_version: int
    lance_head_version: int
    classification: Drift
    action: Action
    operations: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RepairReport(JsonForm):
    """What was found on main, and what was published of it."""

    uri: str
    confirm: bool
    force: bool
    manifest_version: int
    tables: tuple[TableRepair, ...]

    @property
    def has_refusals(self) -> bool:
        return any(each.action is Action.REFUSED for each in self.tables)

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


def repair(
    environment: WriteEnvironment,
    *,
    confirm: bool = False,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> RepairReport:
    """Classify every table of main; with `confirm` publish what is safe, with `force` everything.

    Raises:
        ConflictError: An interrupted write is pending.
        InvariantViolated: A HEAD is behind its pin.
    """
    if force and not confirm:
        raise BadRequestError("force needs confirm as well — repair without both only looks")
    refuse_while_pending(environment, "repair")
    keys = environment.coordinator.fresh(MAIN).entries
    with environment.queues.acquire_many(queue_keys(keys, MAIN)):
        state = environment.coordinator.fresh(MAIN)
        rows = [
            _inspect(environment.tables, state.entries[key], confirm=confirm, force=force)
            for key in track(state.entries, on_progress, str, "publish")
        ]
        state = _publish(environment, state, rows)
    return RepairReport(str(environment.tables.root), confirm, force, state.version, tuple(rows))


def _inspect(tables: TableStorage, entry: TableEntry, *, confirm: bool, force: bool) -> TableRepair:
    location = tables.root.table(entry.table_path, entry.table_branch)
    head = read_head(tables, entry)
    made: list[TransactionInfo | None] = []
    for version in range(entry.version + 1, head + 1):
        try:
            made.append(tables.read_transaction(location, version))
        except NotFoundError:
            made.append(None)
    drift = classify_drift(made)
    return TableRepair(
        entry.table_key,
        entry.version,
        head,
        drift,
        action_for(drift, confirm=confirm, force=force),
        tuple(_name_operation(each) for each in made),
    )


def classify_drift(made: Sequence[TransactionInfo | None]) -> Drift:
    """What the transactions past a pin amount to, oldest first."""
    if not made:
        return Drift.NONE
    names = [None if each is None else each.operation_name for each in made]
    if None in names:
        return Drift.UNVERIFIABLE
    for name, following in zip(names, [*names[1:], None], strict=True):
        is_reservation = name == _RESERVE and following == _REWRITE
        if name != _REWRITE and not is_reservation:
            return Drift.SUSPICIOUS
    return Drift.MAINTENANCE


def action_for(drift: Drift, *, confirm: bool, force: bool) -> Action:
    """The table at the top of this module."""
    if drift is Drift.NONE:
        return Action.NO_OP
    if not confirm:
        return Action.PREVIEW
    if drift is Drift.MAINTENANCE:
        return Action.HEALED
    return Action.FORCED if force else Action.REFUSED


def _name_operation(made: TransactionInfo | None) -> str:
    name = None if made is None else made.operation_name
    if name is None:
        return "unknown"
    return "ReserveFragments" if name == _RESERVE else name


def _publish(
    environment: WriteEnvironment, state: ManifestState, rows: Sequence[TableRepair]
) -> ManifestState:
    shown = {row.table_key: row for row in rows if row.action in (Action.HEALED, Action.FORCED)}
    if not shown:
        return state
    is_forced = any(row.action is Action.FORCED for row in shown.values())
    # A repair has no sidecar.
    with publish_turn(environment, MAIN), environment.coordinator.mark_unfinished(MAIN):
        return publish(
            environment.coordinator,
            Publish(
                branch=MAIN,
                changes=tuple(_pins(environment.tables, state, shown)),
                expected={key: row.manifest_version for key, row in shown.items()},
                commits=(mint_commit(FORCED_ACTOR if is_forced else REPAIR_ACTOR),),
            ),
        )


def _pins(
    tables: TableStorage, state: ManifestState, shown: Mapping[str, TableRepair]
) -> list[Any]:
    pins = []
    for key, row in shown.items():
        entry = state.entries[key]
        location = tables.root.table(entry.table_path, entry.table_branch)
        handle = tables.open_at(location, row.lance_head_version, incarnation=new_ulid())
        pins.append(handle_to_pin(key, handle))
    return pins
