"""A query as callers ask for it, and the JSON forms of results for the server and for `--json`.

The older words (`tables`, `table_key`, `manifest_version`) and the newer ones (`datasets`,
`type_name`, `graph_manifest_version`) never share a name, so a body carries both and clients of
every age find theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    BadRequestError,
    CheckFailure,
    MergeConflict,
    OmnigraphError,
    RemoteError,
)
from omnigraph.undo_calls import RestoreCall, UndoCall
from omnigraph.version import INTERNAL_SCHEMA_VERSION

if TYPE_CHECKING:
    from omnigraph.branch.entity_history import Blame, EntityHistory
    from omnigraph.branch.log import CommitPatch
    from omnigraph.branch.merge import MergePreview, MergeResult
    from omnigraph.branch.merge_request import MergeRequest
    from omnigraph.branch.reset import ResetResult
    from omnigraph.executor import QueryResult
    from omnigraph.executor.explain import Explanation
    from omnigraph.graph import Commit, Graph, LoadResult, MutationResult
    from omnigraph.graph.merge_requests import RequestPreview
    from omnigraph.graph.results import EmbedResult
    from omnigraph.manifest import CommitLog, Snapshot
    from omnigraph.manifest.checks import Check
    from omnigraph.manifest.tags import Tag
    from omnigraph.pipeline.preview import LoadPreview
    from omnigraph.upkeep.apply_schema import SchemaResult

Json = dict[str, Any]

LOG_COMMITS = 30
"""How many commits a log has unless it is told otherwise."""
PATCH_CHANGES = 100
"""How many changes of a commit a patch has unless it is told otherwise."""
DETAILS = ("stat", "patch")


class RequestVerb(StrEnum):
    """What is said about a merge request, by the end of its path."""

    COMMENT = "comments"
    APPROVE = "approvals"
    OBJECT = "changes-requested"
    CLOSE = "close"
    REOPEN = "reopen"


@dataclass(frozen=True, slots=True)
class QueryText:
    """The text of a query, and the file that it was read from."""

    text: str
    path: Path | None = None

    @property
    def name(self) -> str:
        return "-e" if self.path is None else str(self.path)


@dataclass(frozen=True, slots=True)
class QueryCall:
    """A query to run on a branch or a snapshot; without a source, `name` is a stored query."""

    source: QueryText | None
    name: str | None
    params: Any = None
    branch: str | None = None
    snapshot: str | None = None
    schema_of: str | None = None


@dataclass(frozen=True, slots=True)
class FeedPart:
    """Which changes are asked for: from where, how many, and of what."""

    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None
    limit: int | None = None
    kinds: Sequence[str] | None = None
    types: Sequence[str] | None = None
    ops: Sequence[str] | None = None

    @property
    def filters(self) -> Json:
        return {"kinds": self.kinds, "types": self.types, "ops": self.ops}

    @property
    def page(self) -> Json:
        return {"page_token": self.page_token, "limit": self.limit}


@dataclass(frozen=True, slots=True)
class LogPart:
    """Which commits of a log are asked for, and whether with counts or changes."""

    type: str | None = None
    id: str | None = None
    actor: str | None = None
    since: str | None = None
    until: str | None = None
    message: str | None = None
    after: str | None = None
    limit: int | None = None
    detail: str | None = None
    changes: int | None = None

    @property
    def filters(self) -> Json:
        names = ("type", "id", "actor", "since", "until", "message", "after", "limit")
        return {name: getattr(self, name) for name in names}

    @property
    def params(self) -> Json:
        """What is asked for, as parameters of a URL."""
        given = {**self.filters, "detail": self.detail, "changes": self.changes}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """Which Blob is asked for, and which bytes of it."""

    kind: str
    type_name: str
    entity_id: str
    property_name: str
    branch: str | None = None
    snapshot: str | None = None
    offset: int = 0
    length: int | None = None


@dataclass(frozen=True, slots=True)
class BlobContent:
    """A Blob: what is known of it, and the bytes that were asked for, part by part."""

    size: int
    etag: str
    snapshot: str
    parts: Iterator[bytes]


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


def branch_created_to_json(uri: str, source: str, name: str, actor: str | None) -> Json:
    return {"uri": uri, "from": source, "name": name, "actor_id": actor}


def removed_to_json(uri: str, name: str, actor: str | None) -> Json:
    return {"uri": uri, "name": name, "actor_id": actor}


def reset_to_json(result: ResetResult, actor: str | None) -> Json:
    return {**result.to_json(), "actor_id": actor}


def tags_to_json(tags: Iterable[Tag]) -> Json:
    return {"tags": [tag.to_json() for tag in tags]}


def merge_requests_to_json(requests: Sequence[MergeRequest], limit: int) -> Json:
    """A page of merge requests; of those beyond the limit there are more."""
    shown = requests[:limit]
    more = shown[-1].number if len(requests) > limit else None
    return {"merge_requests": [each.to_summary() for each in shown], "next_before": more}


def checks_to_json(checks: Iterable[Check]) -> Json:
    return {"checks": [check.to_json() for check in checks]}


def check_failures_to_json(failures: Iterable[CheckFailure]) -> Json:
    return {"failures": [failure.to_json() for failure in failures]}


def conflict_to_json(conflict: MergeConflict) -> Json:
    """One thing a merge could not decide, with its three sides where it has them."""
    return {
        **conflict.to_json(),
        **entity_of(conflict.table_key),
        "entity_id": conflict.row_id,
    }


CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "bad_request",
    409: "conflict",
    412: "conflict",
    413: "bad_request",
    415: "bad_request",
    416: "bad_request",
    429: "too_many_requests",
    500: "internal",
}
"""The word for each status of an error."""


def error_to_json(error: OmnigraphError) -> Json:
    """An error as `--json` prints it: the text, the code of its kind, and what a server added."""
    if isinstance(error, RemoteError):
        said, code, details = str(error), error.code, error.details
    else:
        said, code, details = error.render(), CODES.get(error.http_status), {}
    return {"error": said, **({} if code is None else {"code": code}), **details}


def parse_conflict(item: Mapping[str, Any]) -> MergeConflict:
    """The conflict that `conflict_to_json` wrote."""
    return MergeConflict(
        kind=str(item["kind"]),
        table_key=str(item["table_key"]),
        row_id=item.get("row_id"),
        message=str(item.get("message", "")),
        base=item.get("base"),
        ours=item.get("ours"),
        theirs=item.get("theirs"),
    )


def undone_to_json(
    done: MergeResult | MutationResult, asked: UndoCall, actor: str | None, commit: Commit | None
) -> Json:
    """What a revert, a cherry-pick or a restore did; `commit` is null when nothing differed."""
    facts: Json
    if isinstance(asked, RestoreCall):
        result = cast("MutationResult", done)
        facts = {
            "source": asked.revision,
            "target": asked.branch,
            "affected_nodes": result.affected_nodes,
            "affected_edges": result.affected_edges,
            "actor_id": actor,
        }
    else:
        facts = {**cast("MergeResult", done).to_json(), "actor_id": actor}
    return {**facts, "commit": commit_to_json(commit) if commit else None}


def merge_preview_to_json(preview: MergePreview) -> Json:
    """What a merge would do. The changes are an iterator, since there can be many."""
    return {
        "source": preview.source,
        "target": preview.target,
        "outcome": preview.outcome.value,
        "changes": preview.changes.to_stream(),
        "conflicts": [conflict_to_json(each) for each in preview.conflicts],
    }


def request_preview_to_json(preview: RequestPreview) -> Json:
    """What merging a request would do, with the checks that the merge is held to."""
    checks = [each.to_json() for each in preview.checks]
    return {**merge_preview_to_json(preview.merge), "checks": checks}


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


def entity_of(table_key: str) -> Json:
    """A table key in the newer words: `node:Person` is the node type Person."""
    kind, _, name = table_key.partition(":")
    return {"entity_kind": kind, "type_name": name}


def _types_to_json(result: LoadResult, kind: str) -> list[Json]:
    return [
        {"name": key.partition(":")[2], "entities_loaded": count, "rows_loaded": count}
        for key, count in sorted(result.tables.items())
        if key.startswith(f"{kind}:")
    ]
