"""Tables: the sealed surface over node and edge tables.

Reads go by (location, version). Writes are staged: files are written and a transaction is built,
HEAD stays. Only `commit_staged`, `commit_appends` and `restore` move a HEAD, by one version for
each transaction, and only while the caller holds the writer queue of that (table, branch). No Lance
object leaves this package.

    tables               open, create, commit, restore, fork
    tables.reads         rows of an open version
    tables.rows          stage changes of rows
    tables.unattached    stage rows that a load has written to files already
    tables.parts         stage rows that tasks have written to files of a table
    tables.indexes       describe indexes, stage others
    tables.compaction    stage fewer, larger fragments
    tables.search        text and vector columns
    tables.ancestry      what changed since an ancestor of a version
    tables.forks         find, list and delete the Lance branches of a table
    tables.recorder      checksums of the files that were written
    tables.tasks         does heavy work on large tables, where a Spark is chosen
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
from lance.dataset import LanceOperation

from omnigraph.errors import TableNotFound, TableVersionNotFound
from omnigraph.lru import Lru
from omnigraph.storage.ancestry import Ancestry
from omnigraph.storage.appended_versions import Chains
from omnigraph.storage.blobs import to_keyed_schema, to_logical_schema, to_stored, to_stored_batches
from omnigraph.storage.compaction import CompactionStaging
from omnigraph.storage.counters import record
from omnigraph.storage.datasets import Opener, write_in_memory
from omnigraph.storage.durability import Durability, sync_paths, sync_tree
from omnigraph.storage.fold_records import quarantine_torn
from omnigraph.storage.forks import Forks
from omnigraph.storage.handles import (
    BESIDE,
    CommittedVersion,
    ShownColumns,
    StagedTransaction,
    StageKind,
    TableHandle,
    TableState,
    TransactionInfo,
)
from omnigraph.storage.indexes import Indexes
from omnigraph.storage.known_keys import KnownKeys
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import transaction_uuid
from omnigraph.storage.location import GraphRoot, TableLocation
from omnigraph.storage.operation_files import version_files
from omnigraph.storage.projection import ROW_ID, is_number_type
from omnigraph.storage.reads import Reads
from omnigraph.storage.recorder import Recorder
from omnigraph.storage.schema_staging import ColumnStaging
from omnigraph.storage.search import Search
from omnigraph.storage.staging import RowStaging
from omnigraph.storage.text import open_text_store
from omnigraph.storage.torn import list_torn_versions
from omnigraph.storage.transactions import (
    OPERATION_ID,
    Committer,
    Stager,
    describe_version,
    read_transaction,
    sync_versions,
)
from omnigraph.storage.unattached import UnattachedStaging
from omnigraph.ulids import new_ulid

if TYPE_CHECKING:
    from omnigraph.storage.content import Spread
    from omnigraph.storage.parts import PartStaging
    from omnigraph.storage.table_tasks import TableTasks

HANDLES_MAX = 32
SMALL_FRAGMENT_ROWS = 8_192


class TableStorage:
    """Every table of one graph, read and staged. Thread-safe."""

    def __init__(
        self,
        root: GraphRoot,
        storage_options: Mapping[str, str] | None = None,
        durability: Durability = "power",
        spread: Spread | None = None,
    ) -> None:
        options = dict(storage_options or {})
        self.root = root
        self.storage_options: Mapping[str, str] = options
        self.durability = durability
        self._opener = Opener(options)
        self._handles: Lru[tuple[object, ...], TableHandle] = Lru(HANDLES_MAX)
        self._texts = open_text_store(root, options, durability)
        self.recorder = Recorder(options)
        self._committer = Committer(self._opener, durability, self.recorder, Chains())
        self._stager = Stager(durability, self.recorder)
        self.reads = Reads()
        self.rows = RowStaging(self._stager, self.reads, KnownKeys(self.reads))
        self.columns = ColumnStaging(self._stager)
        self.unattached = UnattachedStaging(self._stager, options)
        self.tasks = None if spread is None else _make_tasks(spread, root, options)
        self.indexes = Indexes(self._stager, self.reads)
        self.compaction = CompactionStaging(self._stager)
        self.search = Search(self.reads, self.indexes)
        self.ancestry = Ancestry(self.reads)
        self.forks = Forks(
            self._opener, self._texts, durability, self.recorder, self._handles.clear
        )

    @property
    def parts(self) -> PartStaging:
        from omnigraph.storage.parts import PartStaging  # few graphs have tasks

        return PartStaging(self._stager)

    # Opening

    def open_at(
        self,
        location: TableLocation,
        version: int,
        *,
        incarnation: str | None = None,
        shown: ShownColumns | None = None,
    ) -> TableHandle:
        """Open exactly this version, in the columns `shown` if they are not its own.

        `incarnation` is the transaction UUID of the pin, when known: a branch that was deleted
        and created again may use the same version number for other rows. Version 0 of a table is
        from before its creation: it has no rows.
        """
        key = (location.uri, location.branch, version, incarnation, shown)
        return self._handles.get_or_make(key, lambda: self._open(location, version, shown))

    def open_pinned(
        self,
        location: TableLocation,
        version: int,
        transaction: str | None,
        shown: ShownColumns | None = None,
    ) -> TableHandle:
        """Open the version that a pin shows: the one that its transaction made, where it says so.

        Raises:
            TableVersionNotFound: That version was removed; another one has its number by now.
        """

        def open_made() -> TableHandle:
            handle = self._open(location, version, shown)
            found = handle.transaction_uuid
            if version and transaction is not None and found not in (transaction, None):
                raise TableVersionNotFound(str(location), version)
            return handle

        return self._handles.get_or_make(
            (location.uri, location.branch, version, transaction, shown), open_made
        )

    def make_image(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> TableHandle:
        """A table of these rows that lies nowhere: it is read as others are, and never written."""
        stored = to_keyed_schema(schema)
        dataset = write_in_memory(stored, to_stored_batches(batches, stored))
        return _to_handle(TableLocation(dataset.uri), dataset)

    def _open(
        self, location: TableLocation, version: int, shown: ShownColumns | None
    ) -> TableHandle:
        if shown is None:
            return _to_handle(location, self._opener.at(location, version))
        if version == 0:
            assert shown.schema is not None
            handle = _to_handle(location, write_in_memory(to_keyed_schema(shown.schema)))
            return replace(handle, version=0, schema=shown.schema, shown=shown)
        dataset = self._opener.at(location, version)
        if shown.renamed:
            dataset = self._opener.rename_columns(dataset, location, dict(shown.renamed))
        return _show_as(_to_handle(location, dataset), shown)

    def head_version(self, location: TableLocation, *, expected: int | None = None) -> int:
        """The latest version of the lineage, freshly looked up; cheap if it is the expected one.

        Only a caller that holds the writer queue, with nothing left to recover, expects one.
        """
        if expected is not None and self._opener.is_latest(location, expected):
            return expected
        return int(self._opener.head(location).version)

    def exists(self, uri: str) -> bool:
        """Whether there is a dataset. A failure to find out is an error, not False."""
        try:
            self._opener.head(TableLocation(uri))
        except TableNotFound:
            return False
        return True

    def forget(self) -> None:
        """Drop every cached handle. Results do not change; the next opens are cold."""
        self._handles.clear()

    # Facts

    def table_state(self, handle: TableHandle) -> TableState:
        """Count the fragments and deleted rows of this version."""
        with lance_errors("reading the state of a table", handle.location, handle.version):
            stats = handle._dataset.stats.dataset_stats(SMALL_FRAGMENT_ROWS)
        return TableState(
            stats["num_fragments"], stats["num_small_files"], stats["num_deleted_rows"]
        )

    def read_transaction(self, location: TableLocation, version: int) -> TransactionInfo | None:
        """What made this version, or None when the version does not record it."""
        return read_transaction(self._opener.at(location, version), location)

    def dataset_uris(self) -> list[str]:
        """Every node and edge table below the root, shown or not."""
        return [
            f"{top}/{name}"
            for top in map(self.root.child, ("nodes", "edges"))
            for name in sorted(self._texts.list_folders(top))
        ]

    # Creating

    def create_table(
        self, location: TableLocation, schema: pa.Schema, batches: Iterable[pa.RecordBatch] = ()
    ) -> CommittedVersion:
        """Create a table; TableExists when there is one. `id` becomes the primary key."""
        stored = to_keyed_schema(schema)
        rows = pa.RecordBatchReader.from_batches(stored, to_stored_batches(batches, stored))
        with lance_errors("creating a table", location):
            dataset = self._opener.create(location.uri, rows)
            if self.durability == "power" and self.root.is_local:
                sync_tree(location.uri)
        self.recorder.record_inline(location, dataset)
        record(commits=1)
        uuid = transaction_uuid(dataset)
        assert uuid is not None
        return describe_version(location, dataset, uuid)

    def hold_in_memory(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> TableHandle:
        """A table of these rows that no file has: it is there as long as its handle."""
        location = TableLocation(f"memory://{new_ulid()}")
        stored = to_keyed_schema(schema)
        rows = pa.Table.from_batches(batches, schema)
        with lance_errors("holding rows in memory", location):
            dataset = Opener({}).create(location.uri, to_stored(rows, stored))
        return _to_handle(location, dataset)

    def put_beside(
        self, handle: TableHandle, batches: Iterable[pa.RecordBatch]
    ) -> tuple[TableHandle, dict[str, int]]:
        """The version with rows beside it that no file has, and their row ids by id.

        Rows that are beside it already stay, under their row ids.
        """
        schema, before = handle.schema, handle.beside
        known = () if before is None else self.reads.scan_stream(before, include_blobs=True)
        fitted = (each.select(schema.names).cast(schema) for each in chain(known, batches))
        held = self.hold_in_memory(schema, fitted)
        rows = self.reads.scan(held, ["id"], with_row_id=True)
        row_ids = rows[ROW_ID].to_pylist()
        assert row_ids == list(range(len(row_ids))), "rows in memory are not numbered in order"
        added = 0 if before is None else before.row_count
        ids = rows["id"].to_pylist()[added:]
        return replace(handle, beside=held), {
            each: BESIDE + added + at for at, each in enumerate(ids)
        }

    # Committing: HEAD moves by exactly one

    def commit_staged(
        self,
        staged: StagedTransaction,
        *,
        operation_id: str | None = None,
        is_synced: bool = True,
    ) -> CommittedVersion:
        """Advance HEAD by exactly one version, and prove that the version is this transaction.

        The caller holds the writer queue of the table. It calls `sync_commits` unless `is_synced`.

        Raises:
            HeadMoved, CommitConflict: Another writer committed first. Nothing was committed.
            RecoveryRequired: A foreign commit slipped in between; the rows may be in a version.
        """
        properties = {} if operation_id is None else {OPERATION_ID: operation_id}
        committed, dataset = self._committer.commit(staged, properties, is_synced=is_synced)
        self._keep_handle(staged, committed, dataset)
        return committed

    def commit_appends(
        self,
        staged: Sequence[StagedTransaction],
        *,
        operation_id: str,
        on_moved: Callable[[], None],
    ) -> list[CommittedVersion]:
        """Commit several appends of one table, staged at the same version, one after the other.

        Each makes a version, as `commit_staged` would, and `on_moved` is called then. The caller
        holds the writer queue of the table, and calls `sync_commits`. Raises the same errors.
        """
        properties = {OPERATION_ID: operation_id}
        made, dataset = self._committer.commit_each(staged, properties, on_moved)
        self._keep_handle(staged[-1], made[-1], dataset)
        return made

    def _keep_handle(
        self, staged: StagedTransaction, made: CommittedVersion, dataset: lance.LanceDataset
    ) -> None:
        """A version that was just committed is likely to be read next."""
        key = (made.location.uri, made.location.branch, made.version, made.transaction_uuid, None)
        if staged._schema is None:
            handle = _to_handle(made.location, dataset)
        else:
            handle = TableHandle(
                made.location, made.version, staged._schema, made.row_count, dataset
            )
        self._handles.put(key, handle)

    def sync_commits(self, versions: Iterable[CommittedVersion]) -> None:
        """Make durable what was committed without a sync, all of it side by side."""
        with lance_errors("flushing commits", self.root.uri):
            sync_versions(versions)

    def rebase(self, staged: StagedTransaction, handle: TableHandle) -> StagedTransaction:
        """Move a staged transaction onto a later version.

        One that only adds rows fits any; another one needs the same rows in the same fragments.
        """
        assert staged.location == handle.location
        return replace(staged, read_version=handle.version, _dataset=handle._dataset)

    def restore(
        self, location: TableLocation, version: int, *, operation_id: str | None = None
    ) -> int:
        """Make the rows of an older version the newest version; returns its number.

        Lance lets a restore win over any commit, so the writer queue must be held.
        """
        head = self.open_at(location, self.head_version(location))
        return self.commit_staged(
            self.stage_restore(head, version), operation_id=operation_id
        ).version

    def stage_restore(self, handle: TableHandle, version: int) -> StagedTransaction:
        """Stage bringing back an older version's rows; `handle` is the present HEAD."""
        wanted = self.open_at(handle.location, version)
        operation = LanceOperation.Restore(version)
        return self._stager.stage(handle, StageKind.RESTORE, operation, rows=wanted.row_count)

    def quarantine_torn(self, location: TableLocation, *, above: int) -> list[str]:
        """Quarantine versions after `above` that a power cut has torn; returns where they are now.

        The caller holds the writer queue of the table.
        """
        return quarantine_torn(list_torn_versions(location, above), self.durability)

    def flush(self, location: TableLocation, version: int) -> None:
        """Sync the files of a version: its writer may have died before it did."""
        if self.durability == "power" and self.root.is_local:
            with lance_errors("flushing a version", location):
                dataset = self._opener.at(location, version)
                made_by = dataset.read_transaction(version)
                sync_paths(version_files(location, dataset, made_by))

    def delete_table(self, uri: str) -> None:
        """Remove a table that no manifest names, with all that is below it, or a part of one."""
        self._texts.delete_prefix(uri)
        self.forget()

    def fork_branch(self, location: TableLocation, version: int, branch: str) -> TableHandle:
        """Fork a table at an exact version and open it; ForkExists when the name is taken."""
        fork = self.forks.create(location, version, branch)
        return _to_handle(fork, self._opener.at(fork, version))


def _show_as(handle: TableHandle, shown: ShownColumns) -> TableHandle:
    """The same version in the columns of `shown`: those it does not have read as null.

    So does a value that the type shown has no room for: rows have changed since.
    """
    if shown.schema is None:
        return replace(handle, shown=shown)
    known = {field.name: field for field in handle.schema}
    fields: list[pa.Field] = []
    absent, recast = set[str](), set[str]()
    for field in shown.schema:
        found = known.get(field.name)
        if found is None or found.type != field.type:
            is_number = found is not None and is_number_type(found.type)
            (recast if is_number and is_number_type(field.type) else absent).add(field.name)
            found = field.with_nullable(True)
        fields.append(found)
    return replace(
        handle,
        schema=pa.schema(fields),
        absent=frozenset(absent),
        recast=frozenset(recast),
        shown=shown,
    )


def _to_handle(location: TableLocation, dataset: lance.LanceDataset) -> TableHandle:
    with lance_errors("reading a table", location):
        rows = int(dataset.count_rows())
        schema = to_logical_schema(dataset.schema)
    return TableHandle(location, dataset.version, schema, rows, dataset)


def _make_tasks(spread: Spread, root: GraphRoot, options: Mapping[str, str]) -> TableTasks:
    from omnigraph.storage.table_tasks import TableTasks

    return TableTasks(spread, str(root), options)
