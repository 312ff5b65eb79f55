"""Control commits: how a commit of rows to a control table is made, and made durable.

merge      one call of Lance: rows of any keys, fenced by the primary key
replace    new rows in place of known ones. Two writers that remove the same row change the same
           fragment, and Lance refuses the second; where the version before is one that was
           written here last, the next one is written without Lance, and its name is the fence
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import LanceOperation, Transaction

from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    CommitConflict,
    InvariantViolated,
    RecoveryRequired,
    RowLevelCasContention,
)
from omnigraph.storage.appended_versions import Append, Chain, Chains
from omnigraph.storage.datasets import Opener
from omnigraph.storage.durability import sync_paths
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.location import TableLocation
from omnigraph.storage.operation_files import version_files
from omnigraph.storage.recorder import Recorder
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.staging import write_deletions, write_rows
from omnigraph.storage.transactions import commit_once


@dataclass(frozen=True, slots=True)
class Made:
    """A version that was committed, and by what."""

    dataset: LanceDataset
    transaction: Transaction | None


@dataclass(frozen=True, slots=True)
class ControlCommits:
    """Commits to one control table, on any of its branches."""

    key: str
    opener: Opener
    recorder: Recorder
    chains: Chains
    is_local: bool
    is_power: bool

    def merge(self, dataset: LanceDataset, rows: pa.Table) -> Made:
        """Update the rows whose key is there, and insert the others."""
        # Inline commit: a publish of any keys is fenced only as one shot of Lance's own.
        (
            dataset.merge_insert(self.key)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .conflict_retries(0)
            .use_index(False)
            .execute(rows)
        )
        return describe(dataset)

    def replace(
        self,
        location: TableLocation,
        dataset: LanceDataset,
        rows: pa.Table,
        places: RowIds,
        is_latest: bool = False,
    ) -> Made:
        """Add the rows, and remove those at `places`; `is_latest` where that is certain."""
        written = write_rows(dataset, rows)
        updated, removed = write_deletions(dataset, places)
        operation = LanceOperation.Update(
            removed_fragment_ids=removed, updated_fragments=updated, new_fragments=written
        )
        transaction = Transaction(dataset.version, operation)
        added = Append.of_replacement(transaction.uuid, operation) if self.is_local else None
        chain = self.chains.take(location)
        is_next = is_latest and chain is not None and chain.follows(dataset)
        if added is not None and chain is not None and is_next and chain.can_take(added):
            return Made(self._append(location, chain, added), transaction)
        # The fence is the fragment that a row is taken from: no other commit may change it
        # meanwhile.
        made = Made(commit_once(dataset, transaction), transaction)
        if added is not None:
            self.chains.keep(Chain.begin(location, int(made.dataset.version), added))
        return made

    def _append(self, location: TableLocation, chain: Chain, added: Append) -> LanceDataset:
        """Write the next version; the fence is its name, which only one writer can give."""
        try:
            version = chain.append(added).version
        except FileExistsError as error:
            raise CommitConflict(f"version {chain.version} at '{location}' is there") from error
        dataset = self.opener.at(location, version)
        if not chain.follows(dataset):
            raise InvariantViolated(f"version {version} at '{location}' reads other than written")
        self.chains.keep(chain)
        return dataset

    def flush(self, location: TableLocation, made: Made) -> None:
        """Sync what a publish wrote. A failure here may have taken effect: the error says so."""
        try:
            self.sync(location, made)
        except OSError as error:
            raise RecoveryRequired(
                f"the publish at '{location}' may have taken effect but could not be flushed to "
                "the disk — look at the disk"
            ) from error

    def sync(self, location: TableLocation, made: Made) -> None:
        """Make a version durable, and then record its checksums."""
        version, transaction = int(made.dataset.version), made.transaction
        if self.is_power:
            sync_paths(version_files(location, made.dataset, transaction))
        if transaction is not None:
            self.recorder.record_commit(location, version, transaction, {})


def describe(dataset: LanceDataset) -> Made:
    """A version that Lance has committed."""
    return Made(dataset, dataset.read_transaction(dataset.version))


@contextmanager
def publishing(location: TableLocation) -> Iterator[None]:
    """Turn every way in which Lance reports a lost publish into one error."""
    try:
        with lance_errors("publishing", location):
            yield
    except CommitConflict as error:
        raise RowLevelCasContention(f"another writer changed '{location.uri}' first") from error
