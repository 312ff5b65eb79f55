"""Transactions: from a Lance operation to a staged transaction, and from there to a commit.

Commit advances HEAD by exactly one version and proves it. Lance rebases a stale transaction onto
a newer HEAD without saying so, whatever `max_retries` is, so HEAD is checked before, and the new
version number and the UUID of its transaction after.

        state at the failure                        what the caller gets
        HEAD had moved before the commit            HeadMoved: nothing was committed
        Lance refused                               CommitConflict: nothing was committed
        Lance failed, but the version is ours       the committed version, as if it had not failed
        a foreign commit slipped in between         RecoveryRequired: our rows may be in a version
        the outcome cannot be read                  RecoveryRequired
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

from lance import LanceDataset
from lance.dataset import LanceOperation, Transaction

from omnigraph.dataclass import dataclass
from omnigraph.errors import HeadMoved, InvariantViolated, OmnigraphError, RecoveryRequired
from omnigraph.storage.appended_versions import Append, AppendedVersion, Chain
from omnigraph.storage.checksums import Checksums
from omnigraph.storage.counters import record
from omnigraph.storage.datasets import Opener, manifest_path
from omnigraph.storage.durability import Durability, sync_paths
from omnigraph.storage.handles import (
    CommittedVersion,
    StagedTransaction,
    StageKind,
    TableHandle,
    TransactionInfo,
)
from omnigraph.storage.lance_errors import lance_errors, translate
from omnigraph.storage.lance_manifest import is_made_by, transaction_uuid
from omnigraph.storage.location import TableLocation
from omnigraph.storage.operation_files import committed_files, count_staged_bytes, list_staged_files
from omnigraph.storage.recorder import Recorder

OPERATION_ID = "omnigraph.operation_id"
_ROWS_ONLY = frozenset(
    {StageKind.APPEND, StageKind.MERGE_INSERT, StageKind.UPDATE, StageKind.DELETE}
)
"""What is done to rows, and to no column."""


@dataclass(frozen=True, slots=True)
class Stager:
    """Turns operations into staged transactions whose files are as durable as promised."""

    durability: Durability
    recorder: Recorder

    def stage(
        self,
        handle: TableHandle,
        kind: StageKind,
        operation: LanceOperation.BaseOperation,
        *,
        rows: int,
        checksums: Checksums | None = None,
    ) -> StagedTransaction:
        """Make the files of `operation` durable and mint its UUID.

        `checksums` are those taken where files were written; the others are taken here.
        """
        self._sync(handle, [operation])
        return self._to_staged(handle, kind, operation, rows, checksums)

    def stage_many(
        self,
        handle: TableHandle,
        kind: StageKind,
        operations: Sequence[LanceOperation.BaseOperation],
        *,
        rows: Sequence[int],
    ) -> list[StagedTransaction]:
        """The same for several transactions of one table, whose files are synced side by side."""
        self._sync(handle, operations)
        return [
            self._to_staged(handle, kind, operation, count, None)
            for operation, count in zip(operations, rows, strict=True)
        ]

    def _sync(
        self, handle: TableHandle, operations: Sequence[LanceOperation.BaseOperation]
    ) -> None:
        if self.durability == "power" and handle.location.is_local:
            top = handle.location.physical_uri
            with lance_errors("flushing staged files", handle.location):
                sync_paths(path for each in operations for path in list_staged_files(each, top))

    def _to_staged(
        self,
        handle: TableHandle,
        kind: StageKind,
        operation: LanceOperation.BaseOperation,
        rows: int,
        checksums: Checksums | None,
    ) -> StagedTransaction:
        size = count_staged_bytes(operation)
        staged = StagedTransaction(
            str(uuid4()),
            handle.version,
            kind,
            rows,
            handle.location,
            size,
            self.recorder.measure(operation, handle.location, checksums or {}),
            _operation=operation,
            _dataset=handle._dataset,
            _schema=handle.schema if kind in _ROWS_ONLY and handle.shown is None else None,
        )
        record(stages=Counter([kind.value]), bytes_staged=size)
        return staged


@dataclass(frozen=True, slots=True)
class Committer:
    """Moves HEADs. The caller holds the writer queue of the table."""

    opener: Opener
    durability: Durability
    recorder: Recorder

    def commit(
        self, staged: StagedTransaction, properties: Mapping[str, str], *, is_synced: bool = True
    ) -> tuple[CommittedVersion, LanceDataset]:
        """Advance HEAD by exactly one version, and prove that it is ours.

        Unless `is_synced`, the caller syncs its files, with those of other commits.
        """
        is_latest = self.opener.is_latest(staged.location, staged.read_version)
        head = staged.read_version if is_latest else self.opener.head(staged.location).version
        if head != staged.read_version:
            raise HeadMoved(str(staged.location), expected=staged.read_version, actual=head)
        if not staged._once.acquire(blocking=False):
            raise InvariantViolated(
                f"transaction {staged.uuid} was already handed to commit — stage the write again"
            )
        transaction = Transaction(
            staged.read_version, staged._operation, staged.uuid, dict(properties)
        )
        dataset = self._commit(staged, transaction)
        self._verify(staged, dataset)
        files: list[str] = []
        if self.durability == "power" and staged.location.is_local:
            files = committed_files(staged.location, dataset.version, transaction)
        if is_synced:
            with lance_errors("flushing a commit", staged.location):
                sync_paths(files)
        self.recorder.record_commit(staged.location, dataset.version, transaction, staged.checksums)
        committed = describe_version(staged.location, dataset, staged.uuid)
        if not is_synced:
            committed = replace(committed, unsynced=tuple(files))
        record(commits=1)
        return committed, dataset

    def commit_each(
        self,
        staged: Sequence[StagedTransaction],
        properties: Mapping[str, str],
        on_moved: Callable[[], None],
    ) -> tuple[list[CommittedVersion], LanceDataset]:
        """Advance HEAD by one version for each of several appends, staged at the same version.

        The caller is told of each version, and syncs the files of all.
        """
        first, *others = staged
        committed, dataset = self.commit(first, properties, is_synced=False)
        on_moved()
        made = [committed]
        chain = self._begin_chain(first, committed.version, properties) if others else None
        if chain is not None:
            made += self._append_versions(chain, others, committed, properties, on_moved)
            return made, self._open_appended(made[-1])
        for each in others:
            onto = replace(each, read_version=committed.version, _dataset=dataset)
            committed, dataset = self.commit(onto, properties, is_synced=False)
            on_moved()
            made.append(committed)
        return made, dataset

    def _begin_chain(
        self, first: StagedTransaction, version: int, properties: Mapping[str, str]
    ) -> Chain | None:
        """Versions that can follow one that Lance has committed, without asking Lance."""
        added = Append.of(first.uuid, properties, first._operation)
        if added is None or not first.location.is_local:
            return None
        with lance_errors("reading a version", first.location):
            return Chain.begin(first.location, version, added)

    def _append_versions(
        self,
        chain: Chain,
        staged: Sequence[StagedTransaction],
        last: CommittedVersion,
        properties: Mapping[str, str],
        on_moved: Callable[[], None],
    ) -> list[CommittedVersion]:
        location, rows = last.location, last.row_count
        made, records = list[CommittedVersion](), list[tuple[AppendedVersion, Checksums]]()
        for each in staged:
            if not each._once.acquire(blocking=False):
                raise InvariantViolated(f"transaction {each.uuid} was already handed to commit")
            added = Append.of(each.uuid, properties, each._operation)
            assert added is not None, "parts of a group are all appends"
            with lance_errors("committing", location):
                try:
                    version = chain.append(added)
                except FileExistsError as error:
                    expected = chain.version - 1
                    raise HeadMoved(
                        str(location), expected=expected, actual=chain.version
                    ) from error
            on_moved()
            rows += each.rows
            records.append((version, each.checksums))
            files = tuple(
                f"{location.physical_uri}/{name}"
                for name in version.files
                if self.durability == "power"
            )
            path = manifest_path(location, version.version)
            made.append(CommittedVersion(location, version.version, each.uuid, rows, path, files))
            record(commits=1)
        with lance_errors("committing", location):
            chain.point_to_latest()
        self.recorder.record_appended(location, records)
        return made

    def _open_appended(self, made: CommittedVersion) -> LanceDataset:
        """Have Lance open a version that it has not written."""
        dataset = self.opener.at(made.location, made.version)
        found = describe_version(made.location, dataset, made.transaction_uuid)
        is_ours = is_made_by(dataset, made.version - 1, made.transaction_uuid)
        if not is_ours or found.row_count != made.row_count:
            raise InvariantViolated(
                f"version {made.version} at '{made.location}' reads other than it was written — "
                "nothing of it is kept"
            )
        return dataset

    def _commit(self, staged: StagedTransaction, transaction: Transaction) -> LanceDataset:
        try:
            return commit_once(staged._dataset, transaction)
        except (OSError, ValueError, RuntimeError) as error:
            return self._after_failure(staged, error)

    def _after_failure(self, staged: StagedTransaction, error: Exception) -> LanceDataset:
        """Find out whether a commit that failed took effect all the same."""
        location = staged.location
        try:
            head = self.opener.head(location).version
            landed = next(
                (
                    version
                    for version in range(head, staged.read_version, -1)
                    if transaction_uuid(self.opener.at(location, version)) == staged.uuid
                ),
                None,
            )
        except OmnigraphError as unreadable:
            raise RecoveryRequired(
                f"the outcome of a commit at '{location}' is unknown: the commit failed and the "
                "table cannot be read back"
            ) from unreadable
        if landed is None:
            raise translate(error, action="committing", location=str(location)) from error
        return self.opener.at(location, landed)

    def _verify(self, staged: StagedTransaction, dataset: LanceDataset) -> None:
        expected = staged.read_version + 1
        if dataset.version == expected and is_made_by(dataset, staged.read_version, staged.uuid):
            return
        raise RecoveryRequired(
            f"the commit at '{staged.location}' landed as version {dataset.version} instead of "
            f"{expected}: another writer committed in between"
        )


def commit_once(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    """Commit on top of an open version: Lance refuses what conflicts with a later one."""
    return LanceDataset.commit(dataset, transaction, max_retries=0)


def describe_version(location: TableLocation, dataset: LanceDataset, uuid: str) -> CommittedVersion:
    """Describe a version for the manifest."""
    with lance_errors("counting rows", location):
        rows = int(dataset.count_rows())
    path = manifest_path(location, dataset.version)
    return CommittedVersion(location, dataset.version, uuid, rows, path)


def read_transaction(dataset: LanceDataset, location: TableLocation) -> TransactionInfo | None:
    """Return what made the version of `dataset`, or None when it does not say."""
    try:
        with lance_errors("reading a transaction", location):
            found = dataset.read_transaction(dataset.version)
    except OmnigraphError:
        found = None
    if found is not None:
        properties = dict(found.transaction_properties or {})
        operation = found.operation
        restored = operation.version if isinstance(operation, LanceOperation.Restore) else None
        return TransactionInfo(found.uuid, type(operation).__name__, properties, restored)
    # Lance's Python binding cannot read back every operation (a compaction that rewrote an index
    # is one); the manifest still names the transaction.
    uuid = transaction_uuid(dataset)
    return None if uuid is None else TransactionInfo(uuid, None, {})


def commit_scratch(
    uri: str, operation: LanceOperation.BaseOperation, storage_options: Mapping[str, str] | None
) -> LanceDataset:
    """Make a dataset of fragments in the scratch of a load, to read them: it is no table."""
    options = dict(storage_options or {}) or None
    return LanceDataset.commit(uri, operation, storage_options=options)
