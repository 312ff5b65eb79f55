"""Commit: make every table of one write visible together, or not at all.

Invariant: a reader reaches a table version only through a pin in the manifest, a pin only names a
version that is durable, and no HEAD moves before a sidecar covers it.

    phase                      durable afterwards      a crash here leaves
    A  write_sidecar           the intent              no effect; recovery drops the sidecar
    B  tables.commit_staged    HEADs, one by one       drift that the sidecar names
    C  publish                 every pin at once       the commit, visible
    D  delete_sidecar          nothing more            a clean graph

A write is prepared and staged without any lock. The queues of every table it may write or must
trust are held from the last look at the manifest until the sidecar is gone, so on one machine
nothing it relied on can move in between.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from ulid import ULID

from omnigraph.errors import (
    ConflictError,
    ExpectedVersionMismatch,
    HeadMoved,
    InvariantViolated,
    OmnigraphError,
    PreconditionFailed,
    RecoveryRequired,
    SchemaMoved,
    StorageError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import (
    MAIN,
    Coordinator,
    GraphCommit,
    Lineage,
    ManifestState,
    Publish,
    Snapshot,
    TableEntry,
    UpdatePin,
    publish,
)
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.handles import CommittedVersion, StagedTransaction, TableHandle
from omnigraph.storage.queues import Guard, QueueKey, WriterQueues
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import fork_for_write, open_pin
from omnigraph.write.sidecar import (
    Sidecar,
    SidecarPin,
    WriterKind,
    delete_sidecar,
    list_sidecars,
    read_sidecar_if_exists,
    write_sidecar,
)
from omnigraph.write.touched import TouchedTables

PUBLISH_QUEUE = "__publish__"
"""Held around a publish, after the table queues: publishes of one branch take turns."""

log = logging.getLogger("omnigraph.write")


@dataclass(frozen=True, slots=True)
class WriteEnvironment:
    """What a write works with. Holds no state of its own: all of it is in storage.

    `schema_hash` names the schema that the write was checked against, when that is known.
    `foresee` is told which versions a branch is about to show; it reads, and never fails.
    """

    tables: TableStorage
    texts: GraphTexts
    coordinator: Coordinator
    queues: WriterQueues
    schema_hash: str | None = None
    foresee: Callable[[str, Sequence[UpdatePin]], None] = lambda _branch, _pins: None


class PreparedWrite(Protocol):
    """A change that is computed and checked over one snapshot; nothing is committed yet."""

    @property
    def read_versions(self) -> Mapping[str, int]:
        """The version of every table the change was computed or checked from."""

    @property
    def is_strict(self) -> bool:
        """Whether the write must fail, instead of being prepared again, when one of them moved."""

    def changed(self) -> Mapping[str, TableEntry]:
        """The pin of every table that will be written."""

    def stage(self, handles: Mapping[str, TableHandle]) -> Mapping[str, StagedTransaction]:
        """Write the files of each changed table: one transaction each, no HEAD moves."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write. `prepare` computes and checks the change over a snapshot, without effects."""

    kind: WriterKind
    branch: str
    actor: str | None
    touched: TouchedTables
    prepare: Callable[[Snapshot], PreparedWrite]
    if_commit: str | None = None
    properties: Callable[[], Mapping[str, Any]] = dict
    """What the commit will say of itself; asked for when the change is final."""


def queue_keys(table_keys: frozenset[str], branch: str) -> list[QueueKey]:
    return [(key, lane_of(branch)) for key in table_keys]


def lane_of(branch: str) -> str | None:
    """The Lance branch that a graph branch's tables are written on."""
    return None if branch == MAIN else branch


def run_write(environment: WriteEnvironment, request: WriteRequest) -> GraphCommit | None:
    """Take a write from request to acknowledgement; None when it changes nothing.

    Raises:
        ExpectedVersionMismatch: A table that decided the write moved first. Nothing is visible.
        PreconditionFailed: The head is not `if_commit`. Nothing is visible.
    """
    prepared, seen = _prepare(environment.coordinator, request)
    if not prepared.changed() and request.if_commit is None:
        return None
    staged = _stage_without_lock(environment, request, prepared)
    with ExitStack() as held:
        held.enter_context(
            environment.queues.acquire_many(queue_keys(request.touched.all, request.branch))
        )
        if request.if_commit is not None:
            # From here on the head cannot move, so the condition still holds at the publish.
            held.enter_context(publish_turn(environment, request.branch))
        state = environment.coordinator.fresh(request.branch)
        _refuse_other_schema(environment, state)
        if request.if_commit is not None and state.head.commit_id != request.if_commit:
            raise PreconditionFailed(expected=request.if_commit, actual=state.head.commit_id)
        if _has_moved(prepared, seen, state):
            prepared, staged = request.prepare(state.snapshot()), None
        if not prepared.changed():
            return None
        check_heads(environment, request.branch, prepared.changed())
        if staged is None:
            staged = prepared.stage(
                {
                    key: fork_for_write(
                        environment.tables, environment.coordinator, entry, request.branch
                    )
                    for key, entry in prepared.changed().items()
                }
            )
        sidecar = _sidecar_of(request, prepared, staged, state)
        return _commit_staged_write(environment, request, sidecar, staged, held)


def _refuse_other_schema(environment: WriteEnvironment, state: ManifestState) -> None:
    """Refuse rows that were made for a schema which the tables are not in any more."""
    checked, accepted = environment.schema_hash, state.schema_hash
    if checked is not None and accepted is not None and checked != accepted:
        raise SchemaMoved("the schema was changed meanwhile — nothing was written; try again")


def _prepare(
    coordinator: Coordinator, request: WriteRequest
) -> tuple[PreparedWrite, ManifestState]:
    """Prepare over the state this handle knows, which costs no look at the store.

    "Refused" and "matches nothing" end the write here, so they must not come from an old state:
    what another handle has acknowledged meanwhile counts.
    """
    seen = coordinator.last_seen(request.branch)
    try:
        prepared = request.prepare(seen.snapshot())
        if prepared.changed() or coordinator.fresh(request.branch) is seen:
            return prepared, seen
    except OmnigraphError:
        if coordinator.fresh(request.branch) is seen:
            raise
    seen = coordinator.last_seen(request.branch)
    return request.prepare(seen.snapshot()), seen


def _stage_without_lock(
    environment: WriteEnvironment, request: WriteRequest, prepared: PreparedWrite
) -> Mapping[str, StagedTransaction] | None:
    """Stage at the pins, or nothing yet when a table has to be forked first."""
    entries = prepared.changed()
    if not all(owns_lineage(request.branch, each.table_branch) for each in entries.values()):
        return None
    return prepared.stage(
        {key: open_pin(environment.tables, entry) for key, entry in entries.items()}
    )


def _has_moved(prepared: PreparedWrite, seen: ManifestState, now: ManifestState) -> bool:
    """Whether a table the write looked at has moved; a strict write fails when one has."""
    if seen.native_id != now.native_id:
        # Another branch of the same name: its version numbers may repeat, its rows do not.
        if prepared.is_strict:
            raise ConflictError(
                f"branch '{now.branch}' was deleted and made again since this handle read it — "
                "nothing was written; retry"
            )
        return True
    for table_key, expected in sorted(prepared.read_versions.items()):
        actual = now.snapshot().version_of(table_key)
        if actual != expected:
            if prepared.is_strict:
                raise ExpectedVersionMismatch(table_key, expected=expected, actual=actual)
            return True
    return False


def check_heads(
    environment: WriteEnvironment, branch: str, entries: Mapping[str, TableEntry]
) -> None:
    """Refuse to write on a table whose HEAD is not its pin: somebody's unfinished work is there."""
    for key, entry in sorted(entries.items()):
        if not owns_lineage(branch, entry.table_branch):
            continue
        location = environment.tables.root.table(entry.table_path, entry.table_branch)
        head = environment.tables.head_version(location)
        if head < entry.version:
            raise InvariantViolated(
                f"table '{key}' has Lance HEAD version {head} behind manifest version "
                f"{entry.version} — files are missing; restore them from a backup"
            )
        if head > entry.version:
            drift = (
                f"table '{key}' has Lance HEAD version {head} ahead of manifest version "
                f"{entry.version}; "
            )
            raise _unfinished(environment, key, entry.table_branch, drift)


def _unfinished(
    environment: WriteEnvironment, table_key: str, table_branch: str | None, drift: str
) -> OmnigraphError:
    """What to say of a HEAD that is ahead: a write that recovery has to undo, or real drift."""
    try:
        for operation_id in list_sidecars(environment.texts):
            sidecar = read_sidecar_if_exists(environment.texts, operation_id)
            if sidecar is not None and any(
                pin.table_key == table_key and pin.table_branch == table_branch
                for pin in sidecar.pins
            ):
                return RecoveryRequired(
                    f"{drift}a pending recovery sidecar requires rollback — reopen the graph "
                    "read-write (e.g. restart the server) to recover",
                    operation_id=operation_id,
                )
    except OmnigraphError as error:
        return ConflictError(
            f"{drift}recovery sidecars could not be read ({error}) — reopen the graph read-write, "
            "or run `omnigraph repair` when no sidecar is pending"
        )
    return ConflictError(f"{drift}run `omnigraph repair` before writing")


def _commit_staged_write(
    environment: WriteEnvironment,
    request: WriteRequest,
    sidecar: Sidecar,
    staged: Mapping[str, StagedTransaction],
    held: ExitStack,
) -> GraphCommit:
    """Phases A to D. The caller holds every queue the write needs."""
    assert sidecar.commit_id is not None
    hit(Failpoint.COMMIT_AFTER_STAGE)
    write_sidecar(environment.texts, sidecar)
    # No `try/finally` from here on. When B or C fails the sidecar has to stay: it alone tells our
    # half-moved HEADs from damage, and recovery needs it to finish or undo them.
    pins = _commit_tables(environment, sidecar, staged)
    hit(Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER)
    environment.foresee(request.branch, pins)
    if request.if_commit is None:
        held.enter_context(publish_turn(environment, request.branch))
    lineage = Lineage(
        sidecar.commit_id,
        request.actor,
        created_at=sidecar.started_at,
        properties=sidecar.commit_properties,
    )
    intent = Publish(
        branch=request.branch,
        changes=tuple(pins),
        expected=sidecar.read_versions,
        commits=(lineage,),
        if_commit=request.if_commit,
    )
    try:
        state = publish(environment.coordinator, intent)
    except StorageError as error:
        raise _unsettled(sidecar, error) from error
    finish(environment, sidecar.operation_id)
    return state.head


def _commit_tables(
    environment: WriteEnvironment, sidecar: Sidecar, staged: Mapping[str, StagedTransaction]
) -> list[UpdatePin]:
    """Phase B. A failure before any HEAD moved takes the intent back; after that it is too late."""
    pins: list[UpdatePin] = []
    for key, transaction in staged.items():
        try:
            committed = environment.tables.commit_staged(
                transaction, operation_id=sidecar.operation_id
            )
        except (StorageError, ConflictError) as error:
            was_refused = isinstance(error, ConflictError)  # and so certainly not committed
            if not pins and (was_refused or _is_unmoved(environment.tables, transaction)):
                finish(environment, sidecar.operation_id)
            elif not was_refused:
                raise _unsettled(sidecar, error) from error
            if isinstance(error, HeadMoved):
                raise ExpectedVersionMismatch(
                    key, expected=error.expected, actual=error.actual
                ) from error
            raise
        pins.append(pin_of(key, committed))
        hit(Failpoint.COMMIT_AFTER_TABLE)
    return pins


def _is_unmoved(tables: TableStorage, transaction: StagedTransaction) -> bool:
    """Whether the version after the one the write was staged on is certainly not of this write."""
    try:
        return tables.head_version(transaction.location) == transaction.read_version
    except OmnigraphError:
        return False


def _unsettled(sidecar: Sidecar, error: OmnigraphError) -> RecoveryRequired:
    """The store failed with HEADs moved: recovery will finish the write, or undo it."""
    return RecoveryRequired(
        f"{error.message}. The write was under way and may still take effect: do not repeat it "
        "before the graph is reopened read-write, which finishes or undoes it",
        operation_id=sidecar.operation_id,
    )


def finish(environment: WriteEnvironment, operation_id: str) -> None:
    """Phase D. The write is published: a sidecar that stays is only a chore for the next open."""
    try:
        delete_sidecar(environment.texts, operation_id)
    except OmnigraphError as error:
        log.warning("sidecar %s could not be deleted: %s", operation_id, error)


def publish_turn(environment: WriteEnvironment, branch: str) -> Guard:
    """Wait for the turn to publish on a branch. Table queues are taken before it, never after."""
    return environment.queues.acquire_many([(PUBLISH_QUEUE, lane_of(branch))])


def pin_of(table_key: str, committed: CommittedVersion) -> UpdatePin:
    """The pin that shows a committed version."""
    return UpdatePin(
        table_key=table_key,
        version=committed.version,
        table_branch=committed.location.branch,
        row_count=committed.row_count,
        manifest_path=committed.manifest_path,
        transaction_uuid=committed.transaction_uuid,
    )


def pin_of_handle(tables: TableStorage, table_key: str, handle: TableHandle) -> UpdatePin:
    """The pin that shows the version of an open table."""
    state = tables.table_state(handle)
    return UpdatePin(
        table_key=table_key,
        version=handle.version,
        table_branch=handle.location.branch,
        row_count=state.row_count,
        manifest_path=state.manifest_path,
        transaction_uuid=state.transaction_uuid,
    )


def _sidecar_of(
    request: WriteRequest,
    prepared: PreparedWrite,
    staged: Mapping[str, StagedTransaction],
    state: ManifestState,
) -> Sidecar:
    """The whole intent, with every id minted, so that recovery can finish exactly this write."""
    return Sidecar(
        operation_id=str(ULID()),
        writer_kind=request.kind,
        started_at=time.time_ns() // 1_000,
        branch=lane_of(request.branch),
        actor_id=request.actor,
        commit_id=str(ULID()),
        branch_id=state.native_id,
        read_versions=dict(prepared.read_versions),
        if_commit=request.if_commit,
        commit_properties=dict(request.properties()),
        pins=tuple(
            SidecarPin(
                table_key=key,
                table_path=transaction.location.uri,
                expected_version=prepared.read_versions[key],
                post_commit_pin=transaction.read_version + 1,
                table_branch=transaction.location.branch,
                transaction_uuids=(transaction.uuid,),
            )
            for key, transaction in staged.items()
        ),
    )
