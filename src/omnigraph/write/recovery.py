"""Recovery: finish or undo what a dead writer left, so that the graph is whole again.

Invariant: every write named by a sidecar ends all-or-nothing, is audited exactly once, and leaves
pin == HEAD on every table it named. The sidecar goes last. Nothing else is remembered between
steps: a recovery that dies is simply run again and classifies anew.

    where                               what it may do
    read-write open                     everything: `settle_all(full=True)`
    entry of a write, refresh           roll forward only; what needs a restore waits for an open
    read-only open                      nothing

Both take the queues that the writer holds from before its sidecar until after it, so a live
writer is waited for and never undone. Restores happen only at an open: Lance lets a restore win
over commits in flight.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence

from ulid import ULID

from omnigraph.errors import ConflictError, InvariantViolated
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import MAIN, Lineage, ManifestState, Publish, UpdatePin, publish
from omnigraph.manifest.model import Change
from omnigraph.storage.control import ControlTable
from omnigraph.storage.queues import SCHEMA_APPLY_KEY, Guard, QueueKey
from omnigraph.write.audit import (
    RecoveryKind,
    RecoveryRecord,
    TableOutcome,
    is_recorded,
    record_recovery,
)
from omnigraph.write.classify import Decision, TableClass, decide
from omnigraph.write.commit import WriteEnvironment, pin_of_handle, publish_turn, queue_keys
from omnigraph.write.evidence import Found, look_at
from omnigraph.write.schema_recovery import (
    complete_schema_change,
    decide_schema_change,
    is_published,
    schema_changes,
    undo_schema_change,
)
from omnigraph.write.sidecar import (
    Sidecar,
    SidecarSwitch,
    WriterKind,
    delete_sidecar,
    list_sidecars,
    read_sidecar_if_exists,
)

RECOVERY_ACTOR = "omnigraph:recovery"

log = logging.getLogger("omnigraph.recovery")


def settle_all(
    environment: WriteEnvironment,
    audit: ControlTable,
    *,
    full: bool,
    wait_for: Collection[QueueKey] | None = None,
) -> int:
    """Settle every sidecar there is, oldest first; returns how many were.

    With nothing to do this costs one listing. With `full` unset, a write that needs a restore is
    left for the next read-write open. A write names in `wait_for` the queues it will take itself:
    a live writer of other tables or branches is then left alone instead of waited for.

    Raises:
        RecoveryRequired: A sidecar is damaged, foreign or newer than this Omnigraph. It stays.
        InvariantViolated: A table is behind its pin. The sidecar stays for somebody to look at.
    """
    settled = 0
    for operation_id in list_sidecars(environment.texts):
        known = read_sidecar_if_exists(environment.texts, operation_id)
        if known is None:
            continue
        keys = {pin.table_key for pin in known.pins} | set(known.read_versions)
        queues = queue_keys(frozenset(keys | known.schema.table_keys), known.branch or MAIN)
        if known.writer_kind is WriterKind.SCHEMA_APPLY:
            queues.append(SCHEMA_APPLY_KEY)
        guard = _acquire(environment, queues, wait_for)
        if guard is None:
            continue
        with guard:
            # A live writer has finished while we waited; then its sidecar is gone.
            sidecar = read_sidecar_if_exists(environment.texts, operation_id)
            if sidecar is not None:
                settled += _settle(environment, audit, sidecar, full=full)
    return settled


def _acquire(
    environment: WriteEnvironment,
    queues: Collection[QueueKey],
    wait_for: Collection[QueueKey] | None,
) -> Guard | None:
    """The queues of a sidecar; None when its writer is alive and is not to be waited for."""
    must_wait = wait_for is None or not set(queues).isdisjoint(wait_for)
    try:
        return environment.queues.acquire_many(queues, timeout_seconds=None if must_wait else 0.0)
    except ConflictError:
        return None


def _settle(
    environment: WriteEnvironment, audit: ControlTable, sidecar: Sidecar, *, full: bool
) -> bool:
    """Settle one sidecar; False when it has to wait for a read-write open."""
    if is_recorded(audit, sidecar.operation_id):
        # The row is written after every effect: of that recovery only this file is left.
        delete_sidecar(environment.texts, sidecar.operation_id)
        return True
    state = _state_of(environment, sidecar)
    if state is None:
        _discard_orphan(environment, audit, sidecar)
        return True
    found = look_at(environment.tables, state, sidecar)
    decision = _decision(environment, state, sidecar, found)
    hit(Failpoint.RECOVERY_AFTER_CLASSIFY)
    match decision:
        case Decision.ROLL_FORWARD:
            _roll_forward(environment, audit, sidecar, found)
        case Decision.SETTLED:
            _write_up(environment, audit, sidecar, found)
        case Decision.ROLL_BACK if full:
            _roll_back(environment, audit, sidecar, found)
        case Decision.ROLL_BACK:
            log.warning("sidecar %s needs a rollback: reopen read-write", sidecar.operation_id)
            return False
        case Decision.ABORT if full:
            broken = [f"'{f.pin.table_key}'" for f in found if f.seen.head < f.seen.pin]
            raise InvariantViolated(
                f"{', '.join(broken)} is behind its pin in the manifest: files are missing. "
                f"Sidecar {sidecar.operation_id} is kept — restore the files from a backup"
            )
        case Decision.ABORT:
            log.warning("sidecar %s names a table behind its pin", sidecar.operation_id)
            return False
    return True


def _state_of(environment: WriteEnvironment, sidecar: Sidecar) -> ManifestState | None:
    """The branch as it stands now; None when it is gone, or is another one of the same name."""
    branch = sidecar.branch or MAIN
    if branch not in environment.coordinator.branches():
        return None
    state = environment.coordinator.fresh(branch)
    if sidecar.branch_id is not None and state.native_id != sidecar.branch_id:
        return None
    return state


def _decision(
    environment: WriteEnvironment,
    state: ManifestState,
    sidecar: Sidecar,
    found: Sequence[Found],
) -> Decision:
    reads_moved = any(
        state.latest_version(key) != version for key, version in sidecar.read_versions.items()
    )
    head_moved = sidecar.if_commit is not None and state.head.commit_id != sidecar.if_commit
    if sidecar.writer_kind is WriterKind.SCHEMA_APPLY:
        return decide_schema_change(environment, state, sidecar, found, is_stale=reads_moved)
    return decide(
        [each.table_class for each in found],
        has_advanced=any(each.seen.pin > each.seen.expected for each in found),
        is_published=any(each.proved is RecoveryKind.ROLLED_FORWARD for each in found),
        is_stale=reads_moved or head_moved,
    )


def _roll_forward(
    environment: WriteEnvironment, audit: ControlTable, sidecar: Sidecar, found: Sequence[Found]
) -> None:
    """Publish what the writer committed, at the versions that were just classified."""
    # It may have died before its syncs: what is published now has to be on the disk.
    for each in found:
        environment.tables.flush(each.location, each.seen.head)
    record = _record(
        sidecar,
        RecoveryKind.ROLLED_FORWARD,
        [TableOutcome(f.pin.table_key, f.seen.expected, f.seen.head) for f in found],
    )
    pinned = {each.pin.table_key: each.pin.expected_version for each in found}
    _publish(
        environment,
        sidecar.branch or MAIN,
        [
            *(_pin_at(environment, each, each.seen.head) for each in found),
            *(_switched_pin(environment, sidecar, each) for each in sidecar.switches),
            *_schema_changes(environment, sidecar),
        ],
        expected={**sidecar.read_versions, **pinned},
        commits=_original_commit(sidecar, record) + _recovery_commit(record),
        if_commit=sidecar.if_commit,
        schema_hash=sidecar.schema.schema_hash,
    )
    _close(environment, audit, sidecar, record)


def _roll_back(
    environment: WriteEnvironment, audit: ControlTable, sidecar: Sidecar, found: Sequence[Found]
) -> None:
    """Bring back the pinned rows of every table that moved, and publish so that pin == HEAD."""
    moved = [each for each in found if each.table_class is not TableClass.NO_MOVEMENT]
    record = _record(
        sidecar,
        RecoveryKind.ROLLED_BACK,
        [TableOutcome(f.pin.table_key, f.seen.head, f.seen.pin) for f in moved],
    )
    pins = []
    for each in moved:
        restored = environment.tables.restore(
            each.location, each.seen.pin, operation_id=sidecar.operation_id
        )
        pins.append(_pin_at(environment, each, restored))
        hit(Failpoint.RECOVERY_AFTER_RESTORE)
    _publish(
        environment,
        sidecar.branch or MAIN,
        pins,
        expected={each.pin.table_key: each.seen.pin for each in moved},
        commits=_recovery_commit(record),
    )
    _close(environment, audit, sidecar, record)


def _write_up(
    environment: WriteEnvironment, audit: ControlTable, sidecar: Sidecar, found: Sequence[Found]
) -> None:
    """The tables are settled already: only the paperwork is missing."""
    outcomes = []
    kind = RecoveryKind.ROLLED_BACK
    for each in found:
        # Nothing proves what an older writer's sidecar led to: the pin moved, so it was published.
        is_provable = bool(each.pin.transaction_uuids)
        outcome = each.proved if is_provable else RecoveryKind.ROLLED_FORWARD
        if outcome is RecoveryKind.ROLLED_FORWARD:
            kind = outcome
            outcomes.append(TableOutcome(each.pin.table_key, each.seen.expected, each.seen.pin))
        elif outcome is RecoveryKind.ROLLED_BACK:
            outcomes.append(TableOutcome(each.pin.table_key, each.seen.pin, each.seen.expected))
    if sidecar.writer_kind is WriterKind.SCHEMA_APPLY:
        state = environment.coordinator.fresh(sidecar.branch or MAIN)
        if is_published(state, sidecar):
            kind = RecoveryKind.ROLLED_FORWARD
    record = _record(sidecar, kind, outcomes)
    _publish(environment, sidecar.branch or MAIN, [], expected={}, commits=_recovery_commit(record))
    _close(environment, audit, sidecar, record)


def _discard_orphan(environment: WriteEnvironment, audit: ControlTable, sidecar: Sidecar) -> None:
    """The branch is gone, and with it every way to see the write."""
    hit(Failpoint.RECOVERY_ORPHAN_DISCARD_AUDIT_APPEND)
    record = _record(sidecar, RecoveryKind.ORPHANED_BRANCH_DISCARDED, [])
    _publish(environment, MAIN, [], expected={}, commits=_recovery_commit(record))
    _close(environment, audit, sidecar, record)


def _publish(
    environment: WriteEnvironment,
    branch: str,
    changes: Sequence[Change],
    *,
    expected: Mapping[str, int],
    commits: tuple[Lineage, ...],
    if_commit: str | None = None,
    schema_hash: str | None = None,
) -> None:
    with publish_turn(environment, branch):
        publish(
            environment.coordinator,
            Publish(branch, tuple(changes), expected, commits, if_commit, schema_hash),
        )
    hit(Failpoint.RECOVERY_AFTER_PUBLISH)


def _pin_at(environment: WriteEnvironment, each: Found, version: int) -> UpdatePin:
    # A branch that was deleted and made again may use a version number twice: the operation's own
    # incarnation keeps a handle of the other one out.
    handle = environment.tables.open_at(
        each.location, version, incarnation=next(iter(each.pin.transaction_uuids), None)
    )
    return pin_of_handle(environment.tables, each.pin.table_key, handle)


def _schema_changes(environment: WriteEnvironment, sidecar: Sidecar) -> Iterator[Change]:
    state = environment.coordinator.fresh(sidecar.branch or MAIN)
    return schema_changes(environment, state, sidecar)


def _switched_pin(
    environment: WriteEnvironment, sidecar: Sidecar, switch: SidecarSwitch
) -> UpdatePin:
    entry = environment.coordinator.fresh(sidecar.branch or MAIN).entries[switch.table_key]
    location = environment.tables.root.table(entry.table_path, switch.table_branch)
    handle = environment.tables.open_at(location, switch.version, incarnation=sidecar.operation_id)
    return pin_of_handle(environment.tables, switch.table_key, handle)


def _record(
    sidecar: Sidecar, kind: RecoveryKind, outcomes: Sequence[TableOutcome]
) -> RecoveryRecord:
    return RecoveryRecord(
        commit_id=str(ULID()),
        kind=kind,
        for_actor=sidecar.actor_id,
        operation_id=sidecar.operation_id,
        writer_kind=sidecar.writer_kind.value,
        outcomes=tuple(outcomes),
        created_at=time.time_ns() // 1_000,
    )


def _original_commit(sidecar: Sidecar, record: RecoveryRecord) -> tuple[Lineage, ...]:
    """The commit the writer had announced, under the id and actor it was announced with."""
    if sidecar.commit_id is None:
        return ()
    return (
        Lineage(
            sidecar.commit_id,
            sidecar.actor_id,
            created_at=record.created_at,
            merged_parent_id=sidecar.merge_source_commit_id,
            properties=sidecar.commit_properties,
        ),
    )


def _recovery_commit(record: RecoveryRecord) -> tuple[Lineage, ...]:
    return (Lineage(record.commit_id, RECOVERY_ACTOR, created_at=record.created_at),)


def _close(
    environment: WriteEnvironment, audit: ControlTable, sidecar: Sidecar, record: RecoveryRecord
) -> None:
    if sidecar.writer_kind is WriterKind.SCHEMA_APPLY:
        if record.kind is RecoveryKind.ROLLED_FORWARD:
            complete_schema_change(environment, sidecar)
        else:
            undo_schema_change(environment, environment.coordinator.fresh(MAIN), sidecar)
    record_recovery(audit, record)
    delete_sidecar(environment.texts, sidecar.operation_id)
    log.info("sidecar %s: %s", sidecar.operation_id, record.kind)
