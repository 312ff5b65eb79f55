"""Apply: publish a planned merge, all tables at once or none.

A table takes up to three kinds of commits, so a moved HEAD proves nothing by itself: only the
confirmed sidecar says that nothing is missing. Until then a crash undoes the merge, from then on
recovery finishes it. Tables that are pointed at another version, or forked from one, move no HEAD;
they become visible with the publish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import numpy as np

from omnigraph.branch.plan import How, TablePlan
from omnigraph.branch.row_batches import to_row_ids
from omnigraph.branch.row_tasks import stage_append_of, stage_delete_of, stage_replace_by
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError, ExpectedVersionMismatch
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import GraphCommit, ManifestState, UpdatePin
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.handles import (
    IndexInfo,
    IndexKind,
    IndexSpec,
    StagedTransaction,
    TableHandle,
)
from omnigraph.storage.tables import TableStorage
from omnigraph.write.drift import check_heads
from omnigraph.write.environment import WriteEnvironment, queue_keys
from omnigraph.write.fork import fork_for_write
from omnigraph.write.intent import CommitStep, Intent, TableCommits, mint_commit
from omnigraph.write.pins import handle_to_pin
from omnigraph.write.protocol import carry_out
from omnigraph.write.sidecar import WriterKind


class LayoutMoved(ExpectedVersionMismatch):
    """Only files and indexes of the target changed since the merge was planned: plan it again."""


@dataclass(frozen=True, slots=True)
class PlannedMerge:
    """A merge that is planned and free of conflicts.

    `source` is the branch that is merged; None when earlier states of the graph are the source.
    """

    source: ManifestState | None
    target: ManifestState
    plans: Mapping[str, TablePlan]
    read_versions: Mapping[str, int]
    actor: str | None
    properties: Mapping[str, Any]
    ancestors: tuple[GraphCommit, ...] = ()
    """The commits of the source that the target has not seen."""


def apply_merge(environment: WriteEnvironment, request: PlannedMerge) -> GraphCommit:
    """Make the merge visible as one commit with two parents.

    Raises:
        ExpectedVersionMismatch: The target moved since the merge was planned. Nothing is visible.
        LayoutMoved: It moved, and its rows are the same.
    """
    applied = {key: each for key, each in request.plans.items() if each.how is How.APPLY}
    appended = _append_without_lock(environment.tables, request, applied)
    with environment.queues.acquire_many(_queue_keys(request)):
        state = _check_unmoved(environment, request)
        check_heads(
            environment,
            request.target.branch,
            {key: plan.target_entry for key, plan in applied.items()},
        )
        pointed = tuple(
            _build_pin(environment, request, plan)
            for plan in request.plans.values()
            if plan.how is not How.APPLY
        )
        tables = [
            TableCommits(
                key,
                fork_for_write(environment, plan.target_entry, request.target.branch),
                tuple(build_steps(environment.tables, plan, appended.get(key))),
            )
            for key, plan in applied.items()
        ]
        return carry_out(environment, _intent_of(request, state, tuple(tables), pointed)).head


def _queue_keys(request: PlannedMerge) -> list[tuple[str, str | None]]:
    """Everything the merge writes or trusts, and the source's tables while rows are read there."""
    touched = {*request.plans, *request.read_versions}
    source = () if request.source is None else queue_keys(request.plans, request.source.branch)
    return [*queue_keys(touched, request.target.branch), *source]


def _check_unmoved(environment: WriteEnvironment, request: PlannedMerge) -> ManifestState:
    coordinator = environment.coordinator
    state = coordinator.fresh(request.target.branch)
    seen_states = [(request.target, state)]
    if request.source is not None:
        seen_states.append((request.source, coordinator.fresh(request.source.branch)))
    for seen, now in seen_states:
        if seen.incarnation != now.incarnation:
            raise ConflictError(
                f"branch '{seen.branch}' was deleted and made again, or reset — refresh and retry"
            )
    if state.schema_name != request.target.schema_name:
        raise ConflictError("the schema was changed meanwhile — nothing was written; merge again")
    for key, expected in sorted(request.read_versions.items()):
        actual = state.latest_version(key)
        if actual != expected:
            is_same = state.has_rows_of(request.target)
            refusal = LayoutMoved if is_same else ExpectedVersionMismatch
            raise refusal(key, expected=expected, actual=actual)
    return state


def _build_pin(environment: WriteEnvironment, request: PlannedMerge, plan: TablePlan) -> UpdatePin:
    """The pin of a table that is pointed at, or forked from, the source's version."""
    handle = plan.source
    if plan.how is How.FORK:
        handle = fork_for_write(environment, plan.source_entry, request.target.branch)
    return handle_to_pin(plan.table_key, handle)


# The steps of one table


def _append_without_lock(
    tables: TableStorage, request: PlannedMerge, applied: Mapping[str, TablePlan]
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
    return stage_append_of(tables, handle, plan.source, np.sort(to_row_ids(rows["after"])))


def build_steps(
    tables: TableStorage, plan: TablePlan, appended: StagedTransaction | None
) -> Iterator[CommitStep]:
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
        yield CommitStep(uuid, append, after)
    updates = plan.delta.updates().sort_by("after")
    if updates.num_rows:

        def upsert(handle: TableHandle) -> StagedTransaction:
            rows, replaced = to_row_ids(updates["after"]), to_row_ids(updates["before"])
            return stage_replace_by(tables, handle, plan.source, rows, replaced)

        after = (
            Failpoint.BRANCH_MERGE_REWRITE_AFTER_MERGE_PRE_DELETE
            if is_rewrite
            else Failpoint.BRANCH_MERGE_ADOPT_AFTER_UPSERT_PRE_DELETE
        )
        yield CommitStep(str(uuid4()), upsert, after)
    deletes = plan.delta.deletes()
    if deletes.num_rows:

        def delete(handle: TableHandle) -> StagedTransaction | None:
            return stage_delete_of(tables, handle, to_row_ids(deletes["before"]))

        after = Failpoint.BRANCH_MERGE_REWRITE_AFTER_DELETE_PRE_INDEX if is_rewrite else None
        yield CommitStep(str(uuid4()), delete, after)
    indexes = [_spec_of(info) for info in tables.indexes.describe(plan.target)]
    if is_rewrite and indexes and plan.delta.rows["after"].null_count < len(plan.delta):

        def cover(handle: TableHandle) -> StagedTransaction | None:
            return tables.indexes.stage_create(handle, (), indexes).transaction

        yield CommitStep(str(uuid4()), cover)


def _spec_of(info: IndexInfo) -> IndexSpec:
    kinds = {kind.value: kind for kind in IndexKind}
    return IndexSpec(info.column, kinds.get(info.kind.lower(), IndexKind.VECTOR), info.name)


# What the protocol is to do


def _intent_of(
    request: PlannedMerge,
    state: ManifestState,
    tables: tuple[TableCommits, ...],
    pointed: tuple[UpdatePin, ...],
) -> Intent:
    return Intent(
        kind=WriterKind.BRANCH_MERGE,
        branch=request.target.branch,
        branch_id=state.incarnation,
        tables=tables,
        expected=dict(request.read_versions),
        commit=mint_commit(
            request.actor,
            merged_parent_id=None if request.source is None else request.source.head.commit_id,
            properties=request.properties,
        ),
        pointed=pointed,
        ancestors=request.ancestors,
        source_branch=None if request.source is None else request.source.branch,
        confirms=True,
        before_publish=lambda: hit(Failpoint.BRANCH_MERGE_POST_PHASE_B_PRE_MANIFEST_COMMIT),
    )
