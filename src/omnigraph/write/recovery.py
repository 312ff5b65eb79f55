"""Recovery: finish or undo what a dead writer left, so that the graph is whole again.

Invariant: every write named by a sidecar ends all-or-nothing, is audited exactly once, and leaves
pin == HEAD on every table it named. The sidecar goes last. Nothing else is remembered between
steps: a recovery that dies is simply run again and classifies anew.

    where                               what it may do
    read-write open                     everything: `settle_all(full=True)`
    entry of a write, refresh           everything, where a queue is a lock of the system;
                                        elsewhere what needs a restore waits for an open
    the protocol, when a write fails    `undo` of that very write
    read-only open                      nothing

All take, or hold, the queues that the writer holds from before its sidecar until after it, so a
live writer is waited for and never undone. That matters most for a restore: Lance lets it win
over commits in flight. On a store without locks of the system a held queue says nothing of other
processes, so there a handle that is at work does not restore.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from ulid import ULID

from omnigraph.errors import ConflictError, InvariantViolated, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import (
    MAIN,
    GraphCommit,
    Lineage,
    ManifestState,
    Publish,
    UpdatePin,
    publish,
)
from omnigraph.manifest.model import Change
from omnigraph.manifest.schema_files import discard
from omnigraph.storage.queues import SCHEMA_APPLY_KEY, Guard, QueueKey
from omnigraph.write.audit import (
    RecoveryKind,
    RecoveryRecord,
    TableOutcome,
    is_recorded,
    record_recovery,
)
from omnigraph.write.classify import Decision, TableClass, decide
from omnigraph.write.drift import UnsettledWrite
from omnigraph.write.environment import (
    BRANCHES_QUEUE,
    WriteEnvironment,
    publish_turn,
    queue_keys,
)
from omnigraph.write.evidence import Found, look_at
from omnigraph.write.pins import pin_of_handle
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

_T = TypeVar("_T")

log = logging.getLogger("omnigraph.recovery")


def settle_all(
    environment: WriteEnvironment,
    *,
    full: bool,
    wait_for: Collection[QueueKey] | None = None,
) -> int:
    """Settle every sidecar there is, oldest first; returns how many were.

    With nothing to do this costs one listing. With `full` unset, a write that needs a restore is
    left for the next read-write open where no lock of the system proves that its writer is dead.
    A write names in `wait_for` the queues it will take itself: a live writer of other tables or
    branches is then left alone instead of waited for.

    Raises:
        RecoveryRequired: A sidecar is damaged, foreign or newer than this Omnigraph. It stays.
        InvariantViolated: A table is behind its pin. The sidecar stays for somebody to look at.
    """
    settled = 0
    for operation_id in list_sidecars(environment.texts):
        known = read_sidecar_if_exists(environment.texts, operation_id)
        if known is None:
            continue
        guard = _acquire(environment, queues_of(known), wait_for)
        if guard is None:
            continue
        with guard:
            # A live writer has finished while we waited; then its sidecar is gone.
            sidecar = read_sidecar_if_exists(environment.texts, operation_id)
            if sidecar is not None:
                settled += _settle(environment, sidecar, full=full)
    return settled


def queues_of(sidecar: Sidecar) -> list[QueueKey]:
    """Every queue that the writer of a sidecar holds while it is alive."""
    moved = {pin.table_key for pin in sidecar.pins} | {each.table_key for each in sidecar.switches}
    keys = moved | set(sidecar.read_versions) | sidecar.schema.table_keys
    queues = queue_keys(frozenset(keys), sidecar.branch or MAIN)
    if sidecar.merge_source_branch is not None:
        queues += queue_keys(frozenset(moved), sidecar.merge_source_branch)
    if sidecar.writer_kind is WriterKind.SCHEMA_APPLY:
        queues += [(BRANCHES_QUEUE, None), SCHEMA_APPLY_KEY]
    return queues


def with_settled_tables(
    environment: WriteEnvironment, queues: Collection[QueueKey] | None, work: Callable[[], _T]
) -> _T:
    """Do `work`; when it meets what a writer left that died meanwhile, settle that and try again.

    The heal at the entry of a write cannot know of a writer that dies later, while the write waits
    for its `queues` (None: any).
    """
    try:
        return work()
    except UnsettledWrite:
        settle_all(environment, full=False, wait_for=queues)
        return work()


def undo(environment: WriteEnvironment, sidecar: Sidecar) -> None:
    """Undo a write that has failed and is not published. The caller is its writer.

    The queues of the write are held, and the turn to publish is not. When this returns, the write
    will never be finished; paperwork that could not be done is left to the next recovery.
    """
    state = _state_of(environment, sidecar)
    if state is None:
        _discard_orphan(environment, sidecar)
        return
    if sidecar.writer_kind is WriterKind.SCHEMA_APPLY:
        # First of all: tables that are restored beside a complete schema would look ready for it.
        discard(environment.texts)
    found = look_at(environment.tables, state, sidecar)
    if any(each.table_class is TableClass.INVARIANT_VIOLATION for each in found):
        raise _behind(sidecar, found)
    record = _restore(environment, sidecar, found)
    try:
        _close(environment, sidecar, record)
    except OmnigraphError as error:
        log.warning("sidecar %s is undone, but stays: %s", sidecar.operation_id, error)


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


def _settle(environment: WriteEnvironment, sidecar: Sidecar, *, full: bool) -> bool:
    """Settle one sidecar; False when it has to wait for a read-write open."""
    if is_recorded(environment.audit, sidecar.operation_id):
        # The row is written after every effect: of that recovery only this file is left.
        delete_sidecar(environment.texts, sidecar.operation_id)
        return True
    state = _state_of(environment, sidecar)
    if state is None:
        _discard_orphan(environment, sidecar)
        return True
    found = look_at(environment.tables, state, sidecar)
    decision = _decision(environment, state, sidecar, found)
    hit(Failpoint.RECOVERY_AFTER_CLASSIFY)
    match decision:
        case Decision.ROLL_FORWARD:
            _roll_forward(environment, sidecar, found)
        case Decision.SETTLED:
            _write_up(environment, sidecar, found)
        case Decision.ROLL_BACK if full or environment.has_system_locks:
            _roll_back(environment, sidecar, found)
        case Decision.ROLL_BACK:
            log.warning("sidecar %s needs a rollback at an open", sidecar.operation_id)
            return False
        case Decision.ABORT if full:
            raise _behind(sidecar, found)
        case Decision.ABORT:
            log.warning("sidecar %s names a table behind its pin", sidecar.operation_id)
            return False
    return True


def _behind(sidecar: Sidecar, found: Sequence[Found]) -> InvariantViolated:
    broken = [f"'{each.pin.table_key}'" for each in found if each.seen.head < each.seen.pin]
    return InvariantViolated(
        f"{', '.join(broken)} is behind its pin in the manifest: files are missing. "
        f"Sidecar {sidecar.operation_id} is kept — restore the files from a backup"
    )


def _state_of(environment: WriteEnvironment, sidecar: Sidecar) -> ManifestState | None:
    """The branch as it stands now; None when it is gone, or is another one of the same name."""
    branch = sidecar.branch or MAIN
    if branch not in environment.coordinator.branches():
        return None
    state = environment.coordinator.fresh(branch)
    if sidecar.branch_id is not None and state.branch_id != sidecar.branch_id:
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


def _roll_forward(environment: WriteEnvironment, sidecar: Sidecar, found: Sequence[Found]) -> None:
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
        schema_id=sidecar.schema.schema_id,
        ancestors=sidecar.ancestors,
    )
    _close(environment, sidecar, record)


def _roll_back(environment: WriteEnvironment, sidecar: Sidecar, found: Sequence[Found]) -> None:
    _close(environment, sidecar, _restore(environment, sidecar, found))


def _restore(
    environment: WriteEnvironment, sidecar: Sidecar, found: Sequence[Found]
) -> RecoveryRecord:
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
    return record


def _write_up(environment: WriteEnvironment, sidecar: Sidecar, found: Sequence[Found]) -> None:
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
    _close(environment, sidecar, record)


def _discard_orphan(environment: WriteEnvironment, sidecar: Sidecar) -> None:
    """The branch is gone, and with it every way to see the write."""
    hit(Failpoint.RECOVERY_ORPHAN_DISCARD_AUDIT_APPEND)
    record = _record(sidecar, RecoveryKind.ORPHANED_BRANCH_DISCARDED, [])
    _publish(environment, MAIN, [], expected={}, commits=_recovery_commit(record))
    _close(environment, sidecar, record)


def _publish(
    environment: WriteEnvironment,
    branch: str,
    changes: Sequence[Change],
    *,
    expected: Mapping[str, int],
    commits: tuple[Lineage, ...],
    if_commit: str | None = None,
    schema_hash: str | None = None,
    schema_id: str | None = None,
    ancestors: tuple[GraphCommit, ...] = (),
) -> None:
    with publish_turn(environment, branch):
        publish(
            environment.coordinator,
            Publish(
                branch,
                tuple(changes),
                expected,
                commits,
                if_commit,
                schema_hash,
                schema_id,
                ancestors,
            ),
        )
    hit(Failpoint.RECOVERY_AFTER_PUBLISH)


def _pin_at(environment: WriteEnvironment, each: Found, version: int) -> UpdatePin:
    # A branch that was deleted and made again may use a version number twice: the operation's own
    # incarnation keeps a handle of the other one out.
    handle = environment.tables.open_at(
        each.location, version, incarnation=next(iter(each.pin.transaction_uuids), None)
    )
    return pin_of_handle(each.pin.table_key, handle)


def _schema_changes(environment: WriteEnvironment, sidecar: Sidecar) -> Iterator[Change]:
    state = environment.coordinator.fresh(sidecar.branch or MAIN)
    return schema_changes(environment, state, sidecar)


def _switched_pin(
    environment: WriteEnvironment, sidecar: Sidecar, switch: SidecarSwitch
) -> UpdatePin:
    entry = environment.coordinator.fresh(sidecar.branch or MAIN).entries[switch.table_key]
    location = environment.tables.root.table(entry.table_path, switch.table_branch)
    handle = environment.tables.open_at(location, switch.version, incarnation=sidecar.operation_id)
    return pin_of_handle(switch.table_key, handle)


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


def _close(environment: WriteEnvironment, sidecar: Sidecar, record: RecoveryRecord) -> None:
    if sidecar.writer_kind is WriterKind.SCHEMA_APPLY:
        if record.kind is RecoveryKind.ROLLED_FORWARD:
            complete_schema_change(environment, sidecar)
        else:
            undo_schema_change(environment, environment.coordinator.fresh(MAIN), sidecar)
    record_recovery(environment.audit, record)
    delete_sidecar(environment.texts, sidecar.operation_id)
    log.info("sidecar %s: %s", sidecar.operation_id, record.kind)
