"""Content-keeping work: a new layout or new indexes for tables; the rows stay the same.

Invariant: what any query answers at any version is the same before and after. The work goes
through the protocol like every write; the publish carries no graph commit and the head stays
where the last writer left it. When it dies with all tables moved, recovery publishes it; with
some, it restores those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import uuid4

from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import ManifestState, TableEntry
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.intent import CommitStep, Intent, TableCommits
from omnigraph.write.protocol import carry_out
from omnigraph.write.recovery import list_queues
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.sidecar_files import list_sidecars, read_sidecar_if_exists

_BEFORE_PUBLISH = {
    WriterKind.ENSURE_INDICES: Failpoint.ENSURE_INDICES_POST_PHASE_B_PRE_MANIFEST_COMMIT,
    WriterKind.OPTIMIZE: Failpoint.OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT,
}

Stage = Callable[[TableHandle], StagedTransaction]
"""Stages one step at the version that the step before it has made."""


@dataclass(frozen=True, slots=True)
class TableWork:
    """What to do with one table, in order; each step makes one version."""

    entry: TableEntry
    handle: TableHandle
    steps: tuple[Stage, ...]


def to_stage(transaction: StagedTransaction) -> Stage:
    """A step whose files are written already, without any lock."""
    return lambda _: transaction


def commit_work(
    environment: WriteEnvironment,
    branch: str,
    kind: WriterKind,
    works: Mapping[str, TableWork],
) -> ManifestState:
    """Carry the work out. The caller holds the queue of every table and has checked its HEAD.

    Raises:
        ExpectedVersionMismatch: A table moved first. Nothing is visible.
    """
    return carry_out(
        environment,
        Intent(
            kind=kind,
            branch=branch,
            branch_id=environment.coordinator.last_seen(branch).incarnation,
            tables=tuple(
                _commits_of(environment.tables, key, work) for key, work in sorted(works.items())
            ),
            expected={key: work.entry.version for key, work in works.items()},
            after_table=Failpoint.COMMIT_AFTER_TABLE,
            before_publish=lambda: hit(_BEFORE_PUBLISH[kind]),
        ),
    )


def _commits_of(tables: TableStorage, key: str, work: TableWork) -> TableCommits:
    def step(stage: Stage) -> CommitStep:
        return CommitStep(str(uuid4()), lambda handle: tables.rebase(stage(handle), handle))

    return TableCommits(key, work.handle, tuple(map(step, work.steps)))


def refuse_while_pending(environment: WriteEnvironment, verb: str) -> None:
    """Refuse while an interrupted write waits for recovery; a live writer is waited for.

    Raises:
        ConflictError: A sidecar is there whose writer is dead, and which could not be recovered.
    """
    for operation_id in list_sidecars(environment.texts):
        known = read_sidecar_if_exists(environment.texts, operation_id)
        if known is None:
            continue
        with environment.queues.acquire_many(list_queues(known)):
            left = read_sidecar_if_exists(environment.texts, operation_id)
        if left is not None:
            advice = (
                "run `omnigraph verify` to see why it could not be recovered"
                if environment.has_system_locks
                else "reopen the graph read-write to run the recovery sweep"
            )
            raise ConflictError(
                f"{verb} cannot run while an interrupted {left.writer_kind.value} is pending "
                f"(sidecar {operation_id}) — {advice}"
            )
