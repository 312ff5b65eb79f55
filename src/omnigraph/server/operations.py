"""Operations: the one table of what is served. Routes, OpenAPI and the reference page come of it.

Paths are relative to the base of a graph: `/graphs/{graph_id}`, and `/` when there is only one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import BaseModel
from starlette.responses import Response

from omnigraph.server import (
    request_models,
    response_models,
    routes_branches,
    routes_commits,
    routes_exports,
    routes_loads,
    routes_queries,
    routes_reads,
    routes_schema,
    routes_server,
    routes_writes,
)
from omnigraph.server.call import Call
from omnigraph.server.envelope import JSON

Handler: TypeAlias = Callable[[Call], Awaitable[Response]]

READ_ERRORS = (400, 401, 403, 404, 408, 413, 415, 500, 503)
WRITE_ERRORS = (*READ_ERRORS, 409, 429)
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
    """One thing a client can ask for. Its id is what gate.py knows it by."""

    operation_id: str
    method: str
    path: str
    handler: Handler
    outputs: tuple[type[BaseModel], ...] = ()
    takes: type[BaseModel] | None = None
    is_body_required: bool = True
    takes_media: str = JSON
    gives_media: str = JSON
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[int, ...] = READ_ERRORS
    is_of_server: bool = False
    is_deprecated: bool = False

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
_STORED = Parameter("name", "path", "The name of the stored query.", is_required=True)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "query",
        "POST",
        "/query",
        routes_reads.query,
        (response_models.ReadOutput,),
        request_models.QueryRequest,
    ),
    Operation(
        "read",
        "POST",
        "/read",
        routes_reads.read,
        (response_models.FrozenReadOutput,),
        request_models.ReadRequest,
        is_deprecated=True,
    ),
    Operation(
        "invoke_query",
        "POST",
        "/queries/{name}",
        routes_queries.invoke_query,
        (response_models.ReadOutput, response_models.ChangeOutput),
        request_models.InvokeRequest,
        is_body_required=False,
        parameters=(_STORED,),
        errors=WRITE_ERRORS,
    ),
    Operation(
        "invoke_query_if_graph_commit",
        "POST",
        "/queries/{name}/if-graph-commit",
        routes_queries.invoke_query_if_graph_commit,
        (response_models.ChangeOutput,),
        request_models.InvokeRequest,
        is_body_required=False,
        parameters=(_STORED, _CONDITION),
        errors=CONDITIONAL_ERRORS,
    ),
    Operation(
        "list_queries",
        "GET",
        "/queries",
        routes_queries.list_queries,
        (response_models.QueriesCatalog,),
    ),
    Operation(
        "mutate",
        "POST",
        "/mutate",
        routes_writes.mutate,
        (response_models.ChangeOutput,),
        request_models.ChangeRequest,
        errors=WRITE_ERRORS,
    ),
    Operation(
        "change",
        "POST",
        "/change",
        routes_writes.change,
        (response_models.ChangeOutput,),
        request_models.ChangeRequest,
        errors=WRITE_ERRORS,
        is_deprecated=True,
    ),
    Operation(
        "mutate_if_graph_commit",
        "POST",
        "/mutate/if-graph-commit",
        routes_writes.mutate_if_graph_commit,
        (response_models.ChangeOutput,),
        request_models.ChangeRequest,
        parameters=(_CONDITION,),
        errors=CONDITIONAL_ERRORS,
    ),
    Operation(
        "load",
        "POST",
        "/load",
        routes_loads.load,
        (response_models.IngestOutput,),
        request_models.IngestRequest,
        errors=WRITE_ERRORS,
    ),
    Operation(
        "ingest",
        "POST",
        "/ingest",
        routes_loads.ingest,
        (response_models.IngestOutput,),
        request_models.IngestRequest,
        errors=WRITE_ERRORS,
        is_deprecated=True,
    ),
    Operation(
        "loadNdjson",
        "POST",
        "/load/ndjson",
        routes_loads.load_ndjson,
        (response_models.GraphBatchLoadOutput,),
        takes_media=routes_loads.NDJSON,
        parameters=(
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
        ),
        errors=WRITE_ERRORS,
    ),
    Operation(
        "export",
        "POST",
        "/export",
        routes_exports.export,
        (),
        request_models.ExportRequest,
        gives_media=routes_loads.NDJSON,
    ),
    Operation(
        "getSnapshot",
        "GET",
        "/snapshot",
        routes_reads.get_snapshot,
        (response_models.SnapshotOutput,),
        parameters=(_BRANCH,),
    ),
    Operation(
        "getSchema",
        "GET",
        "/schema",
        routes_schema.get_schema,
        (response_models.SchemaOutput,),
    ),
    Operation(
        "applySchema",
        "POST",
        "/schema/apply",
        routes_schema.apply_schema,
        (response_models.SchemaApplyOutput,),
        request_models.SchemaApplyRequest,
        errors=WRITE_ERRORS,
    ),
    Operation(
        "listBranches",
        "GET",
        "/branches",
        routes_branches.list_branches,
        (response_models.BranchesOutput,),
    ),
    Operation(
        "createBranch",
        "POST",
        "/branches",
        routes_branches.create_branch,
        (response_models.BranchCreateOutput,),
        request_models.BranchCreateRequest,
        errors=WRITE_ERRORS,
    ),
    Operation(
        "mergeBranches",
        "POST",
        "/branches/merge",
        routes_branches.merge_branches,
        (response_models.BranchMergeOutput,),
        request_models.BranchMergeRequest,
        errors=WRITE_ERRORS,
    ),
    Operation(
        "deleteBranch",
        "DELETE",
        "/branches/{branch:path}",
        routes_branches.delete_branch,
        (response_models.BranchDeleteOutput,),
        parameters=(Parameter("branch", "path", "The branch to remove.", is_required=True),),
        errors=WRITE_ERRORS,
    ),
    Operation(
        "listCommits",
        "GET",
        "/commits",
        routes_commits.list_commits,
        (response_models.CommitsOutput,),
        parameters=(_BRANCH,),
    ),
    Operation(
        "getCommit",
        "GET",
        "/commits/{commit_id}",
        routes_commits.get_commit,
        (response_models.Commit,),
        parameters=(Parameter("commit_id", "path", "The graph commit.", is_required=True),),
    ),
    Operation(
        "health",
        "GET",
        "/healthz",
        routes_server.health,
        (response_models.HealthOutput,),
        errors=(),
    ),
    Operation(
        "metrics",
        "GET",
        "/metrics",
        routes_server.metrics,
        gives_media="text/plain",
        errors=(),
        is_of_server=True,
    ),
    Operation(
        "listGraphs",
        "GET",
        "/graphs",
        routes_server.list_graphs,
        (response_models.GraphsOutput,),
        errors=(401, 403, 405, 500),
        is_of_server=True,
    ),
)
