"""Content-keeping work: new layout or new indexes for tables, never other rows.

Invariant: what any query answers at any version is the same before and after. The work goes
through sidecar, commits and one publish like every write; the publish carries no graph commit and
the head stays where the last writer left it.

    phase                      a crash here leaves
    A  write_sidecar           no effect; recovery drops the sidecar
    B  commit, step by step    all tables moved: recovery publishes; some: it restores those
    C  publish                 the work, visible
    D  delete_sidecar          nothing more
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from ulid import ULID

from omnigraph.errors import ConflictError, ExpectedVersionMismatch, HeadMoved
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import ManifestState, Publish, TableEntry, UpdatePin, publish
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.write.commit import (
    WriteEnvironment,
    finish,
    lane_of,
    pin_of,
    publish_turn,
    queue_keys,
)
from omnigraph.write.sidecar import (
    Sidecar,
    SidecarPin,
    WriterKind,
    list_sidecars,
    read_sidecar_if_exists,
    write_sidecar,
)

Stage = Callable[[TableHandle], StagedTransaction]
"""Stages one step at the version that the step before it has made."""


@dataclass(frozen=True, slots=True)
class TableWork:
    """What to do with one table, in order; each step makes one version."""

    entry: TableEntry
    handle: TableHandle
    steps: tuple[Stage, ...]


def staged_before(transaction: StagedTransaction) -> Stage:
    """A step whose files are written already, without any lock."""
    return lambda _: transaction


def commit_work(
    environment: WriteEnvironment,
    branch: str,
    kind: WriterKind,
    works: Mapping[str, TableWork],
    before_publish: Failpoint,
) -> ManifestState:
    """Phases A to D. The caller holds the queue of every table and has checked its HEAD.

    Raises:
        ExpectedVersionMismatch: A table moved first. Nothing is visible.
    """
    uuids = {key: tuple(str(uuid4()) for _ in work.steps) for key, work in works.items()}
    sidecar = _sidecar_of(environment, branch, kind, works, uuids)
    write_sidecar(environment.texts, sidecar)
    # No `try/finally` from here on: when a step fails, the sidecar alone says what to undo.
    pins: list[UpdatePin] = []
    for key, work in sorted(works.items()):
        pins.append(_run_steps(environment, key, work, uuids[key], sidecar, is_first=not pins))
        hit(Failpoint.COMMIT_AFTER_TABLE)
    hit(before_publish)
    environment.foresee(branch, pins)
    with publish_turn(environment, branch):
        state = publish(
            environment.coordinator,
            Publish(
                branch=branch,
                changes=tuple(pins),
                expected={key: work.entry.version for key, work in works.items()},
            ),
        )
    finish(environment, sidecar.operation_id)
    return state


def _run_steps(
    environment: WriteEnvironment,
    key: str,
    work: TableWork,
    uuids: tuple[str, ...],
    sidecar: Sidecar,
    *,
    is_first: bool,
) -> UpdatePin:
    tables, handle = environment.tables, work.handle
    committed = None
    for stage, uuid in zip(work.steps, uuids, strict=True):
        staged = tables.rebase(stage(handle), handle)
        try:
            committed = tables.commit_staged(
                replace(staged, uuid=uuid), operation_id=sidecar.operation_id
            )
        except HeadMoved as moved:
            if is_first and committed is None:
                finish(environment, sidecar.operation_id)  # no HEAD has moved by us
            raise ExpectedVersionMismatch(
                key, expected=moved.expected, actual=moved.actual
            ) from moved
        handle = tables.open_at(
            committed.location, committed.version, incarnation=committed.transaction_uuid
        )
    assert committed is not None, "a table without steps is no work"
    return pin_of(key, committed)


def _sidecar_of(
    environment: WriteEnvironment,
    branch: str,
    kind: WriterKind,
    works: Mapping[str, TableWork],
    uuids: Mapping[str, tuple[str, ...]],
) -> Sidecar:
    return Sidecar(
        operation_id=str(ULID()),
        writer_kind=kind,
        started_at=time.time_ns() // 1_000,
        branch=lane_of(branch),
        actor_id=None,
        commit_id=None,
        branch_id=environment.coordinator.last_seen(branch).native_id,
        pins=tuple(
            SidecarPin(
                table_key=key,
                table_path=work.handle.location.uri,
                expected_version=work.entry.version,
                post_commit_pin=work.entry.version + len(work.steps),
                table_branch=work.handle.location.branch,
                transaction_uuids=uuids[key],
            )
            for key, work in sorted(works.items())
        ),
    )


def refuse_while_pending(environment: WriteEnvironment, verb: str) -> None:
    """Refuse while an interrupted write waits for recovery; a live writer is waited for.

    Raises:
        ConflictError: A sidecar is there that nobody alive owns.
    """
    for operation_id in list_sidecars(environment.texts):
        known = read_sidecar_if_exists(environment.texts, operation_id)
        if known is None:
            continue
        keys = {pin.table_key for pin in known.pins} | set(known.read_versions)
        with environment.queues.acquire_many(queue_keys(frozenset(keys), known.branch or "main")):
            left = read_sidecar_if_exists(environment.texts, operation_id)
        if left is not None:
            raise ConflictError(
                f"{verb} cannot run while an interrupted {left.writer_kind.value} is pending "
                f"(sidecar {operation_id}) — reopen the graph read-write to run the recovery sweep"
            )
