"""The JSON forms of results that commands print; table and entity vocabulary side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.graph import Commit, LoadResult
    from omnigraph.manifest import Snapshot


def commit_to_json(commit: Commit) -> dict[str, Any]:
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
        "graph_branch": branch,
        "graph_manifest_version": commit.manifest_version,
    }


def snapshot_to_json(snapshot: Snapshot, internal_schema_version: int) -> dict[str, Any]:
    """What a branch shows: one item a table, by table key."""
    entries = [snapshot.entries[key] for key in sorted(snapshot.entries)]
    return {
        "branch": snapshot.branch,
        "manifest_version": snapshot.manifest_version,
        "internal_schema_version": internal_schema_version,
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
                "entity_kind": entry.table_key.partition(":")[0],
                "type_name": entry.table_key.partition(":")[2],
                "dataset_path": entry.table_path,
                "published_dataset_version": entry.version,
                "native_dataset_branch": entry.table_branch,
                "entity_count": entry.row_count,
            }
            for entry in entries
        ],
    }


def load_to_json(result: LoadResult, uri: str, commit: Commit | None) -> dict[str, Any]:
    """What a load did, by table and by entity type."""
    nodes = _loaded(result, "node")
    edges = _loaded(result, "edge")
    return {
        "uri": uri,
        "branch": result.branch,
        "base_branch": result.base_branch,
        "branch_created": result.branch_created,
        "mode": result.mode,
        "nodes_loaded": sum(each["entities_loaded"] for each in nodes),
        "edges_loaded": sum(each["entities_loaded"] for each in edges),
        "node_types_loaded": len(nodes),
        "edge_types_loaded": len(edges),
        "nodes": nodes,
        "edges": edges,
        "tables": [{"table_key": key, "rows_loaded": n} for key, n in result.tables.items()],
        "total_entities": sum(result.tables.values()),
        "rows_embedded": result.rows_embedded,
        "rows_rejected": result.rows_rejected,
        "engine": result.engine,
        "commit": commit_to_json(commit) if commit else None,
    }


def _loaded(result: LoadResult, kind: str) -> list[dict[str, Any]]:
    return [
        {"name": key.partition(":")[2], "entities_loaded": count}
        for key, count in sorted(result.tables.items())
        if key.startswith(f"{kind}:")
    ]
