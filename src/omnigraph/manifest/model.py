"""What a manifest says: which version of each table is visible, and how it came to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.display import (
    ROWS_MAX,
    Grid,
    Sheet,
    count_noun,
    format_time,
    show_html,
    show_text,
    to_datetime,
)
from omnigraph.display_fields import make_field_sheet
from omnigraph.storage.handles import ShownColumns, TableHandle

Pins: TypeAlias = Mapping[str, Sequence[Any]]

MAIN = "main"
MANIFEST_TABLE = "__manifest"


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One pin: the version of a table that a branch shows.

    `table_branch` is the Lance branch that owns the version, None for the main lineage. `shown`
    is for a table that is read in another schema than its own (see `schema_view.py`), and `image`
    for one that lies nowhere: a merge of schemas makes some.
    """

    table_key: str
    table_path: str
    version: int
    table_branch: str | None
    row_count: int
    transaction_uuid: str | None = None
    shown: ShownColumns | None = None
    image: TableHandle | None = field(default=None, compare=False, repr=False)

    def shows_same_rows(self, other: TableEntry) -> bool:
        """Whether both name one version of one lineage, so that no row can differ.

        A fork that was removed and made again may count through the same numbers: then the
        transactions differ.
        """
        uuids = {self.transaction_uuid, other.transaction_uuid} - {None}
        version = (self.table_path, self.version, self.table_branch)
        return version == (other.table_path, other.version, other.table_branch) and len(uuids) < 2


@dataclass(frozen=True, slots=True)
class GraphCommit:
    """One node of the commit DAG. `created_at` is in microseconds since the epoch, UTC.

    `properties` are facts a writer noted on its commit, such as how a merge resolved conflicts;
    what the caller says of it (`commit_note.py`) is among them.
    `pins` say what it shows of the tables that later commits of the same publish have moved on:
    table key → version, Lance branch, number of rows and transaction. With `is_kept` no manifest
    says what it shows: it came from another store with later ones in other schemas, or with other
    checks, and its state is written down (see `retained_commits.py`); `pins` are those of tables
    that the manifest has under the same key.
    """

    commit_id: str
    branch: str
    manifest_version: int
    parent_id: str | None
    merged_parent_id: str | None
    actor: str | None
    created_at: int
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)
    pins: Pins = field(default_factory=dict, hash=False)
    is_kept: bool = False

    @property
    def message(self) -> str | None:
        """Why the commit was made; None when its writer did not say."""
        found = self.properties.get("message")
        return found if isinstance(found, str) else None

    @property
    def metadata(self) -> Mapping[str, str]:
        """What its writer noted besides, by name."""
        found = self.properties.get("metadata")
        return found if isinstance(found, Mapping) else {}

    @property
    def order(self) -> tuple[int, int, str]:
        """The newest commit visible on a branch is its head."""
        return (self.manifest_version, self.created_at, self.commit_id)

    @property
    def time(self) -> datetime:
        """When it was made, in UTC."""
        return to_datetime(self.created_at)

    make_sheet = make_field_sheet
    _repr_html_ = show_html


class CommitLog(list[GraphCommit]):
    """Commits, newest first; `notes` say what could not be read."""

    def __init__(self, commits: Iterable[GraphCommit] = (), notes: Iterable[str] = ()) -> None:
        super().__init__(commits)
        self.notes = tuple(notes)

    def make_sheet(self) -> Sheet:
        columns = ("commit", "branch", "time", "actor", "merged")
        rows = [
            (each.commit_id, each.branch, format_time(each.created_at), each.actor or "",
             each.merged_parent_id or "")
            for each in self[:ROWS_MAX]
        ]  # fmt: skip
        count = len(self)
        title = f"{count_noun(count, 'commit')}, newest first"
        return Sheet(title, grids=[Grid(columns, rows, count)])

    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every pin of a branch at one manifest version. Immutable; no I/O to make or keep."""

    branch: str
    manifest_version: int
    entries: Mapping[str, TableEntry]
    head: GraphCommit
    schema_hash: str | None = None
    schema_id: str | None = None
    vector_models: Mapping[int, str] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema_name(self) -> str | None:
        """What the schema of the snapshot is kept under; None when the manifest does not say.

        A manifest from before schemas had ids names the hash alone.
        """
        return self.schema_id or self.schema_hash

    def version_of(self, table_key: str) -> int:
        """The pinned version, 0 for a table that is not there."""
        entry = self.entries.get(table_key)
        return entry.version if entry is not None else 0

    def make_sheet(self) -> Sheet:
        facts = {
            "commit": self.head.commit_id,
            "made": format_time(self.head.created_at),
            "actor": self.head.actor,
        }
        pins = [(key, each.row_count, each.version) for key, each in sorted(self.entries.items())]
        title = f"snapshot of branch {self.branch}, manifest version {self.manifest_version}"
        return Sheet(title, facts, [Grid(("table", "rows", "version"), pins)])

    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class ManifestState:
    """All rows of a branch's manifest at one version, reduced to what they say.

    `hidden` holds the tombstone version of each table that has one, `paths` where the table of
    each key lies or last lay, and `hidden_paths` the tables that were shown once and are not now,
    under any key. `branch_id` tells two branches apart that had the same name one after the other;
    None on main. `commit_rows` are the unparsed rows of kind `graph_commit`: the line of the
    branch. `ancestor_rows` are the commits that merges brought in, so that the parents of every
    commit here are here. `schema_hash` names the schema of the tables by what it means and
    `schema_id` exactly, with its identities; None when the manifest does not say. `pinned` is the
    greatest version that was ever published under each key, of whichever table. `vector_models`
    names what made the vectors of each property (see `vector_models.py`), `checks` the queries that
    have to hold (see `checks.py`). `reset_id` is that of the last reset; None when there was none.
    """

    branch: str
    version: int
    entries: Mapping[str, TableEntry]
    hidden: Mapping[str, int]
    paths: Mapping[str, str]
    hidden_paths: frozenset[str]
    commit_rows: pa.Table = field(compare=False, repr=False)
    ancestor_rows: pa.Table = field(compare=False, repr=False)
    head: GraphCommit
    branch_id: str | None = None
    schema_hash: str | None = None
    schema_id: str | None = None
    pinned: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    vector_models: Mapping[int, str] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)
    reset_id: str | None = None

    @property
    def known_paths(self) -> frozenset[str]:
        """Where every table lies that the branch shows or has shown."""
        return self.hidden_paths | frozenset(self.paths.values())

    @property
    def incarnation(self) -> str | None:
        """What changes when numbers may repeat: the branch was made again, or reset."""
        return self.branch_id if self.reset_id is None else f"{self.branch_id}#{self.reset_id}"

    @property
    def schema_name(self) -> str | None:
        """What the schema of the branch is kept under; None when the manifest does not say."""
        return self.schema_id or self.schema_hash

    def snapshot(self) -> Snapshot:
        return Snapshot(
            self.branch,
            self.version,
            self.entries,
            self.head,
            self.schema_hash,
            self.schema_id,
            self.vector_models,
            self.checks,
        )

    def snapshot_at(self, commit: GraphCommit) -> Snapshot:
        """The branch as a commit left it that the latest publish made: perhaps not its last."""
        return replace(self.snapshot(), entries=with_pins(self.entries, commit), head=commit)

    def has_rows_of(self, seen: ManifestState) -> bool:
        """Whether no write came since: a new layout or index is published without a commit."""
        return (self.branch_id, self.head.commit_id) == (seen.branch_id, seen.head.commit_id)

    def latest_version(self, table_key: str) -> int:
        """What an expectation is compared with: the pin, else the tombstone, else 0."""
        entry = self.entries.get(table_key)
        return entry.version if entry is not None else self.hidden.get(table_key, 0)


def with_pins(entries: Mapping[str, TableEntry], commit: GraphCommit) -> dict[str, TableEntry]:
    """What a commit shows of what its publish left: all but the last say themselves what."""
    found = dict(entries)
    for key, (version, branch, rows, uuid) in commit.pins.items():
        found[key] = replace(
            found[key],
            version=version,
            table_branch=branch,
            row_count=rows,
            transaction_uuid=uuid,
        )
    return found


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """A new table exists at this path, relative to the graph root."""

    table_key: str
    table_path: str


@dataclass(frozen=True, slots=True)
class UpdatePin:
    """The branch shows this version of the table from now on."""

    table_key: str
    version: int
    table_branch: str | None
    row_count: int
    manifest_path: str | None = None
    transaction_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The table is hidden: versions up to this one are not shown any more."""

    table_key: str
    version: int


Change = RegisterTable | UpdatePin | Tombstone


@dataclass(frozen=True, slots=True)
class Lineage:
    """The graph commit that a publish makes, on top of the branch's head at that moment.

    Its id is minted before any effect, so that a sidecar can name it.
    """

    commit_id: str
    actor: str | None
    created_at: int
    merged_parent_id: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)
    pins: Pins = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a manifest says beside its tables: see `vector_models.py` and `checks.py`."""

    vector_models: Mapping[int, str]
    checks: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Publish:
    """One request to the publisher.

    `expected` names the version of every table the write touched or read. `commits` go on top of
    the head, one on the other; there is none in a publish that keeps the content of the graph,
    such as a compaction. `ancestors` are commits of other lines that a merge brings in; those that
    are known already are left out. With `if_commit` the publish happens only while that commit is
    the head, and with `checks` while the branch has those. `schema_hash` and `schema_id` name the
    schema the tables are in from then on, when that changes. `adopted` are commits that were made
    in another store, the new head last; they keep their ids and parents, and take the place of
    `commits`. `facts` are those of that head; otherwise the commits note what they change of them.
    """

    branch: str
    changes: tuple[Change, ...]
    expected: Mapping[str, int] = field(default_factory=dict)
    commits: tuple[Lineage, ...] = ()
    if_commit: str | None = None
    schema_hash: str | None = None
    schema_id: str | None = None
    ancestors: tuple[GraphCommit, ...] = ()
    checks: Mapping[str, Any] | None = None
    adopted: tuple[GraphCommit, ...] = ()
    facts: Facts | None = None


@dataclass(frozen=True, slots=True)
class PublishDelta:
    """What one publish changed on a branch: enough to derive its state from the one before.

    `branch_id` tells the branch from others of the same name. `facts` are those that it has
    afterwards, when the commits do not note each change of them.
    """

    branch: str
    branch_id: str | None
    from_version: int
    changes: tuple[Change, ...]
    commits: tuple[GraphCommit, ...] = ()
    schema_hash: str | None = None
    schema_id: str | None = None
    ancestors: tuple[GraphCommit, ...] = ()
    facts: Facts | None = None
