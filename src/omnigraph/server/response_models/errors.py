"""Error bodies, and the details that some of them have."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from omnigraph.server.response_models.base import EntityKind, ResponseModel


class CheckFailureItem(ResponseModel):
    name: str
    row_count: int
    rows: list[dict[str, Any]]
    expected: list[dict[str, Any]]


class ManifestConflict(ResponseModel):
    table_key: str
    expected: int
    actual: int


class DatasetVersionConflict(ResponseModel):
    entity_kind: EntityKind
    type_name: str
    expected_published_dataset_version: int
    actual_published_dataset_version: int


class ReadSetConflict(ResponseModel):
    member: str
    expected: str | None
    actual: str | None


class KeyConflictDetail(ResponseModel):
    table_key: str
    key: str | None = None
    entity_kind: EntityKind
    type_name: str
    entity_id: str | None = None


class MergeConflictItem(ResponseModel):
    table_key: str
    row_id: str | None
    kind: Literal[
        "divergent_insert",
        "divergent_update",
        "delete_vs_update",
        "orphan_edge",
        "unique_violation",
        "cardinality_violation",
        "value_constraint_violation",
        "embedding_models",
        "divergent_schema",
        "drop_vs_use",
        "rows_do_not_fit",
    ]
    message: str
    entity_kind: EntityKind | Literal["schema"]
    type_name: str
    entity_id: str | None
    base: dict[str, Any] | None = None
    ours: dict[str, Any] | None = None
    theirs: dict[str, Any] | None = None


class ChangeFeedGap(ResponseModel):
    cursor: str | None = None
    first_unreadable_commit_id: str


class ResourceLimitDetail(ResponseModel):
    resource: str
    limit: int
    actual: int


class RecoveryDetail(ResponseModel):
    operation_id: str


class PreconditionDetail(ResponseModel):
    expected: str
    actual: str | None = None


class ApprovalsDetail(ResponseModel):
    branch: str
    number: int | None = Field(description="The merge request; null for a merge without one.")
    required: int
    missing: int
    objectors: list[str]
    approvers: list[str]


class NotOpenDetail(ResponseModel):
    number: int
    state: Literal["merged", "closed"]


class SourceMovedDetail(ResponseModel):
    expected: str
    actual: str


class ErrorOutput(ResponseModel):
    """The body of every answer that is not a success."""

    error: str
    code: (
        Literal[
            "unauthorized",
            "forbidden",
            "bad_request",
            "not_found",
            "method_not_allowed",
            "conflict",
            "too_many_requests",
            "internal",
        ]
        | None
    ) = None
    merge_conflicts: list[MergeConflictItem] | None = None
    checks_failed: list[CheckFailureItem] | None = None
    approvals: ApprovalsDetail | None = None
    merge_request: NotOpenDetail | None = None
    source_moved: SourceMovedDetail | None = None
    manifest_conflict: ManifestConflict | None = None
    published_dataset_version_conflict: DatasetVersionConflict | None = None
    read_set_conflict: ReadSetConflict | None = None
    key_conflict: KeyConflictDetail | None = None
    resource_limit: ResourceLimitDetail | None = None
    change_feed_gap: ChangeFeedGap | None = None
    recovery_required: RecoveryDetail | None = None
    precondition_failure: PreconditionDetail | None = None
