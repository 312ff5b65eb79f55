"""Commits, logs, histories and snapshots as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from omnigraph.errors import BadRequestError
from omnigraph.version import INTERNAL_SCHEMA_VERSION
from omnigraph.wire.calls import DETAILS, LOG_COMMITS, PATCH_CHANGES, LogPart
from omnigraph.wire.names import Json, entity_of

if TYPE_CHECKING:
    from omnigraph.branch.entity_history import Blame, EntityHistory
    from omnigraph.branch.log import CommitPatch
    from omnigraph.graph import Commit, Graph
    from omnigraph.manifest import CommitLog, Snapshot


def commit_to_json(commit: Commit) -> Json:
    """A graph commit; `manifest_branch` is null on main."""
    branch = None if commit.branch == "main" else commit.branch
    return {
        "graph_commit_id": commit.commit_id,
        "manifest_branch": branch,
        "manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent_id,
        "merged_parent_commit_id": commit.merged_parent_id,
        "actor_id": commit.actor,
        "created_at": commit.created_at,
        "message": commit.message,
        "metadata": dict(commit.metadata),
        "graph_branch": branch,
        "graph_manifest_version": commit.manifest_version,
    }


def commits_to_json(commits: CommitLog) -> Json:
    """Commits, in the order given; `notes` say what is not stored any more."""
    found = {"commits": [commit_to_json(commit) for commit in commits]}
    return {**found, "notes": list(commits.notes)} if commits.notes else found


def patch_to_json(patch: CommitPatch) -> Json:
    """A commit with what it changed: counts by table, and records if they were asked for."""
    body = {
        **commit_to_json(patch.commit),
        "stat": [each.to_json() for each in patch.tables],
        "schema_steps": [each.to_json() for each in patch.schema_steps],
    }
    if patch.changes is not None:
        body |= {"changes": patch.changes, "is_cut": patch.is_cut}
    return {**body, "notes": list(patch.notes)} if patch.notes else body


def log_to_json(graph: Graph, branch: str, asked: LogPart, *, merged: bool) -> Json:
    """What a caller asks of a log: the commits, or with a detail also what they changed."""
    if asked.detail is None:
        read = graph.log if merged else graph.commits
        return commits_to_json(read(branch, **asked.filters))
    patches = read_patches(graph, branch, asked, merged=merged)
    return {"commits": [patch_to_json(each) for each in patches]}


def read_patches(
    graph: Graph, branch: str, asked: LogPart, *, merged: bool
) -> Iterator[CommitPatch]:
    """The patches that are asked for, read as they are iterated."""
    if asked.detail not in DETAILS:
        raise BadRequestError(
            f"there is no detail '{asked.detail}' — expected {', '.join(DETAILS)}"
        )
    changes = None if asked.detail == "stat" else asked.changes or PATCH_CHANGES
    filters = {**asked.filters, "limit": asked.limit or LOG_COMMITS}
    return graph.log_patches(branch, **filters, changes=changes, merged=merged)


def history_to_json(history: EntityHistory, branch: str) -> Json:
    """What commits did to one entity, newest first; `notes` say what is not stored any more."""
    return {
        "branch": branch,
        "changes": [
            {"commit": commit_to_json(each.commit), "through": each.through, **each.to_json()}
            for each in history
            if each.commit is not None
        ],
        "notes": list(history.notes),
    }


def blame_to_json(blamed: Mapping[str, Blame], type_name: str, entity_id: str, branch: str) -> Json:
    """For each property of an entity, its value and what wrote it."""
    return {
        "branch": branch,
        "type": type_name,
        "id": entity_id,
        "properties": {name: each.to_json() for name, each in blamed.items()},
    }


def snapshot_to_json(snapshot: Snapshot) -> Json:
    """What a branch shows: one item a table, by table key."""
    entries = [snapshot.entries[key] for key in sorted(snapshot.entries)]
    return {
        "branch": snapshot.branch,
        "manifest_version": snapshot.manifest_version,
        "internal_schema_version": INTERNAL_SCHEMA_VERSION,
        "tables": [
            {
                "table_key": entry.table_key,
                "table_path": entry.table_path,
                "table_version": entry.version,
                "table_branch": entry.table_branch,
                "row_count": entry.row_count,
            }
            for entry in entries
        ],
        "graph_branch": snapshot.branch,
        "graph_manifest_version": snapshot.manifest_version,
        "datasets": [
            {
                **entity_of(entry.table_key),
                "dataset_path": entry.table_path,
                "published_dataset_version": entry.version,
                "native_dataset_branch": entry.table_branch,
                "entity_count": entry.row_count,
            }
            for entry in entries
        ],
    }
