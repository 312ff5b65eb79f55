"""Commit: from a request to a write that is ready, and from there through the protocol.

A write is prepared and staged without any lock. The queues of every table it may write or must
trust are held from the last look at the manifest until the sidecar is gone, so on one machine
nothing it relied on can move in between. What happens with the queues held is `protocol.py`.

A write that only inserts takes the queues first. Where several of them are under way for one
table, all but one
would be prepared and staged in vain, and again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from typing import Any, Protocol

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    ConflictError,
    ExpectedVersionMismatch,
    OmnigraphError,
    PreconditionFailed,
    SchemaMoved,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import GraphCommit, ManifestState, Snapshot, TableEntry
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.durability import put_off_syncs
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.queues import QueueKey
from omnigraph.write.drift import check_heads
from omnigraph.write.environment import WriteEnvironment, publish_turn, queue_keys
from omnigraph.write.fork import fork_for_write, open_pin
from omnigraph.write.intent import Intent, TableCommits, mint_commit, to_commit_step
from omnigraph.write.protocol import carry_out
from omnigraph.write.recovery import retry_after_recovery
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.touched import TouchedTables


class PreparedWrite(Protocol):
    """A change that is computed and checked over one snapshot; nothing is committed yet."""

    @property
    def read_versions(self) -> Mapping[str, int]:
        """The version of every table the change was computed or checked from."""

    @property
    def is_strict(self) -> bool:
        """Whether the write must fail, instead of being prepared again, when one of them moved."""

    def list_pins(self) -> Mapping[str, TableEntry]:
        """The pin of every table that will be written."""

    def stage(self, handles: Mapping[str, TableHandle]) -> Mapping[str, StagedTransaction]:
        """Write the files of each changed table: one transaction each, no HEAD moves."""


class PreparedInserts(PreparedWrite, Protocol):
    """A change that only adds rows."""

    def list_new_rows(self) -> Mapping[str, pa.Table]:
        """The rows to add to each table, when none of them is there already."""


@dataclass(frozen=True, slots=True)
class Inserts:
    """What a group has to know of a write that only inserts.

    `ids` are those of all of its rows, by table. `prepare` is given the rows, by table, that
    writes before it will add to what the snapshot shows.
    """

    ids: Mapping[str, Sequence[pa.Array]]
    prepare: Callable[[Snapshot, Mapping[str, pa.Table]], PreparedInserts]


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write. `prepare` computes and checks the change over a snapshot, without effects."""

    kind: WriterKind
    branch: str
    actor: str | None
    touched: TouchedTables
    prepare: Callable[[Snapshot], PreparedWrite]
    if_commit: str | None = None
    inserts: Inserts | None = None
    """Of a write that only inserts: it takes no longer to prepare than to commit."""
    note: Mapping[str, Any] = field(default_factory=dict)
    """What the caller says of the commit, see `CommitNote.to_json`."""
    properties: Callable[[], Mapping[str, Any]] = dict
    """What the commit will say of itself; asked for when the change is final."""


def run_write(environment: WriteEnvironment, request: WriteRequest) -> GraphCommit | None:
    """Take a write from request to acknowledgement; None when it changes nothing.

    Raises:
        ExpectedVersionMismatch: A table that decided the write moved first. Nothing is written.
        PreconditionFailed: The head is not `if_commit`. Nothing is written.
        RecoveryRequired: The store failed, and the write may still take effect.
    """
    queues = queue_keys(request.touched.all, request.branch)
    return retry_after_recovery(environment, queues, lambda: _run(environment, request, queues))


def _run(
    environment: WriteEnvironment, request: WriteRequest, queues: Sequence[QueueKey]
) -> GraphCommit | None:
    prepared, staged = None, None
    if request.inserts is not None:
        environment.coordinator.last_seen(
            request.branch
        )  # a branch that is not there has no queues
    else:
        prepared, seen = _prepare(environment, request)
        if not prepared.list_pins() and request.if_commit is None:
            return None
        staged = _stage_without_lock(environment, request, prepared)
    with ExitStack() as held:
        held.enter_context(environment.queues.acquire_many(queues))
        turn = None
        if request.if_commit is not None:
            # From here on the head cannot move, so the condition still holds at the publish.
            turn = held.enter_context(publish_turn(environment, request.branch))
        state = environment.coordinator.fresh(request.branch)
        refuse_other_schema(environment, state)
        if request.if_commit is not None and state.head.commit_id != request.if_commit:
            raise PreconditionFailed(expected=request.if_commit, actual=state.head.commit_id)
        if prepared is None or _has_moved(prepared, seen, state):
            prepared, staged = request.prepare(state.snapshot()), None
        if not prepared.list_pins():
            return None
        check_heads(environment, request.branch, prepared.list_pins())
        if staged is None:
            staged = _stage_on_own_lineage(environment, request, prepared)
        hit(Failpoint.COMMIT_AFTER_STAGE)
        intent = _intent_of(request, prepared, staged, state)
        return carry_out(environment, intent, turn=turn).head


def refuse_other_schema(environment: WriteEnvironment, state: ManifestState) -> None:
    """Refuse rows that were made for a schema which the tables are not in any more."""
    if _is_in_other_schema(environment, state):
        raise SchemaMoved("the schema was changed meanwhile — nothing was written; try again")


def _is_in_other_schema(environment: WriteEnvironment, state: ManifestState) -> bool:
    checked, accepted = environment.schema_name, state.schema_name
    return checked is not None and accepted is not None and checked != accepted


def _prepare(
    environment: WriteEnvironment, request: WriteRequest
) -> tuple[PreparedWrite, ManifestState]:
    """Prepare over the state this handle knows, which costs no look at the store.

    "Refused" and "matches nothing" end the write here, so they must not come from an old state:
    what another handle has acknowledged meanwhile counts. A state from before a schema change, of
    an earlier branch of this name perhaps, has other columns and is not prepared over at all.
    """
    coordinator = environment.coordinator
    seen = coordinator.last_seen(request.branch)
    if _is_in_other_schema(environment, seen):
        seen = coordinator.fresh(request.branch)
        refuse_other_schema(environment, seen)
    try:
        prepared = request.prepare(seen.snapshot())
        if prepared.list_pins() or coordinator.fresh(request.branch) is seen:
            return prepared, seen
    except OmnigraphError:
        if coordinator.fresh(request.branch) is seen:
            raise
    seen = coordinator.last_seen(request.branch)
    return request.prepare(seen.snapshot()), seen


def _stage_without_lock(
    environment: WriteEnvironment, request: WriteRequest, prepared: PreparedWrite
) -> _Staged | None:
    """Stage at the pins, or nothing yet when a table has to be forked first."""
    entries = prepared.list_pins()
    if not all(owns_lineage(request.branch, each.table_branch) for each in entries.values()):
        return None
    return _stage(
        prepared, {key: open_pin(environment.tables, entry) for key, entry in entries.items()}
    )


def _stage_on_own_lineage(
    environment: WriteEnvironment, request: WriteRequest, prepared: PreparedWrite
) -> _Staged:
    """Stage with the queues held, each table forked first where the branch has none of its own."""
    handles = {
        key: fork_for_write(environment, entry, request.branch)
        for key, entry in prepared.list_pins().items()
    }
    return _stage(prepared, handles)


@dataclass(frozen=True, slots=True)
class _Staged:
    """Transactions that are ready, and those of their files that are not on the disk yet."""

    tables: tuple[TableCommits, ...]
    unsynced: Sequence[str]


def _stage(prepared: PreparedWrite, handles: Mapping[str, TableHandle]) -> _Staged:
    with put_off_syncs() as unsynced:
        tables = tuple(
            TableCommits(key, handles[key], (to_commit_step(transaction),))
            for key, transaction in prepared.stage(handles).items()
        )
    return _Staged(tables, unsynced)


def _has_moved(prepared: PreparedWrite, seen: ManifestState, now: ManifestState) -> bool:
    """Whether a table the write looked at has moved; a strict write fails when its rows have."""
    if seen.incarnation != now.incarnation:
        # Another branch of the same name: its version numbers may repeat, its rows do not.
        if prepared.is_strict:
            raise ConflictError(
                f"branch '{now.branch}' was deleted and made again, or reset, since this handle "
                "read it — "
                "nothing was written; retry"
            )
        return True
    for table_key, expected in sorted(prepared.read_versions.items()):
        actual = now.snapshot().version_of(table_key)
        if actual != expected:
            if prepared.is_strict and not now.has_rows_of(seen):
                raise ExpectedVersionMismatch(table_key, expected=expected, actual=actual)
            return True
    return False


def _intent_of(
    request: WriteRequest,
    prepared: PreparedWrite,
    staged: _Staged,
    state: ManifestState,
) -> Intent:
    return Intent(
        kind=request.kind,
        branch=request.branch,
        branch_id=state.incarnation,
        tables=staged.tables,
        unsynced=staged.unsynced,
        expected=dict(prepared.read_versions),
        commit=mint_commit(request.actor, properties={**request.properties(), **request.note}),
        if_commit=request.if_commit,
        after_table=Failpoint.COMMIT_AFTER_TABLE,
        before_publish=lambda: hit(Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER),
    )
