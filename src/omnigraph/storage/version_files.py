"""Version files: which files one version of a table needs, and which of them are not there.

A fork shares the files of where it came from: such a file says so by the id of its base.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from lance import LanceDataset

from omnigraph.storage.handles import TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.text import TextStore


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One file, or index directory, that a version names. `size` is None when it does not say."""

    uri: str
    kind: str
    size: int | None = None


def files_of(handle: TableHandle) -> list[VersionFile]:
    """Every data file, deletion file and index of the version."""
    with lance_errors("listing the files of a table", handle.location):
        dataset = handle._dataset
        bases = {base.id: base.path for base in dataset.base_paths().values()}
        return [*_fragment_files(dataset, bases, handle), *_index_files(dataset, bases, handle)]


def problem_of(file: VersionFile, texts: TextStore) -> str | None:
    """What is wrong with a file, in words; None when it is there and whole."""
    if "://" in file.uri:
        return None if texts.exists(file.uri) else "is missing"
    try:
        size = os.stat(file.uri).st_size
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"
    if file.size is not None and size != file.size:
        return f"has {size} bytes instead of {file.size}"
    return None


def _fragment_files(
    dataset: LanceDataset, bases: dict[int, str], handle: TableHandle
) -> Iterator[VersionFile]:
    for fragment in dataset.get_fragments():
        for file in fragment.data_files():
            top = _top(file.base_id, bases, handle)
            yield VersionFile(f"{top}/data/{file.path}", "data", file.file_size_bytes)
        deleted = fragment.metadata.deletion_file
        if deleted is not None:
            top = _top(deleted.base_id, bases, handle)
            yield VersionFile(f"{top}/{deleted.path(fragment.fragment_id)}", "deletion")


def _index_files(
    dataset: LanceDataset, bases: dict[int, str], handle: TableHandle
) -> Iterator[VersionFile]:
    for index in dataset.describe_indices():
        for segment in index.segments:
            top = _top(segment.base_id, bases, handle)
            yield VersionFile(f"{top}/_indices/{segment.uuid}", "index")


def _top(base_id: int | None, bases: dict[int, str], handle: TableHandle) -> str:
    return handle.location.physical_uri if base_id is None else bases[base_id]
