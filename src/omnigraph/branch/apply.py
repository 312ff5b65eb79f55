"""Apply: publish a planned merge, all tables at once or none.

    phase                        durable afterwards         a crash here leaves
    A  write_sidecar             the intent                 no effect; recovery drops the sidecar
    B  append, replace, delete   HEADs, step by step        drift; recovery undoes all of it
    B  confirm_sidecar           that B is complete         drift; recovery publishes all of it
    C  publish                   every pin and the commit   the merge, visible
    D  delete_sidecar            nothing more               a clean graph

A table takes up to three kinds of commits, so a moved HEAD proves nothing by itself: only the
confirmed sidecar says that nothing is missing. Tables that are pointed at another version, or
forked from one, move no HEAD; they become visible with the publish.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from ulid import ULID

from omnigraph.branch.compare import take_rows
from omnigraph.branch.plan import How, TablePlan
from omnigraph.errors import ConflictError, ExpectedVersionMismatch
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import GraphCommit, Lineage, ManifestState, Publish, UpdatePin, publish
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.handles import (
    CommittedVersion,
    IndexInfo,
    IndexKind,
    IndexSpec,
    StagedTransaction,
    TableHandle,
)
from omnigraph.storage.tables import TableStorage
from omnigraph.write.commit import (
    WriteEnvironment,
    check_heads,
    finish,
    lane_of,
    pin_of,
    pin_of_handle,
    publish_turn,
)
from omnigraph.write.fork import fork_for_write
from omnigraph.write.sidecar import (
    Sidecar,
    SidecarPin,
    SidecarSwitch,
    WriterKind,
    confirm_sidecar,
    write_sidecar,
)


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A merge that is planned and free of conflicts."""

    source: ManifestState
    target: ManifestState
    plans: Mapping[str, TablePlan]
    read_versions: Mapping[str, int]
    actor: str | None
    properties: Mapping[str, Any]
    ancestors: tuple[GraphCommit, ...] = ()
    """The commits of the source that the target has not seen."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One commit on one table. The handle is the table as the step before left it."""

    uuid: str
    stage: Callable[[TableHandle], StagedTransaction | None]
    after: Failpoint | None = None


def apply_merge(environment: WriteEnvironment, request: MergeRequest) -> GraphCommit:
    """Make the merge visible as one commit with two parents.

    Raises:
        ExpectedVersionMismatch: The target moved since the merge was planned. Nothing is visible.
    """
    applied = {key: each for key, each in request.plans.items() if each.how is How.APPLY}
    appended = _append_without_lock(environment.tables, request, applied)
    with ExitStack() as held:
        held.enter_context(environment.queues.acquire_many(_queue_keys(request)))
        state = _check_unmoved(environment, request)
        check_heads(
            environment,
            request.target.branch,
            {key: plan.target_entry for key, plan in applied.items()},
        )
        pins = [_pointed(environment, request, plan) for plan in request.plans.values()]
        handles = {
            key: fork_for_write(
                environment.tables,
                environment.coordinator,
                plan.target_entry,
                request.target.branch,
            )
            for key, plan in applied.items()
        }
        steps = {
            key: list(_steps(environment.tables, plan, appended.get(key)))
            for key, plan in applied.items()
        }
        return _publish_merge(
            environment,
            request,
            state,
            handles,
            steps,
            [pin for pin in pins if pin is not None],
            held,
        )


def _queue_keys(request: MergeRequest) -> list[tuple[str, str | None]]:
    """Everything the merge writes or trusts, and the source's tables while rows are read there."""
    target, source = lane_of(request.target.branch), lane_of(request.source.branch)
    return [
        *((key, target) for key in {*request.plans, *request.read_versions}),
        *((key, source) for key in request.plans),
    ]


def _check_unmoved(environment: WriteEnvironment, request: MergeRequest) -> ManifestState:
    source = environment.coordinator.fresh(request.source.branch)
    state = environment.coordinator.fresh(request.target.branch)
    for seen, now in ((request.source, source), (request.target, state)):
        if seen.native_id != now.native_id:
            raise ConflictError(
                f"branch '{seen.branch}' was deleted and made again — refresh and retry"
            )
    for key, expected in sorted(request.read_versions.items()):
        actual = state.latest_version(key)
        if actual != expected:
            raise ExpectedVersionMismatch(key, expected=expected, actual=actual)
    return state


def _pointed(
    environment: WriteEnvironment, request: MergeRequest, plan: TablePlan
) -> UpdatePin | None:
    """The pin of a table that is pointed at, or forked from, the source's version."""
    match plan.how:
        case How.APPLY:
            return None
        case How.SWITCH:
            handle = plan.source
        case How.FORK:
            handle = fork_for_write(
                environment.tables,
                environment.coordinator,
                plan.source_entry,
                request.target.branch,
            )
    return pin_of_handle(environment.tables, plan.table_key, handle)


# The steps of one table


def _append_without_lock(
    tables: TableStorage, request: MergeRequest, applied: Mapping[str, TablePlan]
) -> dict[str, StagedTransaction]:
    """Stage the new rows of tables that need no fork first: the bulk of the work, unlocked."""
    return {
        key: staged
        for key, plan in applied.items()
        if owns_lineage(request.target.branch, plan.target_entry.table_branch)
        and (staged := _stage_append(tables, plan, plan.target)) is not None
    }


def _stage_append(
    tables: TableStorage, plan: TablePlan, handle: TableHandle
) -> StagedTransaction | None:
    rows = plan.delta.inserts()
    if rows.num_rows == 0:
        return None
    # In the order the source stored them: one pass over its files instead of a jump per row.
    return tables.stage_append_stream(
        handle, take_rows(tables, plan.source, rows.sort_by("after")["after"])
    )


def _steps(
    tables: TableStorage, plan: TablePlan, appended: StagedTransaction | None
) -> Iterator[_Step]:
    """Append what is new, replace what changed, delete what is gone; each only when there is any.

    Which rows change is known by their row ids, so nothing is joined and all rows are streamed.

    After a rewrite the indexes that the table has are continued over the new rows. An adopted
    table leaves that to upkeep: a fast forward waits for no index.
    """
    is_rewrite = plan.is_rewrite
    if plan.delta.inserts().num_rows:
        uuid = appended.uuid if appended is not None else str(uuid4())

        def append(handle: TableHandle) -> StagedTransaction | None:
            return appended or _stage_append(tables, plan, handle)

        after = None if is_rewrite else Failpoint.BRANCH_MERGE_ADOPT_AFTER_APPEND_PRE_UPSERT
        yield _Step(uuid, append, after)
    updates = plan.delta.updates().sort_by("after")
    if updates.num_rows:

        def upsert(handle: TableHandle) -> StagedTransaction:
            changed = take_rows(tables, plan.source, updates["after"])
            return tables.stage_replace_rows(handle, changed, updates["before"].to_numpy())

        after = (
            Failpoint.BRANCH_MERGE_REWRITE_AFTER_MERGE_PRE_DELETE
            if is_rewrite
            else Failpoint.BRANCH_MERGE_ADOPT_AFTER_UPSERT_PRE_DELETE
        )
        yield _Step(str(uuid4()), upsert, after)
    deletes = plan.delta.deletes()
    if deletes.num_rows:

        def delete(handle: TableHandle) -> StagedTransaction | None:
            return tables.stage_delete_rows(handle, deletes["before"].to_numpy())

        after = Failpoint.BRANCH_MERGE_REWRITE_AFTER_DELETE_PRE_INDEX if is_rewrite else None
        yield _Step(str(uuid4()), delete, after)
    indexes = [_spec_of(info) for info in tables.describe_indices(plan.target)]
    if is_rewrite and indexes and plan.delta.rows["after"].null_count < len(plan.delta):

        def cover(handle: TableHandle) -> StagedTransaction | None:
            return tables.stage_fold_indices(handle, (), indexes).transaction

        yield _Step(str(uuid4()), cover)


def _spec_of(info: IndexInfo) -> IndexSpec:
    kinds = {kind.value: kind for kind in IndexKind}
    return IndexSpec(info.column, kinds.get(info.kind.lower(), IndexKind.VECTOR), info.name)


# Phases A to D


def _publish_merge(
    environment: WriteEnvironment,
    request: MergeRequest,
    state: ManifestState,
    handles: Mapping[str, TableHandle],
    steps: Mapping[str, list[_Step]],
    pointed: list[UpdatePin],
    held: ExitStack,
) -> GraphCommit:
    """The caller holds every queue the merge needs."""
    lineage = Lineage(
        commit_id=str(ULID()),
        actor=request.actor,
        created_at=time.time_ns() // 1_000,
        merged_parent_id=request.source.head.commit_id,
        properties=request.properties,
    )
    sidecar = _sidecar_of(request, state, handles, steps, pointed, lineage)
    if steps:
        write_sidecar(environment.texts, sidecar)
        # No `try/finally` from here on: when a step fails, the sidecar alone says what to undo.
        committed = {
            key: _run_steps(environment.tables, handle, steps[key], sidecar.operation_id)
            for key, handle in handles.items()
        }
        confirm_sidecar(
            environment.texts, sidecar, {key: made.version for key, made in committed.items()}
        )
        pointed = [*pointed, *(pin_of(key, made) for key, made in committed.items())]
    hit(Failpoint.BRANCH_MERGE_POST_PHASE_B_PRE_MANIFEST_COMMIT)
    environment.foresee(request.target.branch, pointed)
    held.enter_context(publish_turn(environment, request.target.branch))
    published = publish(
        environment.coordinator,
        Publish(
            branch=request.target.branch,
            changes=tuple(pointed),
            expected=request.read_versions,
            commits=(lineage,),
            ancestors=request.ancestors,
        ),
    )
    if steps:
        finish(environment, sidecar.operation_id)
    return published.head


def _run_steps(
    tables: TableStorage, handle: TableHandle, steps: list[_Step], operation_id: str
) -> CommittedVersion:
    committed: CommittedVersion | None = None
    for step in steps:
        staged = step.stage(handle)
        if staged is None:
            continue
        # The sidecar named this transaction before its files could be written.
        committed = tables.commit_staged(replace(staged, uuid=step.uuid), operation_id=operation_id)
        handle = tables.open_at(
            committed.location, committed.version, incarnation=committed.transaction_uuid
        )
        if step.after is not None:
            hit(step.after)
    assert committed is not None, "a table without steps is not applied"
    return committed


def _sidecar_of(
    request: MergeRequest,
    state: ManifestState,
    handles: Mapping[str, TableHandle],
    steps: Mapping[str, list[_Step]],
    pointed: list[UpdatePin],
    lineage: Lineage,
) -> Sidecar:
    return Sidecar(
        operation_id=str(ULID()),
        writer_kind=WriterKind.BRANCH_MERGE,
        started_at=lineage.created_at,
        branch=lane_of(request.target.branch),
        actor_id=request.actor,
        commit_id=lineage.commit_id,
        branch_id=state.native_id,
        merge_source_commit_id=lineage.merged_parent_id,
        read_versions=dict(request.read_versions),
        pins=tuple(
            SidecarPin(
                table_key=key,
                table_path=handle.location.uri,
                expected_version=request.plans[key].target_entry.version,
                post_commit_pin=handle.version + len(steps[key]),
                table_branch=handle.location.branch,
                transaction_uuids=tuple(step.uuid for step in steps[key]),
            )
            for key, handle in handles.items()
        ),
        switches=tuple(
            SidecarSwitch(
                table_key=pin.table_key,
                version=pin.version,
                table_branch=pin.table_branch,
            )
            for pin in pointed
        ),
        commit_properties=request.properties,
        ancestors=request.ancestors,
    )
