"""Operation files: which files on a local disk a staged operation and its commit consist of.

Sync them and their directories and nothing else: walking a table would cost more with its age.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from lance import LanceDataset
from lance.dataset import Index, LanceOperation, Transaction
from lance.fragment import FragmentMetadata
from lance.optimize import RewriteResult

from omnigraph.storage.datasets import manifest_path
from omnigraph.storage.durability import with_parents
from omnigraph.storage.lance_manifest import transaction_file
from omnigraph.storage.location import TableLocation


def list_staged_files(operation: LanceOperation.BaseOperation, top: str) -> list[str]:
    """The files an operation has written below the dataset at `top`, and their directories."""
    return with_parents(existing_files(operation, top), top)


def existing_files(operation: LanceOperation.BaseOperation, top: str) -> list[str]:
    """What an operation has written below the dataset at `top`."""
    return [
        path
        for relative in relative_files(operation)
        for path in _existing(os.path.join(top, relative))
    ]


def commit_files(location: TableLocation, dataset: LanceDataset) -> list[str]:
    """The files that the commit of this version has written, and their directories."""
    return _version_files(location, int(dataset.version), transaction_file(dataset))


def committed_files(location: TableLocation, version: int, transaction: Transaction) -> list[str]:
    """The same for a version that is known to be made by this transaction."""
    return _version_files(location, version, f"{transaction.read_version}-{transaction.uuid}.txn")


def _version_files(location: TableLocation, version: int, transaction: str | None) -> list[str]:
    top = location.physical_uri
    files = ["/" + manifest_path(location, version)]
    if transaction is not None:
        files.append(os.path.join(top, "_transactions", transaction))
    return with_parents([path for path in files if os.path.exists(path)], top)


def version_files(
    location: TableLocation, dataset: LanceDataset, transaction: Transaction | None
) -> list[str]:
    """Everything that the commit of this version, by its transaction, has written."""
    if transaction is None:
        return commit_files(location, dataset)
    written = list_staged_files(transaction.operation, location.physical_uri)
    return [*written, *committed_files(location, int(dataset.version), transaction)]


def list_compacted_files(results: Iterable[RewriteResult], top: str) -> list[str]:
    """The data files that a compaction has written below the dataset at `top`."""
    fragments = [fragment for result in results for fragment in result.new_fragments]
    names = [file._path for fragment in fragments for file in fragment.files]
    return with_parents([os.path.join(top, "data", name) for name in names], top)


def count_staged_bytes(operation: LanceOperation.BaseOperation) -> int:
    """The size of the new data and index files of an operation."""
    data = sum(
        file.file_size_bytes or 0
        for fragment in new_fragments(operation)
        for file in fragment.files
    )
    indexes = sum(
        file.size_bytes for index in _new_indexes(operation) for file in index.files or []
    )
    return int(data + indexes)


def new_fragments(operation: LanceOperation.BaseOperation) -> list[FragmentMetadata]:
    """The fragments whose data files the operation has written."""
    match operation:
        case (
            LanceOperation.Append(fragments=fragments)
            | LanceOperation.Overwrite(fragments=fragments)
            | LanceOperation.Update(new_fragments=fragments)
        ):
            return list(fragments)
        case LanceOperation.Rewrite(groups=groups):
            return [fragment for group in groups for fragment in group.new_fragments]
        case _:
            return []


def _new_indexes(operation: LanceOperation.BaseOperation) -> list[Index]:
    return list(operation.new_indices) if isinstance(operation, LanceOperation.CreateIndex) else []


def relative_files(operation: LanceOperation.BaseOperation) -> Iterator[str]:
    """The files, and directories of files, that an operation has written, below its lineage."""
    for fragment in new_fragments(operation):
        for file in fragment.files:
            name = file._path  # `path` makes a class each time, for callers of long ago
            yield f"data/{name}"
            # Large blobs lie in a directory named after the data file.
            yield f"data/{os.path.splitext(name)[0]}"
    if isinstance(operation, LanceOperation.Delete | LanceOperation.Update):
        for fragment in operation.updated_fragments:
            if fragment.deletion_file is not None:
                yield fragment.deletion_file.path(fragment.id)
    for index in _new_indexes(operation):
        yield f"_indices/{index.uuid}"


def _existing(path: str) -> Iterator[str]:
    """The file itself, or all files of the directory; nothing when there is neither."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        for name in os.listdir(path):
            yield from _existing(os.path.join(path, name))
    yield path
