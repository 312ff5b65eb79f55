"""Operations: the one table of what is served. Routes, OpenAPI and the reference page come of it.

Paths are relative to the base of a graph: `/graphs/{graph_id}`, and `/` when there is only one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

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
from omnigraph.server.events import EVENTS
from omnigraph.server.operation import (
    BLOB_ERRORS,
    CONDITIONAL_ERRORS,
    FEED_ERRORS,
    READ_ERRORS,
    WRITE_ERRORS,
    Handler,
    Model,
    Operation,
    Parameter,
)
from omnigraph.server.parameters import (
    BLOB,
    BRANCH,
    CHANGES_MAX,
    COMMIT,
    CONDITION,
    DIFF,
    DRY_RUN,
    ENTITY,
    EVENT_PAGE,
    FILTERS,
    LOAD,
    LOG,
    NUMBER,
    PAGE,
    POLL,
    PUT_BLOB,
    REQUESTS,
    STORED,
)

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

_say = partial(_write, action=Action.MERGE_REQUEST, is_body_required=False, parameters=(NUMBER,))

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
        parameters=(STORED,)
    ),
    _conditional_write(
        "invoke_query_if_graph_commit", f"{_NAME}/if-graph-commit",
        routes_queries.invoke_query_if_graph_commit, sent.InvokeRequest, answered.ChangeOutput,
        action=Action.INVOKE_QUERY, is_body_required=False, parameters=(STORED, CONDITION)
    ),
    _get("list_queries", "/queries", routes_queries.list_queries, answered.QueriesCatalog),
    Operation(
        "store_query", "PUT", _NAME, routes_queries.store_query, Action.ADMIN,
        (answered.StoredQueryItem,), sent.StoreQueryRequest, parameters=(STORED,),
        errors=WRITE_ERRORS
    ),
    _write("mutate", "/mutate", routes_writes.mutate, sent.ChangeRequest, answered.ChangeOutput),
    _write(
        "change", "/change", routes_writes.change, sent.ChangeRequest, answered.ChangeOutput,
        is_deprecated=True
    ),
    _conditional_write(
        "mutate_if_graph_commit", "/mutate/if-graph-commit", routes_writes.mutate_if_graph_commit,
        sent.ChangeRequest, answered.ChangeOutput, parameters=(CONDITION,)
    ),
    _write("load", "/load", routes_loads.load, sent.IngestRequest, answered.IngestOutput),
    _write(
        "ingest", "/ingest", routes_loads.ingest, sent.IngestRequest, answered.IngestOutput,
        is_deprecated=True
    ),
    _write(
        "loadNdjson", "/load/ndjson", routes_loads.load_ndjson, None, answered.GraphBatchLoadOutput,
        takes_media=routes_loads.NDJSON, parameters=LOAD
    ),
    _write(
        "loadFiles", "/load/files", routes_loads.load_files, None, answered.GraphBatchLoadOutput,
        answered.LoadPreviewOutput, takes_media=uploads.FORM, parameters=(*LOAD, DRY_RUN)
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
            BRANCH, Parameter("snapshot", "query", "A graph commit or revision instead.")
        )
    ),
    _get(
        "getSchema", "/schema", routes_schema.get_schema, answered.SchemaOutput,
        parameters=(BRANCH,)
    ),
    _get(
        "getCatalog", "/catalog", routes_schema.get_catalog, answered.CatalogOutput,
        parameters=(BRANCH,)
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
        parameters=(BRANCH,)
    ),
    _write(
        "applyChecks", "/checks", routes_checks.apply_checks, sent.ChecksRequest,
        answered.ChecksAppliedOutput, action=Action.SCHEMA_APPLY
    ),
    _get(
        "runChecks", "/checks/run", routes_checks.run_checks, answered.ChecksRunOutput,
        parameters=(BRANCH,)
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
        "diff", "/diff", routes_review.diff, answered.DiffOutput, parameters=DIFF,
        other_media=(routes_review.HTML, routes_loads.NDJSON)
    ),
    _get(
        "log", "/log", routes_commits.log, answered.CommitsOutput, answered.PatchesOutput,
        parameters=LOG
    ),
    _get(
        "history", "/history", routes_review.history, answered.HistoryOutput, parameters=ENTITY
    ),
    _get("blame", "/blame", routes_review.blame, answered.BlameOutput, parameters=ENTITY),
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
        requested.MergeRequestsOutput, parameters=REQUESTS
    ),
    _write(
        "openMergeRequest", "/merge-requests", routes_requests.open_merge_request,
        requested.OpenMergeRequest, requested.MergeRequestOutput, action=Action.MERGE_REQUEST
    ),
    _get(
        "getMergeRequest", _REQUEST, routes_requests.get_merge_request,
        requested.MergeRequestOutput, parameters=(NUMBER, *EVENT_PAGE)
    ),
    _get(
        "previewMergeRequest", f"{_REQUEST}/preview", routes_requests.preview_merge_request,
        answered.MergePreviewOutput, parameters=(NUMBER, CHANGES_MAX),
        errors=(*READ_ERRORS, 409)
    ),
    Operation(
        "editMergeRequest", "PATCH", _REQUEST, routes_requests.edit_merge_request,
        Action.MERGE_REQUEST, (requested.MergeRequestOutput,), requested.EditMergeRequest,
        parameters=(NUMBER,), errors=WRITE_ERRORS
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
        Action.MERGE_APPROVE, (requested.MergeRequestOutput,), parameters=(NUMBER,),
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
        answered.PatchesOutput, parameters=LOG
    ),
    _get(
        "getCommit", "/commits/{commit_id}", routes_commits.get_commit, answered.Commit,
        parameters=(COMMIT,)
    ),
    _get(
        "getCommitChanges", "/commits/{commit_id}/changes", routes_changes.get_commit_changes,
        answered.CommitChanges, parameters=(COMMIT, *PAGE, *FILTERS), errors=FEED_ERRORS
    ),
    _get(
        "pollChanges", "/changes", routes_changes.poll_changes, answered.ChangeFeed,
        parameters=POLL, errors=(*FEED_ERRORS, 429), other_media=(EVENTS,)
    ),
    _read(
        "captureChangeBaseline", "/changes/baseline", routes_changes.capture_baseline,
        sent.BaselineRequest, action=Action.EXPORT, gives_media=routes_loads.NDJSON,
        is_body_required=False
    ),
    _get(
        "getBlob", "/blob", routes_blobs.get_blob, parameters=BLOB, errors=BLOB_ERRORS,
        gives_media=routes_blobs.BYTES, other_successes=(206, 304)
    ),
    Operation(
        "headBlob", "HEAD", "/blob", routes_blobs.head_blob, Action.READ, parameters=BLOB,
        errors=BLOB_ERRORS, gives_media=routes_blobs.BYTES, other_successes=(304,)
    ),
    Operation(
        "putBlob", "PUT", "/blob", routes_blobs.put_blob, Action.CHANGE, (answered.BlobWritten,),
        takes_media=routes_blobs.BYTES, parameters=PUT_BLOB, errors=CONDITIONAL_ERRORS
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
