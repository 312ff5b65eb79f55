"""Operations: the one table of what is served. Routes, OpenAPI and the reference page come of it.

Paths are relative to the base of a graph: `/graphs/{graph_id}`, and `/` when there is only one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from pydantic import BaseModel
from starlette.responses import Response

from omnigraph.dataclass import dataclass
from omnigraph.policy import Action
from omnigraph.server import merge_request_models as requested
from omnigraph.server import request_models as sent
from omnigraph.server import response_models as answered
from omnigraph.server import (
    routes_blobs,
    routes_branches,
    routes_changes,
    routes_checks,
    routes_commits,
    routes_editor,
    routes_exports,
    routes_jobs,
    routes_loads,
    routes_mcp,
    routes_queries,
    routes_reads,
    routes_requests,
    routes_review,
    routes_schema,
    routes_server,
    routes_tags,
    routes_undo,
    routes_workbench,
    routes_writes,
    undo_models,
    uploads,
)
from omnigraph.server.call import Call
from omnigraph.server.envelope import JSON
from omnigraph.server.events import EVENTS
from omnigraph.wire import DETAILS

Handler: TypeAlias = Callable[[Call], Awaitable[Response]]
Model: TypeAlias = type[BaseModel]

READ_ERRORS = (400, 401, 403, 404, 408, 413, 415, 500, 503)
WRITE_ERRORS = (*READ_ERRORS, 409, 429)
FEED_ERRORS = (*READ_ERRORS, 410)
BLOB_ERRORS = (*READ_ERRORS, 412, 416)
CONDITIONAL_ERRORS = (*WRITE_ERRORS, 412)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of a path, a parameter of the URL or a header."""

    name: str
    place: str
    description: str
    is_required: bool = False
    values: tuple[str, ...] = ()

    def to_openapi(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if self.values:
            schema["enum"] = list(self.values)
        return {
            "name": self.name,
            "in": self.place,
            "description": self.description,
            "required": self.is_required,
            "schema": schema,
        }


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a client can ask for. Without an action, it reveals nothing about a graph."""

    operation_id: str
    method: str
    path: str
    handler: Handler
    action: Action | None
    outputs: tuple[type[BaseModel], ...] = ()
    takes: type[BaseModel] | None = None
    is_body_required: bool = True
    takes_media: str = JSON
    gives_media: str = JSON
    other_media: tuple[str, ...] = ()
    """What it gives instead when it is asked to."""
    parameters: tuple[Parameter, ...] = ()
    success: int = 200
    other_successes: tuple[int, ...] = ()
    errors: tuple[int, ...] = READ_ERRORS
    is_of_server: bool = False
    is_deprecated: bool = False
    is_described: bool = True
    """Whether OpenAPI tells of it: MCP describes itself."""

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").split("\n")[0]


_BRANCH = Parameter("branch", "query", "The branch; `main` by default.")
_CONDITION = Parameter(
    routes_writes.IF_COMMIT_HEADER,
    "header",
    "The graph commit that has to be the head of the branch.",
    is_required=True,
)
_LOAD = (
    Parameter("branch", "query", "The branch to load into; `main` by default."),
    Parameter("from", "query", "Where a missing branch starts from."),
    Parameter(
        "mode",
        "query",
        "How records meet rows; `merge` by default.",
        values=("overwrite", "append", "merge"),
    ),
    Parameter(
        "embed",
        "query",
        "Whether missing `@embed` vectors are made; `true` by default.",
        values=("true", "false"),
    ),
    Parameter("message", "query", "Why the commit is made; it stays with it."),
    Parameter("meta", "query", "What else to note on the commit: `key=value`; repeatable."),
)
_DRY_RUN = Parameter(
    "dry_run",
    "query",
    "Whether to check and count only, and write nothing; `false` by default.",
    values=("true", "false"),
)
_LOG = (
    _BRANCH,
    Parameter("type", "query", "Only commits that changed rows of this type, or the type."),
    Parameter("id", "query", "Only those that changed this node or edge of the type."),
    Parameter("actor", "query", "Only commits by this actor."),
    Parameter("since", "query", "Only those made at this time or later."),
    Parameter("until", "query", "Only those made by this time."),
    Parameter("message", "query", "Only those with this text in their message, in any case."),
    Parameter("after", "query", "The next page: the last commit of the page before."),
    Parameter("limit", "query", "Number of commits; of a log, and with a detail, 30 by default."),
    Parameter(
        "detail", "query", "Also what each changed: counts by table, or changes.", values=DETAILS
    ),
    Parameter("changes", "query", "Changes of each commit; 100 by default, at most 8,192."),
)
_ENTITY = (
    Parameter("type", "query", "The type of the node or edge.", is_required=True),
    Parameter("id", "query", "The id of the node or edge.", is_required=True),
    Parameter("branch", "query", "The branch; `main` by default."),
)
_FILTERS = (
    Parameter("kind", "query", "Only nodes or edges.", values=("node", "edge")),
    Parameter("type", "query", "Only this type; may be repeated."),
    Parameter("op", "query", "Only these; repeatable.", values=("insert", "update", "delete")),
)
_CHANGES_MAX = Parameter("changes_max", "query", "How many changes are listed; all by default.")
_DIFF = (
    Parameter(
        "from", "query", "The earlier state: a branch, commit or `branch@time`.", is_required=True
    ),
    Parameter("to", "query", "The later state; `main` by default."),
    *_FILTERS,
    Parameter("format", "query", "`json` by default.", values=routes_review.DIFF_FORMATS),
    _CHANGES_MAX,
)
_PAGE = (
    Parameter("page_token", "query", "The `next_page_token` of the page before."),
    Parameter("limit", "query", "Changes of a page; 1,000 by default, at most 8,192."),
)
_POLL = (
    _BRANCH,
    Parameter("cursor", "query", "The `cursor` of the poll before."),
    Parameter("start", "query", "`now` (the default), `beginning` or `after:COMMIT`."),
    *_PAGE,
    *_FILTERS,
)
_COMMIT = Parameter("commit_id", "path", "The graph commit.", is_required=True)
_BLOB = (
    Parameter("entity", "query", "A node or an edge.", is_required=True, values=("node", "edge")),
    Parameter("type", "query", "The type of the node or edge.", is_required=True),
    Parameter("id", "query", "The id of the node or edge.", is_required=True),
    Parameter("property", "query", "The Blob property.", is_required=True),
    _BRANCH,
    Parameter("snapshot", "query", "A graph commit, instead of a branch."),
)
_PUT_BLOB = (
    *_BLOB[:5],
    Parameter("message", "query", "Why: a message that stays with the commit."),
    Parameter("meta", "query", "A fact about the commit, `key=value`; may be repeated."),
    Parameter("If-Match", "header", "Write only while the Blob has this ETag."),
)
_REQUESTS = (
    Parameter("state", "query", "`open` by default.", values=("open", "merged", "closed", "all")),
    Parameter("limit", "query", "Requests of a page; 50 by default, at most 1,000."),
    Parameter("before", "query", "Only those of smaller numbers: the `next_before` of a page."),
)
_NUMBER = Parameter("number", "path", "The number of the merge request.", is_required=True)
_EVENTS = (
    Parameter("after", "query", "Only events after this one: the `next_after` of a page."),
    Parameter("limit", "query", "Events of a page; 100 by default, at most 1,000."),
)
_STORED = Parameter("name", "path", "The name of the stored query.", is_required=True)

_NAME = "/queries/{name}"
_REQUEST = "/merge-requests/{number}"


def _get(
    operation_id: str,
    path: str,
    handler: Handler,
    *outputs: Model,
    action: Action | None = Action.READ,
    **rest: Any,
) -> Operation:
    return Operation(operation_id, "GET", path, handler, action, outputs, **rest)


def _post(
    operation_id: str,
    path: str,
    handler: Handler,
    takes: Model | None,
    *outputs: Model,
    action: Action,
    **rest: Any,
) -> Operation:
    return Operation(operation_id, "POST", path, handler, action, outputs, takes, **rest)


_read = partial(_post, action=Action.READ)
_write = partial(_post, action=Action.CHANGE, errors=WRITE_ERRORS)
_conditional_write = partial(_write, errors=CONDITIONAL_ERRORS)

_say = partial(_write, action=Action.MERGE_REQUEST, is_body_required=False, parameters=(_NUMBER,))

# A table: with one argument per line it would be twice as long.
# fmt: off
OPERATIONS: tuple[Operation, ...] = (
    _read("query", "/query", routes_reads.query, sent.QueryRequest, answered.ReadOutput),
    _read(
        "read", "/read", routes_reads.read, sent.ReadRequest, answered.FrozenReadOutput,
        is_deprecated=True
    ),
    _write(
        "invoke_query", _NAME, routes_queries.invoke_query, sent.InvokeRequest, answered.ReadOutput,
        answered.ChangeOutput, action=Action.INVOKE_QUERY, is_body_required=False,
        parameters=(_STORED,)
    ),
    _conditional_write(
        "invoke_query_if_graph_commit", f"{_NAME}/if-graph-commit",
        routes_queries.invoke_query_if_graph_commit, sent.InvokeRequest, answered.ChangeOutput,
        action=Action.INVOKE_QUERY, is_body_required=False, parameters=(_STORED, _CONDITION)
    ),
    _get("list_queries", "/queries", routes_queries.list_queries, answered.QueriesCatalog),
    Operation(
        "store_query", "PUT", _NAME, routes_queries.store_query, Action.ADMIN,
        (answered.StoredQueryItem,), sent.StoreQueryRequest, parameters=(_STORED,),
        errors=WRITE_ERRORS
    ),
    _write("mutate", "/mutate", routes_writes.mutate, sent.ChangeRequest, answered.ChangeOutput),
    _write(
        "change", "/change", routes_writes.change, sent.ChangeRequest, answered.ChangeOutput,
        is_deprecated=True
    ),
    _conditional_write(
        "mutate_if_graph_commit", "/mutate/if-graph-commit", routes_writes.mutate_if_graph_commit,
        sent.ChangeRequest, answered.ChangeOutput, parameters=(_CONDITION,)
    ),
    _write("load", "/load", routes_loads.load, sent.IngestRequest, answered.IngestOutput),
    _write(
        "ingest", "/ingest", routes_loads.ingest, sent.IngestRequest, answered.IngestOutput,
        is_deprecated=True
    ),
    _write(
        "loadNdjson", "/load/ndjson", routes_loads.load_ndjson, None, answered.GraphBatchLoadOutput,
        takes_media=routes_loads.NDJSON, parameters=_LOAD
    ),
    _write(
        "loadFiles", "/load/files", routes_loads.load_files, None, answered.GraphBatchLoadOutput,
        answered.LoadPreviewOutput, takes_media=uploads.FORM, parameters=(*_LOAD, _DRY_RUN)
    ),
    _write(
        "embed", "/embed", routes_loads.embed, sent.EmbedRequest, answered.EmbedOutput,
        is_body_required=False
    ),
    _read(
        "export", "/export", routes_exports.export, sent.ExportRequest, action=Action.EXPORT,
        gives_media=routes_loads.NDJSON
    ),
    _get(
        "getSnapshot", "/snapshot", routes_reads.get_snapshot, answered.SnapshotOutput,
        parameters=(
            _BRANCH, Parameter("snapshot", "query", "A graph commit or revision instead.")
        )
    ),
    _get(
        "getSchema", "/schema", routes_schema.get_schema, answered.SchemaOutput,
        parameters=(_BRANCH,)
    ),
    _get(
        "getCatalog", "/catalog", routes_schema.get_catalog, answered.CatalogOutput,
        parameters=(_BRANCH,)
    ),
    _read(
        "completeQuery", "/editor/complete", routes_editor.complete, sent.CompleteRequest,
        answered.CompletionOutput
    ),
    _read(
        "checkQuery", "/editor/check", routes_editor.check, sent.EditorRequest, answered.CheckOutput
    ),
    _get(
        "getPermissions", "/permissions", routes_server.get_permissions, answered.PermissionsOutput
    ),
    _write(
        "applySchema", "/schema/apply", routes_schema.apply_schema, sent.SchemaApplyRequest,
        answered.SchemaApplyOutput, action=Action.SCHEMA_APPLY
    ),
    _get(
        "listChecks", "/checks", routes_checks.list_checks, answered.ChecksOutput,
        parameters=(_BRANCH,)
    ),
    _write(
        "applyChecks", "/checks", routes_checks.apply_checks, sent.ChecksRequest,
        answered.ChecksAppliedOutput, action=Action.SCHEMA_APPLY
    ),
    _get(
        "runChecks", "/checks/run", routes_checks.run_checks, answered.ChecksRunOutput,
        parameters=(_BRANCH,)
    ),
    _get("listBranches", "/branches", routes_branches.list_branches, answered.BranchesOutput),
    _write(
        "createBranch", "/branches", routes_branches.create_branch, sent.BranchCreateRequest,
        answered.BranchCreateOutput, action=Action.BRANCH_CREATE
    ),
    _conditional_write(
        "resetBranch", "/branches/reset", routes_branches.reset_branch, sent.BranchResetRequest,
        answered.BranchResetOutput, action=Action.BRANCH_DELETE
    ),
    _write(
        "mergeBranches", "/branches/merge", routes_branches.merge_branches, sent.BranchMergeRequest,
        answered.BranchMergeOutput, answered.MergePreviewOutput, action=Action.BRANCH_MERGE
    ),
    _read(
        "previewMerge", "/branches/merge/preview", routes_branches.preview_merge,
        sent.MergePreviewRequest, answered.MergePreviewOutput, errors=(*READ_ERRORS, 409)
    ),
    _write("revert", "/revert", routes_undo.revert, undo_models.RevertRequest, answered.UndoOutput),
    _read(
        "previewRevert", "/revert/preview", routes_undo.preview_revert,
        undo_models.RevertPreviewRequest, answered.MergePreviewOutput, errors=(*READ_ERRORS, 409)
    ),
    _write(
        "cherryPick", "/cherry-pick", routes_undo.cherry_pick, undo_models.PickRequest,
        answered.UndoOutput
    ),
    _read(
        "previewCherryPick", "/cherry-pick/preview", routes_undo.preview_cherry_pick,
        undo_models.PickPreviewRequest, answered.MergePreviewOutput, errors=(*READ_ERRORS, 409)
    ),
    _write(
        "restore", "/restore", routes_undo.restore, undo_models.RestoreRequest,
        answered.RestoreOutput
    ),
    _read(
        "previewRestore", "/restore/preview", routes_undo.preview_restore,
        undo_models.RestorePreviewRequest, answered.MergePreviewOutput, errors=(*READ_ERRORS, 409)
    ),
    _get(
        "diff", "/diff", routes_review.diff, answered.DiffOutput, parameters=_DIFF,
        other_media=(routes_review.HTML, routes_loads.NDJSON)
    ),
    _get(
        "log", "/log", routes_commits.log, answered.CommitsOutput, answered.PatchesOutput,
        parameters=_LOG
    ),
    _get(
        "history", "/history", routes_review.history, answered.HistoryOutput, parameters=_ENTITY
    ),
    _get("blame", "/blame", routes_review.blame, answered.BlameOutput, parameters=_ENTITY),
    _read(
        "explain", "/explain", routes_review.explain, sent.ExplainRequest, answered.ExplainOutput
    ),
    _read("bisect", "/bisect", routes_review.bisect, sent.BisectRequest, answered.Commit),
    Operation(
        "deleteBranch", "DELETE", "/branches/{branch:path}", routes_branches.delete_branch,
        Action.BRANCH_DELETE, (answered.BranchDeleteOutput,),
        parameters=(Parameter("branch", "path", "The branch to remove.", is_required=True),),
        errors=WRITE_ERRORS
    ),
    _get("listTags", "/tags", routes_tags.list_tags, answered.TagsOutput),
    _write(
        "createTag", "/tags", routes_tags.create_tag, sent.TagRequest, answered.TagOutput,
        action=Action.BRANCH_CREATE
    ),
    Operation(
        "deleteTag", "DELETE", "/tags/{tag:path}", routes_tags.delete_tag,
        Action.BRANCH_DELETE, (answered.BranchDeleteOutput,),
        parameters=(Parameter("tag", "path", "The tag to remove.", is_required=True),),
        errors=WRITE_ERRORS
    ),
    _get(
        "listMergeRequests", "/merge-requests", routes_requests.list_merge_requests,
        requested.MergeRequestsOutput, parameters=_REQUESTS
    ),
    _write(
        "openMergeRequest", "/merge-requests", routes_requests.open_merge_request,
        requested.OpenMergeRequest, requested.MergeRequestOutput, action=Action.MERGE_REQUEST
    ),
    _get(
        "getMergeRequest", _REQUEST, routes_requests.get_merge_request,
        requested.MergeRequestOutput, parameters=(_NUMBER, *_EVENTS)
    ),
    _get(
        "previewMergeRequest", f"{_REQUEST}/preview", routes_requests.preview_merge_request,
        requested.MergeRequestPreviewOutput, parameters=(_NUMBER, _CHANGES_MAX),
        errors=(*READ_ERRORS, 409)
    ),
    Operation(
        "editMergeRequest", "PATCH", _REQUEST, routes_requests.edit_merge_request,
        Action.MERGE_REQUEST, (requested.MergeRequestOutput,), requested.EditMergeRequest,
        parameters=(_NUMBER,), errors=WRITE_ERRORS
    ),
    _say(
        "commentOnMergeRequest", f"{_REQUEST}/comments", routes_requests.comment_on_merge_request,
        requested.CommentRequest, requested.MergeRequestOutput, is_body_required=True
    ),
    _say(
        "approveMergeRequest", f"{_REQUEST}/approvals", routes_requests.approve_merge_request,
        requested.ApproveRequest, requested.MergeRequestOutput, action=Action.MERGE_APPROVE
    ),
    Operation(
        "withdrawApproval", "DELETE", f"{_REQUEST}/approvals", routes_requests.withdraw_approval,
        Action.MERGE_APPROVE, (requested.MergeRequestOutput,), parameters=(_NUMBER,),
        errors=WRITE_ERRORS
    ),
    _say(
        "requestChanges", f"{_REQUEST}/changes-requested", routes_requests.request_changes,
        requested.SayRequest, requested.MergeRequestOutput, action=Action.MERGE_APPROVE
    ),
    _say(
        "closeMergeRequest", f"{_REQUEST}/close", routes_requests.close_merge_request,
        requested.SayRequest, requested.MergeRequestOutput
    ),
    _say(
        "reopenMergeRequest", f"{_REQUEST}/reopen", routes_requests.reopen_merge_request,
        requested.SayRequest, requested.MergeRequestOutput
    ),
    _say(
        "completeMergeRequest", f"{_REQUEST}/merge", routes_requests.complete_merge_request,
        requested.CompleteRequestBody, requested.MergeRequestDoneOutput, action=Action.BRANCH_MERGE
    ),
    _get(
        "listCommits", "/commits", routes_commits.list_commits, answered.CommitsOutput,
        answered.PatchesOutput, parameters=_LOG
    ),
    _get(
        "getCommit", "/commits/{commit_id}", routes_commits.get_commit, answered.Commit,
        parameters=(_COMMIT,)
    ),
    _get(
        "getCommitChanges", "/commits/{commit_id}/changes", routes_changes.get_commit_changes,
        answered.CommitChanges, parameters=(_COMMIT, *_PAGE, *_FILTERS), errors=FEED_ERRORS
    ),
    _get(
        "pollChanges", "/changes", routes_changes.poll_changes, answered.ChangeFeed,
        parameters=_POLL, errors=(*FEED_ERRORS, 429), other_media=(EVENTS,)
    ),
    _read(
        "captureChangeBaseline", "/changes/baseline", routes_changes.capture_baseline,
        sent.BaselineRequest, action=Action.EXPORT, gives_media=routes_loads.NDJSON,
        is_body_required=False
    ),
    _get(
        "getBlob", "/blob", routes_blobs.get_blob, parameters=_BLOB, errors=BLOB_ERRORS,
        gives_media=routes_blobs.BYTES, other_successes=(206, 304)
    ),
    Operation(
        "headBlob", "HEAD", "/blob", routes_blobs.head_blob, Action.READ, parameters=_BLOB,
        errors=BLOB_ERRORS, gives_media=routes_blobs.BYTES, other_successes=(304,)
    ),
    Operation(
        "putBlob", "PUT", "/blob", routes_blobs.put_blob, Action.CHANGE, (answered.BlobWritten,),
        takes_media=routes_blobs.BYTES, parameters=_PUT_BLOB, errors=CONDITIONAL_ERRORS
    ),
    _write(
        "startJob", "/jobs", routes_jobs.start_job, sent.JobRequest, answered.JobOutput,
        action=Action.OPTIMIZE, success=202
    ),
    _get(
        "listJobs", "/jobs", routes_jobs.list_jobs, answered.JobsOutput, action=Action.VERIFY
    ),
    _get(
        "getJob", "/jobs/{job_id}", routes_jobs.get_job, answered.JobOutput, action=Action.VERIFY,
        parameters=(Parameter("job_id", "path", "The job.", is_required=True),)
    ),
    _get(
        "doctor", "/doctor", routes_jobs.doctor, answered.DoctorOutput, action=Action.VERIFY
    ),
    _read("mcp", "/mcp", routes_mcp.serve_mcp, None, is_described=False),
    _read(
        "server_mcp", "/mcp", routes_mcp.serve_server_mcp, None, action=Action.GRAPH_LIST,
        is_of_server=True, is_described=False
    ),
    _get(
        "health", "/healthz", routes_server.health, answered.HealthOutput, action=None, errors=()
    ),
    _get(
        "ready", "/readyz", routes_server.ready, answered.ReadyOutput, action=None, errors=(503,),
        is_of_server=True
    ),
    _get(
        "home", "/", routes_workbench.home, action=None, gives_media="text/html", errors=(),
        is_of_server=True
    ),
    _get(
        "getAsset", "/workbench/{name}", routes_workbench.get_asset, action=None, errors=(404,),
        is_of_server=True, is_described=False
    ),
    _get(
        "metrics", "/metrics", routes_server.metrics, action=None, gives_media="text/plain",
        errors=(401,), is_of_server=True
    ),
    _get(
        "listGraphs", "/graphs", routes_server.list_graphs, answered.GraphsOutput,
        action=Action.GRAPH_LIST, errors=(401, 403, 405, 500), is_of_server=True
    ),
)
# fmt: on
