"""Torn rows: whether the newest version of a control table has all of its rows on the disk.

Lance writes the rows of an inline commit and the version that names them in one call, and syncs
neither; after a power cut the version can be whole and its rows lost. That can only be a version
whose writer had not finished, and only such versions are checked. Doubt counts as loss: the write
was not acknowledged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from lance import LanceDataset

from omnigraph.errors import OmnigraphError
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.location import TableLocation
from omnigraph.storage.torn import find_holes

_ENDS = {".lance": b"LANC", ".arrow": b"ARROW1"}


def has_torn_rows(
    dataset: LanceDataset, before: LanceDataset | None, location: TableLocation
) -> bool:
    """Whether a file that is new since `before` is not whole, or the rows cannot be read."""
    old = set() if before is None else set(_files(before))
    new = set(_files(dataset)) - old
    if any(_is_torn(os.path.join(location.physical_uri, path), size) for path, size in new):
        return True
    if all(path.endswith(tuple(_ENDS)) for path, _ in new):
        return False
    # A bitmap of deleted rows does not show where it ends.
    try:
        with lance_errors("reading rows after a power cut", location):
            dataset.to_table()
    except OmnigraphError:
        return True
    return False


def _files(dataset: LanceDataset) -> Iterator[tuple[str, int | None]]:
    """Path below the dataset, and size where it is known, of the files of its own."""
    for fragment in dataset.get_fragments():
        for file in fragment.data_files():
            if file.base_id is None:
                yield f"data/{file.path}", file.file_size_bytes
        deleted = fragment.metadata.deletion_file
        if deleted is not None and deleted.base_id is None:
            yield deleted.path(fragment.fragment_id), None


def _is_torn(path: str, size: int | None) -> bool:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return True
    end = _ENDS.get(os.path.splitext(path)[1], b"")
    is_whole = bool(data) and data.endswith(end) and size in (None, len(data))
    return not is_whole or bool(find_holes(data))
