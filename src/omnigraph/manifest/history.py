"""`_graph_commits.lance`: the commit history as a table that people can query.

A projection. The truth is the `graph_commit` rows of `__manifest`, written in the publish itself,
so there is no moment in which a commit is visible but missing from history. Read-write opens and
refreshes bring the projection up to date; deleting it loses nothing.
"""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BranchNotFound, RowLevelCasContention
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.model import MAIN, GraphCommit, ManifestState
from omnigraph.manifest.rows import row_to_commit
from omnigraph.storage.control import ControlTable

TABLE = "_graph_commits.lance"
KEY = "graph_commit_id"
_ATTEMPTS_MAX = 5

log = logging.getLogger("omnigraph.manifest")

SCHEMA = pa.schema(
    [
        pa.field(KEY, pa.utf8(), nullable=False),
        pa.field("manifest_branch", pa.utf8()),
        pa.field("manifest_version", pa.uint64(), nullable=False),
        pa.field("parent_commit_id", pa.utf8()),
        pa.field("merged_parent_commit_id", pa.utf8()),
        pa.field("actor_id", pa.utf8()),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)


def commits_to_rows(commits: list[GraphCommit]) -> pa.Table:
    """Commits as rows of the projection."""
    return pa.Table.from_pylist(
        [
            {
                KEY: commit.commit_id,
                "manifest_branch": None if commit.branch == MAIN else commit.branch,
                "manifest_version": commit.manifest_version,
                "parent_commit_id": commit.parent_id,
                "merged_parent_commit_id": commit.merged_parent_id,
                "actor_id": commit.actor,
                "created_at": commit.created_at,
            }
            for commit in commits
        ],
        schema=SCHEMA,
    )


def reconcile(coordinator: Coordinator, history: ControlTable) -> int:
    """Add the commits that the projection lacks; returns how many.

    Handles that open at the same time all do this: rows are merged by key, so none is added twice,
    and a handle that loses the race reads again and finds the work done.
    """
    for _ in range(_ATTEMPTS_MAX):
        known = history.read(columns=[KEY])
        missing = _find_missing(coordinator, known.rows[KEY].combine_chunks())
        if not missing:
            return 0
        try:
            history.merge_rows(commits_to_rows(missing), read_version=known.version)
        except RowLevelCasContention:
            continue
        return len(missing)
    log.info("the commit history table is left to the handles that are writing it now")
    return 0


def _find_missing(coordinator: Coordinator, known_ids: pa.Array) -> list[GraphCommit]:
    missing: dict[str, GraphCommit] = {}
    for branch in coordinator.branches():
        try:
            state = coordinator.last_seen(branch)
        except BranchNotFound:
            continue  # deleted since it was listed
        rows = pa.concat_tables([state.commit_rows, state.ancestor_rows])
        unknown = pc.invert(pc.is_in(rows["object_id"], known_ids))
        for row in rows.filter(unknown).to_pylist():
            missing[row["object_id"]] = row_to_commit(row)
    return sorted(missing.values(), key=lambda commit: commit.order)


def list_ancestry(
    coordinator: Coordinator, history: ControlTable, branch: str
) -> list[GraphCommit]:
    """Every commit that led to a branch, over both parents, newest first.

    A branch knows all of them. What merges of an older Omnigraph did not bring along is known from
    the other branches, or from the projection alone.
    """
    state = coordinator.fresh(branch)
    known = _read_commits(state)
    found: dict[str, GraphCommit] = {}
    pending = [state.head.commit_id]
    is_all_read = False
    while pending:
        commit_id = pending.pop()
        if commit_id not in known and not is_all_read:
            known = _read_all_commits(coordinator, history) | known
            is_all_read = True
        commit = known.get(commit_id)
        if commit is None or commit_id in found:
            continue
        found[commit_id] = commit
        pending += [each for each in (commit.parent_id, commit.merged_parent_id) if each]
    return sorted(found.values(), key=lambda each: (each.created_at, each.commit_id), reverse=True)


def _read_commits(state: ManifestState) -> dict[str, GraphCommit]:
    rows = pa.concat_tables([state.commit_rows, state.ancestor_rows]).to_pylist()
    return {commit.commit_id: commit for commit in map(row_to_commit, rows)}


def _read_all_commits(coordinator: Coordinator, history: ControlTable) -> dict[str, GraphCommit]:
    known = {row[KEY]: _history_row_to_commit(row) for row in _read_history_rows(history)}
    for each in coordinator.branches():
        known |= _read_commits(coordinator.fresh(each))
    return known


def _read_history_rows(history: ControlTable) -> list[dict[str, Any]]:
    rows = history.read().rows
    numbers = rows["created_at"].cast(pa.int64())
    column = rows.schema.get_field_index("created_at")
    plain: list[dict[str, Any]] = rows.set_column(column, "created_at", numbers).to_pylist()
    return plain


def _history_row_to_commit(row: dict[str, Any]) -> GraphCommit:
    return GraphCommit(
        commit_id=row[KEY],
        branch=row["manifest_branch"] or MAIN,
        manifest_version=row["manifest_version"],
        parent_id=row["parent_commit_id"],
        merged_parent_id=row["merged_parent_commit_id"],
        actor=row["actor_id"],
        created_at=row["created_at"],
    )
