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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from uuid import uuid4

from lance import LanceDataset
from lance.dataset import LanceOperation, Transaction

from omnigraph.dataclass import dataclass
from omnigraph.errors import HeadMoved, InvariantViolated, OmnigraphError, RecoveryRequired
from omnigraph.storage.appended_versions import (
    VERSION_BYTES_MAX,
    Append,
    AppendedVersion,
    Chain,
    Chains,
)
from omnigraph.storage.checksums import Checksums
from omnigraph.storage.counters import record
from omnigraph.storage.datasets import Opener, manifest_path
from omnigraph.storage.durability import Durability, sync_paths, with_parents
from omnigraph.storage.handles import (
    CommittedVersion,
    StagedTransaction,
    StageKind,
    TableHandle,
    TransactionInfo,
)
from omnigraph.storage.lance_errors import lance_errors, translate
from omnigraph.storage.lance_manifest import is_made_by, manifest_bytes, transaction_uuid
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
    chains: Chains

    def commit(
        self, staged: StagedTransaction, properties: Mapping[str, str], *, is_synced: bool = True
    ) -> tuple[CommittedVersion, LanceDataset]:
        """Advance HEAD by exactly one version, and prove that it is ours.

        Unless `is_synced`, the caller syncs its files, with those of other commits.
        """
        self._require_head(staged)
        chain = self._take_chain(staged, properties)
        if chain is not None:
            (committed,) = self._append_versions(chain, [staged], properties)
            dataset = self._open_appended(committed)
        else:
            committed, dataset = self._commit_by_lance(staged, properties)
            if len(manifest_bytes(dataset)) <= VERSION_BYTES_MAX:
                chain = self._begin_chain(staged, committed, properties)
        self.chains.keep(chain)
        if is_synced:
            with lance_errors("flushing a commit", staged.location):
                committed = sync_versions([committed])[0]
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
        self._require_head(staged[0])
        made, left, dataset = list[CommittedVersion](), list(staged), staged[0]._dataset
        chain = self._take_chain(staged[0], properties)
        while left and chain is None:
            onto = left.pop(0)
            if made:
                onto = replace(onto, read_version=made[-1].version, _dataset=dataset)
                self._require_head(onto)
            committed, dataset = self._commit_by_lance(onto, properties)
            on_moved()
            made.append(committed)
            chain = self._begin_chain(onto, committed, properties)
        if left:
            assert chain is not None
            made += self._append_versions(chain, left, properties, on_moved)
            dataset = self._open_appended(made[-1])
        self.chains.keep(chain)
        return made, dataset

    def _require_head(self, staged: StagedTransaction) -> None:
        is_latest = self.opener.is_latest(staged.location, staged.read_version)
        head = staged.read_version if is_latest else self.opener.head(staged.location).version
        if head != staged.read_version:
            raise HeadMoved(str(staged.location), expected=staged.read_version, actual=head)

    def _commit_by_lance(
        self, staged: StagedTransaction, properties: Mapping[str, str]
    ) -> tuple[CommittedVersion, LanceDataset]:
        _hand_over(staged)
        transaction = Transaction(
            staged.read_version, staged._operation, staged.uuid, dict(properties)
        )
        dataset = self._commit(staged, transaction)
        self._verify(staged, dataset)
        files: list[str] = []
        if self.durability == "power" and staged.location.is_local:
            files = committed_files(staged.location, dataset.version, transaction)
        committed = describe_version(staged.location, dataset, staged.uuid)
        record(commits=1)
        made = staged.location, dataset.version, transaction, staged.checksums
        note = partial(self.recorder.record_commit, *made)
        return replace(committed, unsynced=tuple(files), record=note), dataset

    # Versions that are written without Lance

    def _take_chain(self, staged: StagedTransaction, properties: Mapping[str, str]) -> Chain | None:
        """Where the table stands, for an append to the version that was written here last."""
        chain = self.chains.take(staged.location)
        if chain is None or _to_append(staged, properties) is None:
            return None
        return chain if chain.follows(staged._dataset) else None

    def _begin_chain(
        self, staged: StagedTransaction, made: CommittedVersion, properties: Mapping[str, str]
    ) -> Chain | None:
        """Versions that can follow one that Lance has committed, without asking Lance."""
        added = _to_append(staged, properties)
        if added is None:
            return None
        return Chain.begin(made.location, made.version, added, made.row_count)

    def _append_versions(
        self,
        chain: Chain,
        staged: Sequence[StagedTransaction],
        properties: Mapping[str, str],
        on_moved: Callable[[], None] = lambda: None,
    ) -> list[CommittedVersion]:
        location = chain.location
        made, records = list[CommittedVersion](), list[tuple[AppendedVersion, Checksums]]()
        for each in staged:
            _hand_over(each)
            added = _to_append(each, properties)
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
            records.append((version, each.checksums))
            made.append(self._describe_appended(location, each.uuid, version))
            record(commits=1)
        note = partial(self.recorder.record_appended, location, records)
        return [*made[:-1], replace(made[-1], record=note)]

    def _describe_appended(
        self, location: TableLocation, uuid: str, made: AppendedVersion
    ) -> CommittedVersion:
        files: list[str] = []
        if self.durability == "power":
            top = location.physical_uri
            files = with_parents((f"{top}/{name}" for name in made.files), top)
        path = manifest_path(location, made.version)
        return CommittedVersion(location, made.version, uuid, made.row_count, path, tuple(files))

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


def sync_versions(versions: Iterable[CommittedVersion]) -> list[CommittedVersion]:
    """Make versions durable that are not yet, side by side, and then record them."""
    made = list(versions)
    sync_paths(path for each in made for path in each.unsynced)
    for each in made:
        if each.record is not None:
            each.record()
    return [replace(each, unsynced=(), record=None) for each in made]


def _hand_over(staged: StagedTransaction) -> None:
    """Note that a transaction is about to be committed, which may happen once."""
    if not staged._once.acquire(blocking=False):
        raise InvariantViolated(
            f"transaction {staged.uuid} was already handed to commit — stage the write again"
        )


def _to_append(staged: StagedTransaction, properties: Mapping[str, str]) -> Append | None:
    """The commit of a transaction that only adds files on a local disk; None for others."""
    if not staged.location.is_local:
        return None
    return Append.of(staged.uuid, properties, staged._operation)


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
