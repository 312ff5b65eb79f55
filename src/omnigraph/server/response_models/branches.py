"""Answers about branches, tags, checks, merges and undoes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from omnigraph.server.response_models.base import Commit, Outcome, ResponseModel
from omnigraph.server.response_models.errors import CheckFailureItem, MergeConflictItem
from omnigraph.server.response_models.history import DiffOutput


class BranchesOutput(ResponseModel):
    branches: list[str]


class BranchDeleteOutput(ResponseModel):
    uri: str
    name: str
    actor_id: str | None


class BranchCreateOutput(BranchDeleteOutput):
    from_: str = Field(alias="from")


class BranchResetOutput(ResponseModel):
    branch: str
    commit_id: str = Field(description="The head afterwards.")
    head_before: str
    commits_dropped: int
    dropped: list[str] = Field(description="The newest hundred of them, the newest first.")
    is_preview: bool
    actor_id: str | None


class TagOutput(ResponseModel):
    name: str
    commit_id: str
    branch: str
    created_at: int
    actor: str | None
    message: str | None


class TagsOutput(ResponseModel):
    tags: list[TagOutput]


class KeptCheck(ResponseModel):
    name: str
    query: str
    expected: list[dict[str, Any]]
    every_commit: bool


class ChecksOutput(ResponseModel):
    checks: list[KeptCheck]


class ChecksAppliedOutput(ResponseModel):
    branch: str
    commit_id: str | None
    added: list[str]
    changed: list[str]
    removed: list[str]


class ChecksRunOutput(ResponseModel):
    failures: list[CheckFailureItem]


class TableMerge(ResponseModel):
    inserted: int
    updated: int
    deleted: int


class BranchMergeOutput(ResponseModel):
    source: str
    target: str
    outcome: Outcome
    actor_id: str | None
    commit_id: str | None
    tables: dict[str, TableMerge]
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None


class UndoOutput(ResponseModel):
    source: str = Field(description="The commits.")
    target: str
    outcome: Outcome
    actor_id: str | None
    commit_id: str | None
    tables: dict[str, TableMerge]
    commit: Commit | None


class RestoreOutput(ResponseModel):
    source: str = Field(description="The state that was restored.")
    target: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: Commit | None


class CheckForecastItem(ResponseModel):
    name: str
    holds: bool | None = Field(description="Null where only the merge can tell.")


class MergePreviewOutput(ResponseModel):
    source: str
    target: str
    outcome: Outcome
    changes: DiffOutput
    conflicts: list[MergeConflictItem]
    checks: list[CheckForecastItem]
