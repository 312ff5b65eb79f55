"""Handles: the opaque values that storage gives out and takes back.

Their Lance objects are private to this package: others read the facts and hand the value back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.storage.lance_manifest import transaction_uuid
from omnigraph.storage.location import TableLocation

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import LanceOperation

    from omnigraph.storage.checksums import Checksums


BESIDE = 1 << 63
"""The first row id of rows beside a version: Lance counts its own from zero."""


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """How a version is shown in another schema than the one it was written in.

    `renamed` pairs the name a column is stored under with the one it is shown under. With `schema`
    exactly its columns are shown; those that the version does not have read as null.
    """

    renamed: tuple[tuple[str, str], ...] = ()
    schema: pa.Schema | None = None


@dataclass(frozen=True, slots=True)
class TableHandle:
    """One table at one version. Immutable: it always shows the same rows.

    `schema` is the logical one, in which a Blob is LargeBinary. `absent` are columns of it that
    the version does not have: they read as null. `recast` are numbers that it has in another type.
    `shown` says in which columns the version is shown, None for its own. `beside` are rows that
    no version has, which are taken by row ids from `BESIDE` on; a scan does not show them.
    """

    location: TableLocation
    version: int
    schema: pa.Schema = field(repr=False)
    row_count: int
    _dataset: LanceDataset = field(repr=False, compare=False)
    absent: frozenset[str] = frozenset()
    recast: frozenset[str] = frozenset()
    shown: ShownColumns | None = None
    beside: TableHandle | None = field(default=None, repr=False, compare=False)

    @property
    def transaction_uuid(self) -> str | None:
        """The UUID of the transaction that made this version, when the version records it."""
        return transaction_uuid(self._dataset)

    @property
    def identity(self) -> tuple[str, str | None, int, str | None, ShownColumns | None]:
        """The key of anything derived from this version: it may be cached without expiry."""
        location = self.location
        return (location.uri, location.branch, self.version, self.transaction_uuid, self.shown)

    def __reduce__(self) -> NoReturn:
        # A pickled Lance dataset of a fork comes back as the main lineage.
        raise TypeError("a TableHandle stays in its process: send its location and version instead")


class StageKind(StrEnum):
    """What a staged transaction will do to its table."""

    APPEND = "append"
    MERGE_INSERT = "merge_insert"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    UPDATE = "update"
    COLUMNS = "columns"
    CREATE_INDEX = "create_index"
    COMPACTION = "compaction"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment of a version: which one it is, in which files, and how many rows are left.

    `physical_rows` counts deleted rows too; `deletions` is the file that names those.
    """

    fragment_id: int
    files: tuple[str, ...]
    rows: int
    physical_rows: int
    deletions: str | None = None

    @property
    def key(self) -> tuple[int, tuple[str, ...]]:
        """Versions with a fragment of the same key share its rows, but for deleted ones."""
        return self.fragment_id, self.files


@dataclass(frozen=True, slots=True)
class StagedTransaction:
    """A write whose files are durable and whose transaction is built; HEAD has not moved.

    `uuid` is minted before anything is committed, so that a sidecar can name it and recovery can
    prove whose commit a version is. The first commit takes `_once` for good: Lance would apply a
    transaction committed twice, twice.
    """

    uuid: str
    read_version: int
    kind: StageKind
    rows: int
    location: TableLocation
    staged_bytes: int = 0
    checksums: Checksums = field(default_factory=dict, repr=False, compare=False)
    _operation: LanceOperation.BaseOperation = field(repr=False, compare=False, kw_only=True)
    _dataset: LanceDataset = field(repr=False, compare=False, kw_only=True)
    _schema: pa.Schema | None = field(default=None, repr=False, compare=False, kw_only=True)
    """The columns that the commit leaves as they were; None when it may change them."""
    _once: Lock = field(default_factory=Lock, repr=False, compare=False, init=False, kw_only=True)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a StagedTransaction is committed by the process that staged it")


@dataclass(frozen=True, slots=True)
class CommittedVersion:
    """What a commit made: enough for a pin in the manifest.

    `unsynced` are its files when it was made together with others, to be synced with theirs.
    `record` then takes down their checksums: there must be none of what a power cut takes away.
    """

    location: TableLocation
    version: int
    transaction_uuid: str
    row_count: int
    manifest_path: str
    unsynced: tuple[str, ...] = ()
    record: Callable[[], None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TableState:
    """The fragments of a table at one version, counted."""

    fragment_count: int
    small_fragments: int
    deleted_rows: int


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """What made a version. `operation_name` is Lance's (`Append`, `Update`, `Restore`, ...).

    `restored_version` is the version that a restore brought back, None for any other operation.
    """

    uuid: str
    operation_name: str | None
    properties: Mapping[str, str]
    restored_version: int | None = None


class IndexKind(StrEnum):
    """The kinds of index the engine builds."""

    BTREE = "btree"
    ZONEMAP = "zonemap"
    INVERTED = "inverted"
    VECTOR = "vector"


BY_PLACE = frozenset({IndexKind.BTREE, IndexKind.ZONEMAP})
"""Kinds whose entries name places of rows, so that a compaction takes coverage from them."""


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """One index to build. The default name is `<column>_<kind>`."""

    column: str
    kind: IndexKind
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"{self.column}_{self.kind.value}")


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One index a version has, and how much of the version it covers."""

    name: str
    column: str
    kind: str
    rows_indexed: int
    rows_unindexed: int
    fragments_unindexed: int
    segments: int = 1


@dataclass(frozen=True, slots=True)
class NotTrainable:
    """A vector index that cannot be built yet. Not an error: searches scan until it can."""

    spec: IndexSpec
    reason: str


@dataclass(frozen=True, slots=True)
class StagedIndexes:
    """The indexes built in one transaction, and those that have to wait."""

    transaction: StagedTransaction | None
    built: tuple[IndexSpec, ...]
    pending: tuple[NotTrainable, ...]


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """A Lance branch of a dataset. `identifier` differs between two branches of one name."""

    name: str
    parent_branch: str | None
    parent_version: int
    identifier: str
    created_at: int
