"""Answers to reads: rows, snapshots, plans, stored queries."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from omnigraph.server.response_models.base import EntityKind, ResponseModel


class SnapshotTable(ResponseModel):
    table_key: str
    table_path: str
    table_version: int
    table_branch: str | None
    row_count: int


class SnapshotDataset(ResponseModel):
    entity_kind: EntityKind
    type_name: str
    dataset_path: str
    published_dataset_version: int
    native_dataset_branch: str | None
    entity_count: int


class SnapshotOutput(ResponseModel):
    branch: str
    manifest_version: int
    internal_schema_version: int
    tables: list[SnapshotTable]
    graph_branch: str
    graph_manifest_version: int
    datasets: list[SnapshotDataset]


class ReadTarget(ResponseModel):
    branch: str | None
    snapshot: str | None


class FrozenReadOutput(ResponseModel):
    query_name: str
    target: ReadTarget
    row_count: int
    columns: list[str] = Field(default_factory=list)
    rows: list[dict[str, Any]]


class ReadOutput(FrozenReadOutput):
    graph_commit_id: str | None = None


class ExplainStage(ResponseModel):
    text: str
    rows: int | None
    elapsed_ms: float


class ExplainOutput(ResponseModel):
    ir: str
    plan: str
    stages: list[ExplainStage]
    row_count: int | None = None
    spark: str | None = None


class QueryParameter(ResponseModel):
    name: str
    kind: Literal[
        "string",
        "bool",
        "int",
        "bigint",
        "float",
        "date",
        "datetime",
        "blob",
        "vector",
        "list",
        "object",
    ]
    item_kind: str | None = None
    vector_dim: int | None = None
    default: str | None = None
    fields: list[QueryParameter] = Field(default_factory=list)
    nullable: bool


class StoredQueryItem(ResponseModel):
    name: str
    tool_name: str
    description: str | None = None
    instruction: str | None = None
    mutation: bool
    params: list[QueryParameter]


class QueriesCatalog(ResponseModel):
    queries: list[StoredQueryItem]
