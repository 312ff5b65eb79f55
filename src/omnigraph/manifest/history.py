"""`_graph_commits.lance`: the commit history as a table that people can query.

A projection. The truth is the `graph_commit` rows of `__manifest`, written in the publish itself,
so there is no moment in which a commit is visible but missing from history. Read-write opens and
refreshes bring the projection up to date; deleting it loses nothing.
"""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BranchNotFound, RowLevelCasContention
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.model import MAIN, GraphCommit
from omnigraph.manifest.rows import commit_of_row
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


def rows_of_commits(commits: list[GraphCommit]) -> pa.Table:
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

    Handles that open at once do this together: rows are merged by key, so none is added twice,
    and who comes second looks again and finds the work done.
    """
    for _ in range(_ATTEMPTS_MAX):
        known = history.read(columns=[KEY])
        missing = _missing_commits(coordinator, known.rows[KEY].combine_chunks())
        if not missing:
            return 0
        try:
            history.merge_rows(rows_of_commits(missing), read_version=known.version)
        except RowLevelCasContention:
            continue
        return len(missing)
    log.info("the commit history table is left to the handles that are writing it now")
    return 0


def _missing_commits(coordinator: Coordinator, known_ids: pa.Array) -> list[GraphCommit]:
    missing: dict[str, GraphCommit] = {}
    for branch in coordinator.branches():
        try:
            rows = coordinator.last_seen(branch).commit_rows
        except BranchNotFound:
            continue  # deleted since it was listed
        unknown = pc.invert(pc.is_in(rows["object_id"], known_ids))
        for row in rows.filter(unknown).to_pylist():
            missing[row["object_id"]] = commit_of_row(row)
    return sorted(missing.values(), key=lambda commit: commit.order)
