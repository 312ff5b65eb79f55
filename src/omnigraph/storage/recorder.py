"""Recorder: take the checksums of what a commit wrote, and write them beside it.

On a local disk the files are read back from the page cache before the write is acknowledged: a few
dozen microseconds per file. In an object store a thread of its own asks for their ETags, after the
write has been acknowledged. Either way a record that could not be written fails no write: what it
would have recorded is missing, and `verify` reports that.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import field
from functools import cache
from threading import Lock
from urllib.parse import unquote
from uuid import uuid4

from lance import LanceDataset
from lance.dataset import LanceOperation, Transaction

from omnigraph.dataclass import dataclass
from omnigraph.failpoints import Failpoint, hit
from omnigraph.storage.appended_versions import AppendedVersion
from omnigraph.storage.checksum_records import DIRECTORY, LOG, Record, encode_record
from omnigraph.storage.checksums import (
    Checksum,
    Checksums,
    checksum_chunks,
    checksum_etag,
    checksum_files,
    is_fork_version,
)
from omnigraph.storage.listing import Files
from omnigraph.storage.location import REFS, TableLocation, ref_file, version_file
from omnigraph.storage.operation_files import existing_files, relative_files

log = logging.getLogger("omnigraph.storage")

_newest: Future[None] | None = None
_newest_lock = Lock()


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records the files of commits. Never fails: it logs."""

    storage_options: Mapping[str, str] = field(default_factory=dict)

    def measure(
        self, operation: LanceOperation.BaseOperation, location: TableLocation, known: Checksums
    ) -> Checksums:
        """The checksums of what an operation has written; `known` were taken where it was."""
        if not location.is_local:
            return {}
        top = location.physical_uri
        prefix = location.prefix
        measured = {f"{prefix}{path}": each for path, each in known.items()}
        paths = existing_files(operation, top)
        unknown = [path for path in paths if path[len(location.uri) + 1 :] not in measured]
        try:
            return measured | checksum_files(unknown, location.uri)
        except OSError as error:
            log.warning("could not take the checksums of a write to '%s': %s", location, error)
            return measured

    def record_commit(
        self,
        location: TableLocation,
        version: int,
        transaction: Transaction,
        staged: Checksums,
    ) -> None:
        """Record one version by the transaction that made it."""
        hit(Failpoint.CHECKSUMS_BEFORE_RECORD)
        base, uuid = transaction.read_version, transaction.uuid
        written = [version_file(version), f"_transactions/{base}-{uuid}.txn"]
        self._record(location, version, uuid, transaction.operation, written, staged)

    def record_appended(
        self, location: TableLocation, versions: Sequence[tuple[AppendedVersion, Checksums]]
    ) -> None:
        """Record versions that were written here, each with the files that were staged for it."""
        hit(Failpoint.CHECKSUMS_BEFORE_RECORD)
        lines = b""
        for made, staged in versions:
            written = {
                (path := f"{location.prefix}{name}"): checksum_chunks([data], location.uri, path)
                for name, data in made.files.items()
            }
            lines += encode_record(Record(made.version, {**staged, **written}))
        try:
            store = Files(location.uri, self.storage_options)
            store.append(f"{location.prefix}{DIRECTORY}/{LOG}", lines)
        except OSError as error:
            log.warning("could not record the checksums of '%s': %s", location, error)

    def record_inline(self, location: TableLocation, dataset: LanceDataset, since: int = 0) -> None:
        """Record every version after `since`, by default the latest, that Lance committed."""
        for version in range(since + 1 if since else dataset.version, dataset.version + 1):
            try:
                transaction = dataset.read_transaction(version)
            except Exception as error:
                log.warning("could not record version %d of '%s': %s", version, location, error)
                continue
            if transaction is not None:
                self.record_commit(location, version, transaction, {})

    def record_fork(self, fork: TableLocation, version: int, transaction: str | None) -> None:
        """Record what the creation of a fork wrote: a version, its transaction file, its ref."""
        assert fork.branch is not None
        top = "../" * (2 + fork.branch.count("/"))
        written = [version_file(version), f"{top}{ref_file(fork.branch)}"]
        written += [f"_transactions/{transaction}"] if transaction is not None else []
        self._record(fork, version, "fork", None, written, {})

    def record_files(self, uri: str, paths: Iterable[str]) -> None:
        """Record files of a dataset, of any lineage, as they are now."""
        by_lineage: dict[str | None, list[str]] = {}
        for path in paths:
            by_lineage.setdefault(_branch_of(path), []).append(path)
        for branch, found in by_lineage.items():
            location = TableLocation(uri, branch)
            below = [os.path.relpath(each, location.prefix or ".") for each in found]
            self._record(location, 0, f"recorded-{uuid4().hex}", None, below, {})
        wait_for_records()

    def record_known(self, uri: str, checksums: Checksums) -> None:
        """Record files of a dataset, of any lineage, whose checksums are known."""
        by_lineage: dict[str | None, dict[str, Checksum]] = {}
        for path, checksum in checksums.items():
            by_lineage.setdefault(_branch_of(path), {})[path] = checksum
        for branch, found in by_lineage.items():
            location = TableLocation(uri, branch)
            try:
                self._write(location, 0, f"copied-{uuid4().hex}", found)
            except OSError as error:
                log.warning("could not record the checksums of '%s': %s", location, error)

    def _record(
        self,
        location: TableLocation,
        version: int,
        uuid: str,
        operation: LanceOperation.BaseOperation | None,
        written: Iterable[str],
        staged: Checksums,
    ) -> None:
        relatives = [*written]
        if not location.is_local:
            relatives += relative_files(operation) if operation is not None else []
            _later(self._record_objects, location, version, uuid, relatives)
            return
        top = location.physical_uri
        paths = [os.path.normpath(f"{top}/{each}") for each in relatives]
        if operation is not None and not staged:
            paths += existing_files(operation, top)
        try:
            self._write(location, version, uuid, {**staged, **checksum_files(paths, location.uri)})
        except OSError as error:
            log.warning("could not record the checksums of '%s': %s", location, error)

    def _write(self, location: TableLocation, version: int, uuid: str, files: Checksums) -> None:
        line = encode_record(Record(version, files))
        directory = f"{location.prefix}{DIRECTORY}"
        store = Files(location.uri, self.storage_options)
        if store.is_local:
            store.append(f"{directory}/{LOG}", line)
        else:
            store.write(f"{directory}/{version}-{uuid}.log", line)

    def _record_objects(
        self, location: TableLocation, version: int, uuid: str, relatives: Iterable[str]
    ) -> None:
        store = Files(location.uri, self.storage_options)
        prefix = location.prefix
        files: dict[str, Checksum] = {}
        for each in relatives:
            path = os.path.normpath(f"{prefix}{each}")
            for found, listed in store.find(path).items():
                if is_fork_version(found):
                    files[found] = checksum_chunks(store.chunks(found), location.uri, found)
                elif listed.etag is not None:
                    files[found] = checksum_etag(listed.size, listed.etag)
        self._write(location, version, uuid, files)


def _branch_of(path: str) -> str | None:
    """The lineage that a file below a dataset belongs to: forks keep theirs below `tree/`.

    The ref of a fork is recorded with it, and goes with it.
    """
    if path.startswith(f"{REFS}/"):
        return unquote(path.removeprefix(f"{REFS}/").removesuffix(".json"))
    inside = re.match(r"tree/(.+?)/(?:_versions|_transactions|_deletions|_indices|data)/", path)
    return None if inside is None else inside[1]


def wait_for_records() -> None:
    """Wait until what this process has written to object stores is recorded."""
    if _newest is not None:
        wait([_newest])  # one thread works in the order of submission: the others are done


@cache
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "omnigraph-checksums")


def _later(work: object, *arguments: object) -> None:
    def run() -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except Exception as error:
            log.warning("could not record the checksums of '%s': %s", arguments[0], error)

    global _newest
    with _newest_lock:
        _newest = _worker().submit(run)
