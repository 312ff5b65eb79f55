"""Answers to writes: mutations, loads, vectors, Blobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from omnigraph.server.response_models.base import Commit, ResponseModel


class ChangeOutput(ResponseModel):
    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: Commit | None
    columns: list[str] = Field(default_factory=list)
    rows: list[dict[str, Any]] = Field(default_factory=list)


class LoadedTable(ResponseModel):
    table_key: str
    rows_loaded: int


class LoadedType(ResponseModel):
    name: str
    entities_loaded: int
    rows_loaded: int


class GraphBatchLoadOutput(ResponseModel):
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: Literal["overwrite", "append", "merge"]
    nodes_loaded: int
    edges_loaded: int
    node_types_loaded: int
    edge_types_loaded: int
    nodes: list[LoadedType]
    edges: list[LoadedType]
    tables: list[LoadedTable]
    total_entities: int
    total_rows: int
    rows_embedded: int
    rows_unembedded: int
    rows_rejected: int
    quarantine: str | None
    notes: list[str]
    engine: str
    actor_id: str | None
    commit: Commit | None


class IngestOutput(GraphBatchLoadOutput):
    uri: str


class PreviewedTable(ResponseModel):
    table_key: str
    inserted: int
    replaced: int
    unchanged: int
    refused: int
    removed: int
    rows: list[dict[str, Any]] = Field(description="The first rows, as they would be stored.")


class LoadPreviewOutput(ResponseModel):
    branch: str
    mode: Literal["overwrite", "append", "merge"]
    dry_run: Literal[True]
    changes_nothing: bool
    tables: list[PreviewedTable]
    problems: int
    bad_rows: list[str]
    notes: list[str]


class EmbedOutput(ResponseModel):
    uri: str
    branch: str
    commit_ids: list[str] = Field(description="The commits that were made, oldest first.")
    rows_embedded: int
    rows_unembedded: int
    models: dict[str, str] = Field(description="What made the vectors of each property.")
    notes: list[str]
    engine: str


class BlobWritten(ResponseModel):
    branch: str
    size: int
    etag: str
    actor_id: str | None
    commit: Commit | None
