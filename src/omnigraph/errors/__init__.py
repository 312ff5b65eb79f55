"""Errors: one tree, grouped by what the caller does next.

    OmnigraphError                                             base.py
    ├── SourceError         fix the text; has a span     400   source.py
    ├── BadRequestError     fix the request or its rows  400   request.py
    ├── PolicyError         ask for permission           403   policy.py
    ├── NotFoundError       name something that exists   404   not_found.py
    ├── ConflictError       no effect; refresh, retry    409   conflict.py        of names and heads
    │                                                          table_conflict.py  of one table
    │                                                          merge_conflict.py  to be decided
    ├── ResourceLimitError  send less                    413   request.py
    ├── EmbeddingFailed     look at the provider         500   service.py
    ├── StorageError        look at the store            500   service.py
    ├── RecoveryRequired    effects may exist; wait      503   service.py
    └── RemoteError         do as the server says        500   service.py

Facts are attributes; text is for people. `kind` is the error class of the language reference
(`parse`, `type`, `constraint`, ...), `code` a stable fine code where one exists (`T6`,
`OG-MF-103`). Codes are only ever added. Callers import from `omnigraph.errors`.
"""

from omnigraph.errors.base import OmnigraphError, did_you_mean, with_suggestion
from omnigraph.errors.conflict import (
    BranchExists,
    BranchInUse,
    ConflictError,
    EtagMismatch,
    GraphExists,
    MergeRequestNotOpen,
    NotFastForward,
    PreconditionFailed,
    SourceChanged,
    SourceMoved,
    TagExists,
    UnrelatedHistories,
)
from omnigraph.errors.merge_conflict import (
    CheckFailure,
    ChecksFailed,
    MergeConflict,
    MergeConflicts,
)
from omnigraph.errors.not_found import (
    BackupNotFound,
    BranchNotFound,
    ChangeFeedGap,
    CommitNotFound,
    CommitStateGone,
    EntityNotFound,
    GraphNotFound,
    MergeRequestNotFound,
    NotFoundError,
    RemoteNotFound,
    RevisionNotFound,
    TableNotFound,
    TableVersionNotFound,
    TagNotFound,
    VersionNotFound,
)
from omnigraph.errors.policy import ApprovalsMissing, PolicyError, PolicyEvaluationFailed
from omnigraph.errors.request import (
    AddressError,
    BadRequestError,
    ChangeCursorRejected,
    CommitNotReplayable,
    ConfigError,
    ConstraintError,
    EmbeddingModelMismatch,
    EmbeddingNotConfigured,
    MigrationError,
    ParamsError,
    PolicyInvalid,
    ResourceLimitError,
)
from omnigraph.errors.service import (
    DamagedFile,
    EmbeddingFailed,
    InvariantViolated,
    ObjectMissing,
    RecoveryRequired,
    RemoteError,
    SparkError,
    StorageError,
    StorageFull,
    StoragePermissionDenied,
)
from omnigraph.errors.source import (
    CatalogError,
    IdentityError,
    ParseError,
    PlanError,
    SourceError,
    TypeCheckError,
)
from omnigraph.errors.table_conflict import (
    CommitConflict,
    ExpectedVersionMismatch,
    ForkExists,
    ForkInUse,
    HeadMoved,
    KeyConflict,
    RowLevelCasContention,
    SchemaMoved,
    TableExists,
)

__all__ = [
    "AddressError",
    "ApprovalsMissing",
    "BackupNotFound",
    "BadRequestError",
    "BranchExists",
    "BranchInUse",
    "BranchNotFound",
    "CatalogError",
    "ChangeCursorRejected",
    "ChangeFeedGap",
    "CheckFailure",
    "ChecksFailed",
    "CommitConflict",
    "CommitNotFound",
    "CommitNotReplayable",
    "CommitStateGone",
    "ConfigError",
    "ConflictError",
    "ConstraintError",
    "DamagedFile",
    "EmbeddingFailed",
    "EmbeddingModelMismatch",
    "EmbeddingNotConfigured",
    "EntityNotFound",
    "EtagMismatch",
    "ExpectedVersionMismatch",
    "ForkExists",
    "ForkInUse",
    "GraphExists",
    "GraphNotFound",
    "HeadMoved",
    "IdentityError",
    "InvariantViolated",
    "KeyConflict",
    "MergeConflict",
    "MergeConflicts",
    "MergeRequestNotFound",
    "MergeRequestNotOpen",
    "MigrationError",
    "NotFastForward",
    "NotFoundError",
    "ObjectMissing",
    "OmnigraphError",
    "ParamsError",
    "ParseError",
    "PlanError",
    "PolicyError",
    "PolicyEvaluationFailed",
    "PolicyInvalid",
    "PreconditionFailed",
    "RecoveryRequired",
    "RemoteError",
    "RemoteNotFound",
    "ResourceLimitError",
    "RevisionNotFound",
    "RowLevelCasContention",
    "SchemaMoved",
    "SourceChanged",
    "SourceError",
    "SourceMoved",
    "SparkError",
    "StorageError",
    "StorageFull",
    "StoragePermissionDenied",
    "TableExists",
    "TableNotFound",
    "TableVersionNotFound",
    "TagExists",
    "TagNotFound",
    "TypeCheckError",
    "UnrelatedHistories",
    "VersionNotFound",
    "did_you_mean",
    "with_suggestion",
]

# Tracebacks, pickles and what Spark quotes of a task name an error as callers import it.
for _name in __all__:
    globals()[_name].__module__ = __name__
