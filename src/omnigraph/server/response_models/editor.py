"""Answers to the editor: completions, diagnostics, pictures."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from omnigraph.server.response_models.base import ResponseModel
from omnigraph.server.response_models.reads import QueryParameter


class CompletionItem(ResponseModel):
    label: str
    kind: str
    detail: str
    doc: str


class CompletionOutput(ResponseModel):
    start: int = Field(description="Where the word begins that the items would replace.")
    items: list[CompletionItem]


class EditorDiagnostic(ResponseModel):
    start: int
    end: int
    severity: Literal["error", "warning", "info"]
    message: str
    code: str | None


class PictureNode(ResponseModel):
    variable: str
    type_column: str
    id_column: str
    label_column: str | None


class PictureEdge(ResponseModel):
    type: str
    id_column: str = Field(description="The id of the edge, or the ids of the edges of a path.")
    source: int = Field(description="A place in the list of nodes.")
    target: int
    nodes_column: str | None = Field(description="The ids of the nodes of a path, else null.")


class Picture(ResponseModel):
    query: str = Field(description="The same read, with the ids and labels of what it matched.")
    nodes: list[PictureNode]
    edges: list[PictureEdge]


class EditorQuery(ResponseModel):
    name: str
    mutation: bool
    start: int
    end: int
    params: list[QueryParameter]
    picture: Picture | None = Field(description="Null where nothing is to be drawn.")


class CheckOutput(ResponseModel):
    diagnostics: list[EditorDiagnostic]
    queries: list[EditorQuery]
