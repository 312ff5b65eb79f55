"""Answers about schemas."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from omnigraph.server.response_models.base import ResponseModel


class SchemaOutput(ResponseModel):
    schema_source: str


class SchemaApplyOutput(ResponseModel):
    uri: str
    supported: bool
    applied: bool
    step_count: int
    manifest_version: int
    graph_manifest_version: int
    commit_id: str | None
    steps: list[dict[str, Any]] = Field(description="Each has a `kind` and what that kind names.")


class CatalogProperty(ResponseModel):
    name: str
    type: str
    nullable: bool
    is_text: bool
    is_vector: bool
    is_blob: bool
    indexed: bool
    embeds: str | None = Field(description="The property whose text this vector is made from.")
    description: str | None


class CatalogType(ResponseModel):
    name: str
    table_key: str
    description: str | None
    key: list[str]
    uniques: list[list[str]]
    indexes: list[list[str]]
    properties: list[CatalogProperty]


class CatalogNode(CatalogType):
    interfaces: list[str]


class CatalogEdge(CatalogType):
    word: str = Field(description="How queries spell the edge.")
    source: str
    target: str
    cardinality: str | None


class CatalogInterface(ResponseModel):
    name: str
    types: list[str]
    properties: list[CatalogProperty]


class CatalogOutput(ResponseModel):
    nodes: list[CatalogNode]
    edges: list[CatalogEdge]
    interfaces: list[CatalogInterface]
