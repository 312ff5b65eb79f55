"""Response models: what operations answer, for the OpenAPI document.

Responses are encoded straight from dictionaries; a test holds every one of them against these.
Both vocabularies are in each model, so a model has each fact twice where clients differ.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Outcome = Literal["already_up_to_date", "fast_forward", "merged"]
EntityKind = Literal["node", "edge"]


class ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HealthOutput(ResponseModel):
    status: Literal["ok"]
    version: str
    internal_schema_version: int
    source_version: str | None = None


class ConfigurationState(ResponseModel):
    state: Literal["current", "refused", "restart_needed"]
    loaded_at: str


class ReadyOutput(ResponseModel):
    status: Literal["ready"]
    graphs: int
    configuration: ConfigurationState


class GraphItem(ResponseModel):
    graph_id: str
    uri: str


class GraphsOutput(ResponseModel):
    graphs: list[GraphItem]


class Commit(ResponseModel):
    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int = Field(description="Microseconds since 1970-01-01, UTC.")
    message: str | None
    metadata: dict[str, str]
    graph_branch: str | None
    graph_manifest_version: int


class CommitsOutput(ResponseModel):
    commits: list[Commit]
    notes: list[str] = Field(default=[], description="What is not stored any more, or hidden.")


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


class PermissionsOutput(ResponseModel):
    actor_id: str | None
    actions: list[str] = Field(description="What the caller may do on some branch.")


class TagOutput(ResponseModel):
    name: str
    commit_id: str
    branch: str
    created_at: int
    actor: str | None
    message: str | None


class TagsOutput(ResponseModel):
    tags: list[TagOutput]


class CheckFailureItem(ResponseModel):
    name: str
    row_count: int
    rows: list[dict[str, Any]]
    expected: list[dict[str, Any]]


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
    notes: list[str] = []


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


class ChangeFeedGap(ResponseModel):
    cursor: str | None = None
    first_unreadable_commit_id: str


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


class MergePreviewOutput(ResponseModel):
    source: str
    target: str
    outcome: Outcome
    changes: DiffOutput
    conflicts: list[MergeConflictItem]


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


class JobProgress(ResponseModel):
    done: int
    total: int
    step: str


class JobFailure(ResponseModel):
    error: str
    code: str | None = None


class JobOutput(ResponseModel):
    job_id: str
    kind: Literal["optimize", "ensure_indices", "cleanup", "repair", "verify"]
    options: dict[str, Any]
    state: Literal["queued", "running", "succeeded", "failed", "interrupted"]
    actor_id: str | None
    created_at: int = Field(description="Microseconds since 1970-01-01, UTC.")
    started_at: int | None
    ended_at: int | None
    progress: JobProgress | None
    report: dict[str, Any] | None = Field(description="Left out of lists.", default=None)
    error: JobFailure | None


class JobsOutput(ResponseModel):
    jobs: list[JobOutput]


class DoctorOutput(ResponseModel):
    """What `omnigraph doctor --json` prints."""

    model_config = ConfigDict(extra="allow")


class BlobWritten(ResponseModel):
    branch: str
    size: int
    etag: str
    actor_id: str | None
    commit: Commit | None
