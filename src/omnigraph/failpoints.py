"""Failpoints: named points at which a test can make the program fail; inert otherwise.

Code calls `hit(Failpoint.X)`; with nothing armed that is one dict look-up. A test arms a point
with the `arm_failpoints` context manager, or for a child process through the environment:

    OMNIGRAPH_FAILPOINTS="recovery.sidecar_write=kill,graph_publish.before_manifest_commit=sleep:2"

Modes: `raise` raises FailpointError, `kill` ends the process with SIGKILL, `sleep:<seconds>`,
`wait:<path>` makes the file `<path>.reached` and goes on once `<path>` exists, so that a test can
hold another process still, `count` only counts, and a callable (context manager only) is called.
`@n` behind a mode fires it at the n-th hit only.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

ENVIRONMENT_VARIABLE = "OMNIGRAPH_FAILPOINTS"


class Failpoint(StrEnum):
    """Every point that can be made to fail. A test checks that code and enum agree."""

    INIT_AFTER_SCHEMA_PG_WRITTEN = "init.after_schema_pg_written"
    INIT_AFTER_SCHEMA_CONTRACT_WRITTEN = "init.after_schema_contract_written"
    INIT_AFTER_TABLE = "init.after_table"
    INIT_AFTER_COORDINATOR_INIT = "init.after_coordinator_init"
    BRANCH_CREATE_AFTER_MANIFEST_BRANCH_CREATE = "branch_create.after_manifest_branch_create"
    BRANCH_DELETE_BEFORE_TABLE_CLEANUP = "branch_delete.before_table_cleanup"
    BRANCH_RESET_BEFORE_PUBLISH = "branch_reset.before_publish"
    BRANCH_RESET_BEFORE_TABLE_CLEANUP = "branch_reset.before_table_cleanup"
    FORK_AFTER_CREATE = "fork.after_create"
    FORK_BEFORE_CLASSIFY = "fork.before_classify"
    FORK_BEFORE_RECLAIM = "fork.before_reclaim"
    CLASSIFY_FRESH_READ = "classify.fresh_read"
    MUTATION_DELETE_NODE_PRE_PRIMARY_DELETE = "mutation.delete_node_pre_primary_delete"
    MUTATION_POST_FINALIZE_PRE_PUBLISHER = "mutation.post_finalize_pre_publisher"
    COMMIT_AFTER_STAGE = "commit.after_stage"
    COMMIT_AFTER_SIDECAR = "commit.after_sidecar"
    COMMIT_AFTER_TABLE = "commit.after_table"
    GROUP_AFTER_MEMBER = "group.after_member"
    CHECKSUMS_BEFORE_RECORD = "checksums.before_record"
    GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT = "graph_publish.before_manifest_commit"
    GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT = "graph_publish.after_manifest_commit"
    OPTIMIZE_AFTER_STAGE = "optimize.after_stage"
    OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT = "optimize.post_phase_b_pre_manifest_commit"
    OPTIMIZE_BEFORE_MANIFEST_COMPACTION = "optimize.before_manifest_compaction"
    OPTIMIZE_AFTER_MANIFEST_COMPACTION = "optimize.after_manifest_compaction"
    ENSURE_INDICES_POST_STAGE_PRE_COMMIT_BTREE = "ensure_indices.post_stage_pre_commit_btree"
    ENSURE_INDICES_POST_PHASE_B_PRE_MANIFEST_COMMIT = (
        "ensure_indices.post_phase_b_pre_manifest_commit"
    )
    JOB_BEFORE_RUN = "job.before_run"
    JOB_BEFORE_OUTCOME = "job.before_outcome"
    SCHEMA_APPLY_AFTER_LOCK = "schema_apply.after_lock"
    SCHEMA_APPLY_AFTER_TABLE = "schema_apply.after_table"
    SCHEMA_APPLY_BEFORE_STAGING_WRITE = "schema_apply.before_staging_write"
    SCHEMA_APPLY_AFTER_STAGING_WRITE = "schema_apply.after_staging_write"
    SCHEMA_APPLY_AFTER_MANIFEST_COMMIT = "schema_apply.after_manifest_commit"
    SCHEMA_APPLY_AFTER_FILE_PROMOTED = "schema_apply.after_file_promoted"
    CLEANUP_AFTER_LAST_TABLE = "cleanup.after_last_table"
    CLEANUP_LOST_TABLE = "cleanup.lost_table"
    CLEANUP_TABLE_GC = "cleanup.table_gc"
    CLEANUP_RECONCILE_FORK = "cleanup.reconcile_fork"
    CLEANUP_RESOLVE_BRANCH_SNAPSHOT = "cleanup.resolve_branch_snapshot"
    BRANCH_MERGE_ADOPT_AFTER_APPEND_PRE_UPSERT = "branch_merge.adopt_after_append_pre_upsert"
    BRANCH_MERGE_ADOPT_AFTER_UPSERT_PRE_DELETE = "branch_merge.adopt_after_upsert_pre_delete"
    BRANCH_MERGE_REWRITE_AFTER_MERGE_PRE_DELETE = "branch_merge.rewrite_after_merge_pre_delete"
    BRANCH_MERGE_REWRITE_AFTER_DELETE_PRE_INDEX = "branch_merge.rewrite_after_delete_pre_index"
    BRANCH_MERGE_POST_PHASE_B_PRE_MANIFEST_COMMIT = "branch_merge.post_phase_b_pre_manifest_commit"
    MERGE_REQUEST_BEFORE_MERGING = "merge_request.before_merging"
    MERGE_REQUEST_AFTER_MERGING = "merge_request.after_merging"
    MERGE_REQUEST_BEFORE_MERGED = "merge_request.before_merged"
    MERGE_REQUEST_AFTER_MERGED = "merge_request.after_merged"
    LOAD_AFTER_STAGED_PART = "load.after_staged_part"
    LOAD_BEFORE_COMMIT = "load.before_commit"
    RELOCATE_BEFORE_VERSION_FILE = "relocate.before_version_file"
    RELOCATE_BEFORE_MARKER = "relocate.before_marker"
    RECOVERY_SIDECAR_WRITE = "recovery.sidecar_write"
    RECOVERY_SIDECAR_CONFIRM = "recovery.sidecar_confirm"
    RECOVERY_SIDECAR_DELETE = "recovery.sidecar_delete"
    RECOVERY_AFTER_SIDECAR_DELETE = "recovery.after_sidecar_delete"
    RECOVERY_SIDECAR_LIST = "recovery.sidecar_list"
    RECOVERY_RECORD_AUDIT = "recovery.record_audit"
    RECOVERY_ORPHAN_DISCARD_AUDIT_APPEND = "recovery.orphan_discard_audit_append"
    RECOVERY_AFTER_CLASSIFY = "recovery.after_classify"
    RECOVERY_AFTER_RESTORE = "recovery.after_restore"
    RECOVERY_AFTER_PUBLISH = "recovery.after_publish"
    TRANSFER_BEFORE_FILE = "transfer.before_file"
    TRANSFER_BEFORE_TABLE = "transfer.before_table"
    TRANSFER_BEFORE_LINEAGES = "transfer.before_lineages"
    TRANSFER_BEFORE_PUBLISH = "transfer.before_publish"
    TRANSFER_BEFORE_BRANCH = "transfer.before_branch"
    TRANSFER_BEFORE_TAG = "transfer.before_tag"
    TRANSFER_BEFORE_TEXTS = "transfer.before_texts"
    TRANSFER_BEFORE_CLAIM = "transfer.before_claim"


class FailpointError(RuntimeError):
    """What an armed point raises in mode `raise`."""


Mode: TypeAlias = str | Callable[[], None]

_armed: dict[Failpoint, Mode] = {}
hits: Counter[Failpoint] = Counter()


def hit(point: Failpoint) -> None:
    """Do what `point` is armed to do; usually nothing."""
    mode = _armed.get(point)
    if mode is None:
        return
    hits[point] += 1
    if callable(mode):
        mode()
        return
    action, _, nth = mode.partition("@")
    if nth and hits[point] != int(nth):
        return
    if action == "raise":
        raise FailpointError(f"failpoint {point} reached")
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action.startswith("sleep:"):
        time.sleep(float(action.removeprefix("sleep:")))
    if action.startswith("wait:"):
        _wait(Path(action.removeprefix("wait:")))


def _wait(path: Path) -> None:
    path.with_name(f"{path.name}.reached").touch()
    while not path.exists():
        time.sleep(0.005)


@contextmanager
def arm_failpoints(points: dict[Failpoint, Mode]) -> Iterator[Counter[Failpoint]]:
    """Arm `points` while the block runs; yields the counter of hits, which starts at zero."""
    before = dict(_armed)
    hits.clear()
    _armed.update(points)
    try:
        yield hits
    finally:
        _armed.clear()
        _armed.update(before)


def arm_from_environment(text: str) -> None:
    """Arm the points of an environment value; an unknown name is an error."""
    for item in filter(None, text.split(",")):
        name, _, mode = item.partition("=")
        _armed[Failpoint(name)] = mode or "raise"


arm_from_environment(os.environ.get(ENVIRONMENT_VARIABLE, ""))
