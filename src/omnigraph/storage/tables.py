"""Tables: the sealed surface over node and edge tables.

Reads go by (location, version). Writes are staged: files are written and a transaction is built,
HEAD stays. Only `commit_staged` and `restore` move a HEAD, by exactly one version, and only while
the caller holds the writer queue of that (table, branch). No Lance object leaves this package.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import lance
import numpy as np
import pyarrow as pa
from lance.dataset import LanceOperation

from omnigraph.errors import BadRequestError, NotFoundError, TableNotFound
from omnigraph.storage import indexes, pending, reads, row_versions, search, vectors
from omnigraph.storage.blobs import blob_columns, logical_schema, read_blobs, stored_schema
from omnigraph.storage.compaction import TARGET_ROWS_PER_FRAGMENT, CompactionStaging
from omnigraph.storage.content import DatasetContent, inspect_dataset
from omnigraph.storage.counters import record
from omnigraph.storage.datasets import (
    HandleCache,
    Opener,
    empty_in_memory,
    manifest_path,
    manifest_size,
    session,
)
from omnigraph.storage.durability import Durability, sync_paths, sync_tree
from omnigraph.storage.fold_records import forget_records
from omnigraph.storage.forks import Forks
from omnigraph.storage.handles import (
    BranchInfo,
    CommittedVersion,
    IndexInfo,
    IndexSpec,
    Piece,
    ShownColumns,
    StagedIndexes,
    StagedTransaction,
    StageKind,
    TableHandle,
    TableState,
    TransactionInfo,
)
from omnigraph.storage.indexes import IndexStaging
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import transaction_uuid
from omnigraph.storage.location import GraphRoot, TableLocation
from omnigraph.storage.loose import LooseRows, LooseStaging, referenced_files, scan_addresses_of
from omnigraph.storage.operation_files import version_files
from omnigraph.storage.pending import Pending
from omnigraph.storage.predicates import Compare, CompareOp, Predicate
from omnigraph.storage.recorder import Recorder
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.staging import DATA_STORAGE_VERSION, RowStaging
from omnigraph.storage.text import open_text_store
from omnigraph.storage.torn import torn_versions
from omnigraph.storage.transactions import OPERATION_ID, Committer, Stager, read_transaction
from omnigraph.storage.version_files import (
    VersionFile,
    files_of,
    first_ids,
    own_files_of,
    problem_of,
)

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
SMALL_FRAGMENT_ROWS = 8_192


class TableStorage:
    """Every table of one graph, read and staged. Thread-safe."""

    def __init__(
        self,
        root: GraphRoot,
        storage_options: Mapping[str, str] | None = None,
        durability: Durability = "power",
    ) -> None:
        options = dict(storage_options or {})
        self._opener = Opener(options)
        self._durability = durability
        self._handles = HandleCache()
        self._places = row_versions.Places()
        self._recorder = Recorder(options)
        self._committer = Committer(self._opener, durability, self._recorder)
        stager = Stager(durability, self._recorder)
        self._stager = stager
        self._rows = RowStaging(stager)
        self._indexes = IndexStaging(stager)
        self._compaction = CompactionStaging(stager)
        self._loose = LooseStaging(stager, options)
        self._texts = open_text_store(root, options, durability)
        self._forks = Forks(self._opener, self._texts, durability, self._recorder)
        self.root = root
        self.storage_options: Mapping[str, str] = options
        self.durability = durability

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
        and made again may use the same version number for other rows. Version 0 of a table is
        from before it was made: it has no rows.
        """
        key = (location.uri, location.branch, version, incarnation, shown)
        handle = self._handles.get(key)
        if handle is None:
            handle = self._open(location, version, shown)
            self._handles.put(key, handle)
        return handle

    def _open(
        self, location: TableLocation, version: int, shown: ShownColumns | None
    ) -> TableHandle:
        if shown is None:
            return _handle(location, self._opener.at(location, version))
        if version == 0:
            return _empty_handle(location, shown)
        dataset = self._opener.at(location, version)
        if shown.renamed:
            dataset = self._opener.renamed(dataset, location, dict(shown.renamed))
        return _showing(_handle(location, dataset), shown)

    def head_version(self, location: TableLocation) -> int:
        """The latest version of the lineage, freshly looked up."""
        return int(self._opener.head(location).version)

    def exists(self, uri: str) -> bool:
        """Whether there is a dataset. A failure to look is an error, not False."""
        try:
            self._opener.head(TableLocation(uri))
        except TableNotFound:
            return False
        return True

    def forget(self) -> None:
        """Drop every cached handle. Results do not change; the next opens are cold."""
        self._handles.clear()

    # Reading

    def scan(
        self,
        handle: TableHandle,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        *,
        with_row_id: bool = False,
        limit: int | None = None,
        include_blobs: bool = False,
        fragment_ids: Sequence[int] | None = None,
    ) -> pa.Table:
        """Return the matching rows in table order. `_rowid` comes last when asked for."""
        batches = reads.scan_stream(
            handle,
            columns,
            predicate,
            with_row_id=with_row_id,
            limit=limit,
            include_blobs=include_blobs,
            fragment_ids=fragment_ids,
        )
        return reads.to_table(
            handle, batches, columns, with_row_id=with_row_id, include_blobs=include_blobs
        )

    def scan_stream(
        self,
        handle: TableHandle,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        *,
        with_row_id: bool = False,
        limit: int | None = None,
        include_blobs: bool = False,
        batch_rows: int = reads.BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows in table order, in bounded memory."""
        return reads.scan_stream(
            handle,
            columns,
            predicate,
            with_row_id=with_row_id,
            limit=limit,
            include_blobs=include_blobs,
            batch_rows=batch_rows,
        )

    def scan_addresses(
        self,
        handle: TableHandle,
        columns: Sequence[str],
        predicate: Predicate | None = None,
        fragment_ids: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns and, as `_rowaddr`, where each row lies, in bounded memory."""
        return scan_addresses_of(handle, columns, predicate, fragment_ids)

    def fragment_ids(self, handle: TableHandle) -> list[int]:
        """The fragments of this version: the pieces that may be read apart from one another."""
        return [each.fragment_id for each in handle._dataset.get_fragments()]

    def data_files(self, location: TableLocation, version: int) -> set[str]:
        """The names of the data files that a version consists of."""
        return referenced_files(self._opener.at(location, version))

    def count_rows(self, handle: TableHandle, predicate: Predicate | None = None) -> int:
        """Count the matching rows."""
        return reads.count_rows(handle, predicate)

    def take_rows(
        self, handle: TableHandle, row_ids: Sequence[int], columns: Sequence[str]
    ) -> pa.Table:
        """Return the rows with these row ids, in the order given."""
        return reads.take_rows(handle, row_ids, columns)

    def scan_with_pending(
        self,
        handle: TableHandle,
        pending_rows: Pending,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        key_column: str | None = None,
        *,
        include_blobs: bool = False,
    ) -> pa.Table:
        """Return committed and then pending rows; a pending key hides its committed row."""
        return pending.scan_with_pending(
            handle, pending_rows, columns, predicate, key_column, include_blobs=include_blobs
        )

    def count_rows_with_pending(
        self,
        handle: TableHandle,
        pending_rows: Pending,
        predicate: Predicate | None = None,
        key_column: str | None = None,
    ) -> int:
        """Count what `scan_with_pending` would return."""
        return pending.count_rows_with_pending(handle, pending_rows, predicate, key_column)

    def read_blob(
        self,
        handle: TableHandle,
        column: str,
        *,
        row_id: int | None = None,
        entity_id: str | None = None,
    ) -> bytes | None:
        """Return the bytes of one Blob cell, or None when it is null. Name the row one way."""
        if column not in blob_columns(handle.schema):
            raise BadRequestError(f"column '{column}' is not a Blob")
        assert (row_id is None) != (entity_id is None)
        row_ids = [row_id] if row_id is not None else self._row_ids(handle, str(entity_id))
        with lance_errors("reading a blob", handle.location):
            found = read_blobs(handle._dataset, column, [int(one) for one in row_ids])
        if not found:
            raise NotFoundError(f"there is no row '{entity_id if row_id is None else row_id}'")
        record(blobs_read=1)
        return found[0]

    def read_blobs(
        self, handle: TableHandle, column: str, row_ids: Sequence[int]
    ) -> list[bytes | None]:
        """Return the bytes of a Blob column for these rows, in the order given."""
        if column in handle.absent:
            return [None] * len(row_ids)
        with lance_errors("reading blobs", handle.location):
            found = read_blobs(handle._dataset, column, list(row_ids))
        record(blobs_read=len(found))
        return found

    def _row_ids(self, handle: TableHandle, entity_id: str) -> list[int]:
        same = Compare("id", CompareOp.EQ, pa.scalar(entity_id))
        rows = self.scan(handle, ["id"], same, with_row_id=True, limit=1)
        return list(rows.column(reads.ROW_ID).to_pylist())

    # Searching

    def full_text(self, handle: TableHandle, column: str) -> search.TextIndex:
        """Count the tokens of one text column. Costs a scan: keep it by `identity`."""
        return search.build_text_index(handle, column)

    def nearest(
        self,
        handle: TableHandle,
        column: str,
        query: Sequence[float],
        candidates: pa.UInt64Array | None = None,
        limit: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Row ids by squared distance to `query`, ties by entity id, and the distances."""
        return vectors.nearest_rows(handle, column, query, candidates, limit)

    def searches_by_index(self, handle: TableHandle, column: str) -> bool:
        """Whether `nearest` without candidates asks the vector index rather than every row."""
        return vectors.uses_index(handle, column)

    def keeps_vectors(self, handle: TableHandle, column: str) -> bool:
        """Whether the vectors of this column are few enough to keep in memory."""
        return vectors.is_worth_keeping(handle, column)

    def vector_column(self, handle: TableHandle, column: str) -> vectors.VectorColumn:
        """Every vector of one column. Costs a scan: keep it by `identity`."""
        return vectors.read_vectors(handle, column)

    def identity(
        self, handle: TableHandle
    ) -> tuple[str, str | None, int, str | None, ShownColumns | None]:
        """What a structure derived from this version may be kept under, for ever."""
        uuid = self.transaction_uuid(handle)
        return (handle.location.uri, handle.location.branch, handle.version, uuid, handle.shown)

    def transaction_uuid(self, handle: TableHandle) -> str | None:
        """The UUID of the transaction that made this version, when the version says."""
        return transaction_uuid(handle._dataset)

    # Comparing versions of one line of descent

    def field_ids(self, handle: TableHandle) -> tuple[tuple[str, int], ...]:
        """Name and identity of every column; row versions compare only where these are equal."""
        return row_versions.field_ids(handle)

    def touched_since(
        self, handle: TableHandle, ancestor: TableHandle
    ) -> tuple[pa.Array, RowIds, RowIds]:
        """Ids, row ids and making versions of the rows made or changed after `ancestor`."""
        return row_versions.touched_since(handle, ancestor, self._places)

    def gone_since(self, handle: TableHandle, ancestor: TableHandle, count: int) -> RowIds:
        """The row ids of `ancestor`, `count` of them, that are not there any more."""
        return row_versions.gone_since(handle, ancestor, count)

    def row_ids_gone(self, handle: TableHandle, ancestor: TableHandle) -> RowIds | None:
        """Row ids that were removed since `ancestor`, as Lance says; None when it cannot say."""
        return row_versions.row_ids_gone(handle, ancestor)

    def pieces(self, handle: TableHandle) -> tuple[Piece, ...]:
        """The fragments of a version in scan order."""
        return row_versions.pieces(handle)

    def take_stream(
        self,
        handle: TableHandle,
        row_ids: RowIds,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = reads.BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows with these row ids in that order, Blobs included, in bounded memory."""
        return row_versions.take_stream(
            handle, row_ids, columns, self._places, batch_rows=batch_rows
        )

    # Facts

    def table_state(self, handle: TableHandle) -> TableState:
        """How the table stands at this version."""
        with lance_errors("reading the state of a table", handle.location):
            stats = handle._dataset.stats.dataset_stats(SMALL_FRAGMENT_ROWS)
        return TableState(
            handle.version,
            handle.row_count,
            stats["num_fragments"],
            stats["num_small_files"],
            stats["num_deleted_rows"],
            transaction_uuid(handle._dataset),
            manifest_path(handle.location, handle.version),
            manifest_size(handle.location, handle.version),
        )

    def read_transaction(self, location: TableLocation, version: int) -> TransactionInfo | None:
        """What made this version, or None when the version does not say."""
        return read_transaction(self._opener.at(location, version), location)

    def damaged_files(self, handle: TableHandle) -> dict[str, str]:
        """URI → what is wrong with it, of every file this version needs. Looks, reads nothing."""
        found = {file.uri: problem_of(file, self.storage_options) for file in files_of(handle)}
        return {uri: problem for uri, problem in found.items() if problem is not None}

    def needed_files(self, handle: TableHandle) -> list[VersionFile]:
        """Every file that a read of this version may touch, its own included."""
        return [*own_files_of(handle), *files_of(handle)]

    def first_ids(self, handle: TableHandle, fragment_id: int, count: int) -> list[str]:
        """The ids of the first rows of a fragment, as far as they can be read."""
        return first_ids(handle, fragment_id, count)

    def dataset_uris(self) -> list[str]:
        """Every node and edge table below the root, shown or not."""
        return [
            f"{top}/{name}"
            for top in map(self.root.child, ("nodes", "edges"))
            for name in sorted(self._texts.list_folders(top))
        ]

    def inspect(self, uri: str, *, content: bool) -> DatasetContent:
        """Compare the files below a dataset with what was recorded when they were written."""
        return inspect_dataset(uri, self.storage_options, content=content)

    def record_files(self, uri: str, paths: Collection[str]) -> None:
        """Record files of a dataset, by their path below it, as they are now."""
        self._recorder.record_files(uri, paths)

    def describe_indices(self, handle: TableHandle) -> list[IndexInfo]:
        """The indexes of this version and how much of it they cover."""
        return indexes.describe(handle)

    # Creating

    def create_table(self, location: TableLocation, schema: pa.Schema) -> CommittedVersion:
        """Create an empty table; TableExists when there is one. `id` becomes the primary key."""
        with lance_errors("creating a table", location):
            # Inline commit: an empty table has no version yet that a staged one could follow.
            dataset = lance.write_dataset(
                keyed_schema(schema).empty_table(),
                location.uri,
                mode="create",
                enable_stable_row_ids=True,
                data_storage_version=DATA_STORAGE_VERSION,
                storage_options=dict(self._opener.storage_options) or None,
                session=session(),
            )
            if self._durability == "power" and self.root.is_local:
                sync_tree(location.uri)
        self._recorder.record_inline(location, dataset)
        record(commits=1)
        uuid = transaction_uuid(dataset)
        assert uuid is not None
        return CommittedVersion(
            location,
            dataset.version,
            uuid,
            0,
            manifest_path(location, dataset.version),
            manifest_size(location, dataset.version),
        )

    # Staging: HEAD does not move

    def stage_append(self, handle: TableHandle, rows: pa.Table) -> StagedTransaction:
        """Stage new rows; refuses none."""
        return self._rows.append(handle, rows)

    def stage_append_stream(
        self, handle: TableHandle, batches: Iterable[pa.RecordBatch]
    ) -> StagedTransaction:
        """Stage new rows from a stream, in bounded memory; refuses none."""
        return self._rows.append_stream(handle, batches)

    def stage_merge_insert(
        self, handle: TableHandle, rows: pa.Table, key: str = "id"
    ) -> StagedTransaction:
        """Stage an upsert by `key`; refuses no rows, and keys that occur twice."""
        return self._rows.merge_insert(handle, rows, key)

    def stage_replace(
        self, handle: TableHandle, batches: Iterable[pa.RecordBatch], addresses: np.ndarray
    ) -> StagedTransaction:
        """Stage rows from a stream in place of those at `addresses`, in bounded memory."""
        return self._rows.replace_stream(handle, batches, addresses)

    def stage_replace_rows(
        self,
        handle: TableHandle,
        batches: Iterable[pa.RecordBatch],
        row_ids: RowIds,
    ) -> StagedTransaction:
        """The same, in place of the rows with these row ids."""
        return self.stage_replace(handle, batches, row_versions.addresses_of(handle, row_ids))

    def stage_overwrite(self, handle: TableHandle, rows: pa.Table) -> StagedTransaction:
        """Stage the replacement of all rows; no rows empties the table."""
        return self._rows.overwrite(handle, rows)

    def stage_loose_append(self, handle: TableHandle, loose: LooseRows) -> StagedTransaction:
        """Adopt loose fragments and stage them as new rows."""
        return self._loose.append(handle, loose)

    def stage_loose_overwrite(self, handle: TableHandle, loose: LooseRows) -> StagedTransaction:
        """Adopt loose fragments and stage them as all the rows there are."""
        return self._loose.overwrite(handle, loose)

    def stage_loose_merge(
        self, handle: TableHandle, loose: LooseRows, replaced: np.ndarray
    ) -> StagedTransaction:
        """Adopt loose fragments and stage them in place of the rows at these addresses."""
        return self._loose.replace(handle, loose, replaced)

    def stage_delete(self, handle: TableHandle, predicate: Predicate) -> StagedTransaction | None:
        """Stage the removal of the matching rows; None when nothing matches."""
        return self._rows.delete(handle, predicate)

    def stage_delete_rows(self, handle: TableHandle, row_ids: RowIds) -> StagedTransaction | None:
        """Stage the removal of the rows with these row ids; None when there are none."""
        return self._rows.delete_at(handle, row_versions.addresses_of(handle, row_ids))

    def stage_create_index(self, handle: TableHandle, spec: IndexSpec) -> StagedIndexes:
        """Build one index and stage it."""
        return self._indexes.create(handle, [spec])

    def stage_create_indices(
        self, handle: TableHandle, specs: Sequence[IndexSpec]
    ) -> StagedIndexes:
        """Build several indexes and stage them as one transaction."""
        return self._indexes.create(handle, specs)

    def stage_fold_indices(
        self, handle: TableHandle, specs: Sequence[IndexSpec], extended: Sequence[IndexSpec]
    ) -> StagedIndexes:
        """Stage `specs` built anew and `extended` continued over what they do not cover."""
        return self._indexes.fold(handle, specs, extended)

    def stage_drop_indices(self, handle: TableHandle, names: Collection[str]) -> StagedTransaction:
        """Stage the removal of indexes by name."""
        return self._indexes.drop(handle, names)

    def stage_compaction(
        self,
        handle: TableHandle,
        target_rows: int = TARGET_ROWS_PER_FRAGMENT,
        without: Collection[str] = (),
    ) -> StagedTransaction | None:
        """Stage fewer, larger fragments; None when there is nothing to gain.

        The indexes named in `without` will be dropped before this is committed.
        """
        return self._compaction.stage(handle, target_rows, without)

    def stage_rewrite(
        self, handle: TableHandle, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> StagedTransaction:
        """Stage the replacement of all rows and columns; `batches` are in the new `schema`."""
        return self._rows.rewrite(handle, keyed_schema(schema), batches)

    def stage_restore(self, handle: TableHandle, version: int) -> StagedTransaction:
        """Stage bringing back an older version's rows; `handle` is the present HEAD."""
        wanted = self.open_at(handle.location, version)
        operation = LanceOperation.Restore(version)
        return self._stager.stage(handle, StageKind.RESTORE, operation, rows=wanted.row_count)

    # Committing: HEAD moves by exactly one

    def commit_staged(
        self, staged: StagedTransaction, *, operation_id: str | None = None
    ) -> CommittedVersion:
        """Advance HEAD by exactly one version, and prove that the version is this transaction.

        The caller holds the writer queue of the table.

        Raises:
            HeadMoved, CommitConflict: Somebody else committed first. Nothing was committed.
            RecoveryRequired: A foreign commit slipped in between; the rows may be in a version.
        """
        properties = {} if operation_id is None else {OPERATION_ID: operation_id}
        committed, dataset = self._committer.commit(staged, properties)
        key = (staged.location.uri, staged.location.branch, committed.version, staged.uuid, None)
        self._handles.put(key, _handle(staged.location, dataset))
        return committed

    def rebase(self, staged: StagedTransaction, handle: TableHandle) -> StagedTransaction:
        """Move a staged transaction onto a later version whose rows and fragments are the same."""
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

    def set_torn_aside(self, location: TableLocation, *, above: int) -> list[str]:
        """Move away versions after `above` that a power cut has torn; returns where they are now.

        The caller holds the writer queue of the table.
        """
        torn = torn_versions(location, above)
        for each in torn:
            forget_records(location, each.version)
        return [each.set_aside(self._durability) for each in torn]

    def flush(self, location: TableLocation, version: int) -> None:
        """Sync the files of a version: its writer may have died before it did."""
        if self._durability == "power" and self.root.is_local:
            with lance_errors("flushing a version", location):
                dataset = self._opener.at(location, version)
                made_by = dataset.read_transaction(version)
                sync_paths(version_files(location, dataset, made_by))

    def delete_table(self, uri: str) -> None:
        """Remove a table that no manifest has ever named, with all that is below it."""
        self._texts.delete_prefix(uri)
        self.forget()

    # Forks

    def fork_branch(self, location: TableLocation, version: int, branch: str) -> TableHandle:
        """Fork a table at an exact version; ForkExists when the name is taken."""
        fork = self._forks.create(location, version, branch)
        return _handle(fork, self._opener.at(fork, version))

    def find_branch(self, uri: str, branch: str) -> BranchInfo | None:
        """One fork of a table, or None."""
        return self._forks.find(uri, branch)

    def branch_names(self, uri: str) -> set[str]:
        """The names of the live forks of a table: one listing, however many there are."""
        return self._forks.names(uri)

    def list_branches(self, uri: str) -> Mapping[str, BranchInfo]:
        """The live forks of a table by name."""
        return self._forks.list(uri)

    def delete_branch(self, uri: str, branch: str) -> None:
        """Delete a live fork; ForkInUse while another one stands on it."""
        self._forks.delete(uri, branch)
        self.forget()

    def delete_fork_tree(self, uri: str, branch: str) -> None:
        """Remove files of an unfinished fork that no ref names."""
        self._forks.delete_tree(uri, branch)
        self.forget()


def keyed_schema(schema: pa.Schema) -> pa.Schema:
    """The stored form of a logical schema, with `id` as the primary key."""
    return pa.schema(
        field.with_metadata({PRIMARY_KEY: "true"}) if field.name == "id" else field
        for field in stored_schema(schema)
    )


def _empty_handle(location: TableLocation, shown: ShownColumns) -> TableHandle:
    """A table from before it was made."""
    assert shown.schema is not None
    dataset = empty_in_memory(keyed_schema(shown.schema))
    return replace(_handle(location, dataset), version=0, schema=shown.schema, shown=shown)


def _showing(handle: TableHandle, shown: ShownColumns) -> TableHandle:
    """The same version in the columns of `shown`: those it does not have read as null."""
    if shown.schema is None:
        return replace(handle, shown=shown)
    known = {field.name: field for field in handle.schema}
    fields, absent = [], set()
    for field in shown.schema:
        found = known.get(field.name)
        if found is None or found.type != field.type:
            absent.add(field.name)
            found = field.with_nullable(True)
        fields.append(found)
    return replace(handle, schema=pa.schema(fields), absent=frozenset(absent), shown=shown)


def _handle(location: TableLocation, dataset: lance.LanceDataset) -> TableHandle:
    with lance_errors("reading a table", location):
        rows = reads.row_count(dataset)
        schema = logical_schema(dataset.schema)
    return TableHandle(location, dataset.version, schema, rows, dataset)
