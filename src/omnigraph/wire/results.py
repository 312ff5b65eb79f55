"""Results of reads and writes as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.wire.history import commit_to_json
from omnigraph.wire.names import Json

if TYPE_CHECKING:
    from omnigraph.executor import QueryResult
    from omnigraph.executor.explain import Explanation
    from omnigraph.graph import Commit, LoadResult, MutationResult
    from omnigraph.graph.results import EmbedResult
    from omnigraph.pipeline.preview import LoadPreview
    from omnigraph.upkeep.apply_schema import SchemaResult


def read_target(result: QueryResult, snapshot: str | None) -> dict[str, str | None]:
    """What a read was over: a branch, or the commit that was asked for."""
    return {"branch": None if snapshot else result.branch, "snapshot": snapshot}


def frozen_read_to_json(result: QueryResult, target: dict[str, str | None]) -> Json:
    """The rows of a read in the form that never changes: these members, in this order."""
    rows = result.rows()
    body: Json = {"query_name": result.query_name, "target": target, "row_count": len(rows)}
    if columns := result.columns:
        body["columns"] = columns
    body["rows"] = rows
    return body


def read_to_json(result: QueryResult, target: dict[str, str | None]) -> Json:
    """The rows of a read, and the commit they are from."""
    body = frozen_read_to_json(result, target)
    if result.commit_id is not None:
        body["graph_commit_id"] = result.commit_id
    return body


def explanation_to_json(explained: Explanation) -> Json:
    """The stages of a read as text, and what running it did."""
    stages = [
        {"text": stage.text, "rows": stage.rows, "elapsed_ms": stage.elapsed_ms}
        for stage in explained.stages
    ]
    value: Json = {"ir": explained.ir, "plan": explained.plan, "stages": stages}
    if explained.row_count is not None:
        value["row_count"] = explained.row_count
    if explained.spark is not None:
        value["spark"] = explained.spark
    return value


def change_to_json(
    result: MutationResult,
    *,
    branch: str,
    query_name: str,
    actor: str | None,
    commit: Commit | None,
) -> Json:
    """What a mutation did, with the rows of its `return`; `commit` is null when nothing matched."""
    body: Json = {
        "branch": branch,
        "query_name": query_name,
        "affected_nodes": result.affected_nodes,
        "affected_edges": result.affected_edges,
        "actor_id": actor,
        "commit": commit_to_json(commit) if commit else None,
    }
    if result.returned is not None:
        body |= {"columns": result.returned.columns, "rows": result.returned.rows()}
    return body


def load_to_json(
    result: LoadResult, uri: str, commit: Commit | None, actor: str | None = None
) -> Json:
    """What a load did, by table and by entity type."""
    nodes = _types_to_json(result, "node")
    edges = _types_to_json(result, "edge")
    total = sum(result.tables.values())
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
        "tables": [
            {"table_key": key, "rows_loaded": count} for key, count in sorted(result.tables.items())
        ],
        "total_entities": total,
        "total_rows": total,
        "rows_embedded": result.rows_embedded,
        "rows_unembedded": result.rows_unembedded,
        "rows_rejected": result.rows_rejected,
        "quarantine": result.quarantine,
        "notes": list(result.notes),
        "engine": result.engine,
        "actor_id": actor,
        "commit": commit_to_json(commit) if commit else None,
    }


def _types_to_json(result: LoadResult, kind: str) -> list[Json]:
    return [
        {"name": key.partition(":")[2], "entities_loaded": count, "rows_loaded": count}
        for key, count in sorted(result.tables.items())
        if key.startswith(f"{kind}:")
    ]


def preview_to_json(preview: LoadPreview, uri: str, branch: str, mode: str) -> Json:
    """What a load would do, by table."""
    return {
        "uri": uri,
        "branch": branch,
        "mode": mode,
        "dry_run": True,
        "changes_nothing": preview.changes_nothing,
        "tables": [
            {
                "table_key": key,
                "inserted": counts.inserted,
                "replaced": counts.replaced,
                "unchanged": counts.unchanged,
                "refused": counts.refused,
                "removed": counts.removed,
                "rows": list(preview.rows.get(key, [])),
            }
            for key, counts in preview.tables.items()
        ],
        "problems": preview.bad_rows.total,
        "bad_rows": [str(bad) for bad in preview.bad_rows],
        "notes": list(preview.notes),
    }


def embed_to_json(result: EmbedResult, uri: str) -> Json:
    """Which vectors were made, in which commits."""
    return {
        "uri": uri,
        "branch": result.branch,
        "commit_ids": list(result.commit_ids),
        "rows_embedded": result.rows_embedded,
        "rows_unembedded": result.rows_unembedded,
        "models": dict(result.models),
        "notes": list(result.notes),
        "engine": result.engine,
    }


def schema_applied_to_json(result: SchemaResult, uri: str) -> Json:
    """What a schema change did, step by step."""
    return {
        "uri": uri,
        **result.to_json(),
        "graph_manifest_version": result.manifest_version,
    }


def blob_written_to_json(
    branch: str, size: int, etag: str, actor: str | None, commit: Commit | None
) -> Json:
    """What came of writing a Blob."""
    return {
        "branch": branch,
        "size": size,
        "etag": etag,
        "actor_id": actor,
        "commit": None if commit is None else commit_to_json(commit),
    }
