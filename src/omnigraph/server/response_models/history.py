"""Answers about what changed: commits, feeds, differences, blame."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from omnigraph.server.response_models.base import Commit, EntityKind, ResponseModel


class ChangedEntity(ResponseModel):
    kind: EntityKind
    type: str
    id: str
    op: Literal["insert", "update", "delete"]
    manifest_version: int
    endpoints: dict[str, str] | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    changed: list[str] | None = Field(None, description="The properties that an update changed.")


class ChangedType(ResponseModel):
    id: str
    name: str


class ChangeImage(ResponseModel):
    properties: dict[str, Any]
    endpoints: dict[str, str] | None = None


class ChangeRecord(ResponseModel):
    kind: EntityKind
    type: ChangedType
    id: str
    op: Literal["insert", "update", "delete"]
    before: ChangeImage | None = None
    after: ChangeImage | None = None


class TableCounts(ResponseModel):
    table_key: str
    inserts: int
    updates: int
    deletes: int


class CommitPatch(Commit):
    stat: list[TableCounts]
    schema_steps: list[dict[str, Any]]
    changes: list[ChangeRecord] | None = None
    is_cut: bool | None = Field(default=None, description="Whether it changed more than that.")
    notes: list[str] = Field(default=[])


class PatchesOutput(ResponseModel):
    commits: list[CommitPatch]


class ChangeCause(ResponseModel):
    graph_commit_id: str
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None
    authored_branch: str
    actor_id: str | None = None
    authored_at: int
    message: str | None = None
    metadata: dict[str, str] | None = None


class CommitChanges(ResponseModel):
    cause: ChangeCause
    changes: list[ChangeRecord]
    next_page_token: str | None = None


class ChangeBlock(ResponseModel):
    cause: ChangeCause
    changes: list[ChangeRecord]


class ChangeFeed(ResponseModel):
    blocks: list[ChangeBlock]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None


class DiffCounts(ResponseModel):
    inserts: int
    updates: int
    deletes: int
    types_affected: list[str]


class DiffOutput(ResponseModel):
    from_version: int
    to_version: int
    branch: str | None
    from_schema: str | None
    to_schema: str | None
    schema_steps: list[dict[str, Any]]
    changes: list[ChangedEntity]
    stats: DiffCounts


class HistoryChange(ChangedEntity):
    commit: Commit
    through: str | None


class HistoryOutput(ResponseModel):
    branch: str
    changes: list[HistoryChange]
    notes: list[str]


class LostValue(ResponseModel):
    value: Any
    merge_id: str = Field(description="The merge that gave it up.")
    kept: Literal["ours", "theirs"]
    commit_id: str
    actor: str | None
    at: int
    branch: str
    is_deletion: bool = Field(description="Whether the losing side had deleted the entity.")


class BlamedValue(ResponseModel):
    value: Any
    commit_id: str | None
    actor: str | None
    at: int | None
    through: str | None
    lost: list[LostValue] = Field(description="What merges gave up for it, the latest first.")


class BlameOutput(ResponseModel):
    branch: str
    type: str
    id: str
    properties: dict[str, BlamedValue]
