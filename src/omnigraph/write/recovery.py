"""Recovery: finish or undo what a dead writer left, so that the graph is whole again.

Invariant: every write named by a sidecar ends all-or-nothing, is audited exactly once, and leaves
pin == HEAD on every table it named. The sidecar goes last. Nothing else is remembered between
steps: a recovery that dies is run again and classifies anew.

    where                               what it may do
    read-write open                     everything: `recover_all(full=True)`
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
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from omnigraph.errors import ConflictError, InvariantViolated, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import MAIN, ManifestState
from omnigraph.manifest.schema_files import discard
from omnigraph.storage.queues import SCHEMA_APPLY_KEY, Guard, QueueKey
from omnigraph.write.audit import RecoveryKind, is_recorded
from omnigraph.write.classify import Decision, TableClass, decide
from omnigraph.write.drift import UnfinishedWrite
from omnigraph.write.environment import BRANCHES_QUEUE, WriteEnvironment, queue_keys
from omnigraph.write.evidence import Found, inspect_tables
from omnigraph.write.recovery_actions import RecoveryActions
from omnigraph.write.schema_recovery import decide_schema_change
from omnigraph.write.sidecar import Sidecar
from omnigraph.write.sidecar_files import (
    delete_sidecar,
    is_alive,
    list_sidecars,
    read_sidecar_if_exists,
)

_T = TypeVar("_T")

log = logging.getLogger("omnigraph.recovery")


def recover_all(
    environment: WriteEnvironment,
    *,
    full: bool,
    wait_for: Collection[QueueKey] | None = None,
) -> int:
    """Recover every write that left a sidecar, oldest first; returns how many.

    With nothing to do this costs one listing. With `full` unset, a write that needs a restore is
    left for the next read-write open where no lock of the system proves that its writer is dead.
    A write names in `wait_for` the queues it will take itself: a live writer of other tables or
    branches, or of this process, is then left alone instead of waited for.

    Raises:
        RecoveryRequired: A sidecar is damaged, foreign or newer than this Omnigraph. It stays.
        InvariantViolated: A table is behind its pin. The sidecar stays as evidence.
    """
    recovered = 0
    for operation_id in list_sidecars(environment.texts):
        if wait_for is not None and is_alive(operation_id):
            continue  # the queues are waited for when they are taken
        known = read_sidecar_if_exists(environment.texts, operation_id)
        if known is None:
            continue
        guard = _acquire(environment, list_queues(known), wait_for)
        if guard is None:
            continue
        with guard:
            # A live writer has finished while we waited; then its sidecar is gone.
            sidecar = read_sidecar_if_exists(environment.texts, operation_id)
            if sidecar is not None:
                recovered += _recover(environment, sidecar, full=full)
    return recovered


def list_queues(sidecar: Sidecar) -> list[QueueKey]:
    """Every queue that the writer of a sidecar holds while it is alive."""
    moved = {pin.table_key for pin in sidecar.pins} | {each.table_key for each in sidecar.switches}
    keys = moved | set(sidecar.read_versions) | sidecar.schema.table_keys
    queues = queue_keys(keys, sidecar.branch or MAIN)
    if sidecar.merge_source_branch is not None:
        queues += queue_keys(moved, sidecar.merge_source_branch)
    if sidecar.changes_schema:
        queues += [(BRANCHES_QUEUE, None), SCHEMA_APPLY_KEY]
    return queues


def retry_after_recovery(
    environment: WriteEnvironment, queues: Collection[QueueKey] | None, work: Callable[[], _T]
) -> _T:
    """Do `work`; when it meets what a dead writer left, recover that and try again.

    Recovery at the entry of a write cannot know of a writer that dies later, while the write waits
    for its `queues` (None: any).
    """
    try:
        return work()
    except UnfinishedWrite:
        recover_all(environment, full=False, wait_for=queues)
        return work()


def undo(environment: WriteEnvironment, sidecar: Sidecar, *, is_recorded: bool = True) -> None:
    """Undo a write that has failed and is not published. The caller is its writer.

    The queues of the write are held, and the turn to publish is not. When this returns, the write
    will never be finished; records that could not be written are left to the next recovery. A write
    that was refused, not broken off, is undone without a record.
    """
    state, actions = _state_of(environment, sidecar), RecoveryActions(environment, sidecar)
    if state is None:
        actions.discard_orphan()
        return
    if sidecar.stages_schema_files:
        # First of all: tables that are restored beside a complete schema would look ready for it.
        discard(environment.texts)
    found = inspect_tables(environment.tables, state, sidecar)
    if any(each.table_class is TableClass.INVARIANT_VIOLATION for each in found):
        raise _behind(sidecar, found)
    record = actions.restore(found, is_recorded=is_recorded)
    try:
        if is_recorded:
            actions.close(record)
        else:
            delete_sidecar(environment.texts, sidecar.operation_id)
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


def _recover(environment: WriteEnvironment, sidecar: Sidecar, *, full: bool) -> bool:
    """Recover one write; False when it has to wait for a read-write open."""
    if is_recorded(environment.audit, sidecar.operation_id):
        # The row is written after every effect: of that recovery only this file is left.
        delete_sidecar(environment.texts, sidecar.operation_id)
        return True
    state, actions = _state_of(environment, sidecar), RecoveryActions(environment, sidecar)
    if state is None:
        actions.discard_orphan()
        return True
    found = inspect_tables(environment.tables, state, sidecar)
    decision = _decision(environment, state, sidecar, found)
    hit(Failpoint.RECOVERY_AFTER_CLASSIFY)
    match decision:
        case Decision.ROLL_FORWARD:
            actions.roll_forward(found)
        case Decision.RECOVERED:
            actions.write_up(found)
        case Decision.ROLL_BACK if full or environment.has_system_locks:
            actions.roll_back(found)
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
    if sidecar.branch_id is not None and state.incarnation != sidecar.branch_id:
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
    if sidecar.changes_schema:
        return decide_schema_change(environment, state, sidecar, found, is_stale=reads_moved)
    return decide(
        [each.table_class for each in found],
        has_advanced=any(each.seen.pin > each.seen.expected for each in found),
        is_published=any(each.proof is RecoveryKind.ROLLED_FORWARD for each in found),
        is_stale=reads_moved or head_moved,
    )
