"""Fragments: facts about a fragment of Lance, from the manifest it is in."""

from __future__ import annotations

import json
import os
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceFragment
from lance.fragment import FragmentMetadata

from omnigraph.lru import Lru
from omnigraph.storage.handles import Fragment
from omnigraph.storage.lance_manifest import fragment_id_in, fragment_messages
from omnigraph.storage.location import TableLocation
from omnigraph.storage.row_ids import RowIds, encode_row_ids

FRAGMENTS_MAX = 4_096
_KEY_BYTES_MAX = 512
_DIGEST_BYTES = 16


def file_names(fragment: LanceFragment | FragmentMetadata) -> tuple[str, ...]:
    """The data files of a fragment: the same files hold the same rows, but for deleted ones."""
    files = fragment.files if isinstance(fragment, FragmentMetadata) else fragment.metadata.files
    # `path` makes a class of its own each time, for callers of long ago.
    return tuple(sorted(str(file._path) for file in files))


def count_deleted(fragment: LanceFragment) -> int:
    """How many of the rows in its data files are deleted."""
    deleted = fragment.metadata.deletion_file
    return 0 if deleted is None else int(deleted.num_deleted_rows or 0)


def count_live(fragment: LanceFragment) -> int:
    """How many rows it has left."""
    return int(fragment.metadata.physical_rows) - count_deleted(fragment)


def to_fragment(metadata: FragmentMetadata) -> Fragment:
    """The facts of a fragment."""
    deletions = metadata.deletion_file
    return Fragment(
        metadata.id,
        file_names(metadata),
        metadata.num_rows,
        metadata.physical_rows,
        None if deletions is None else deletions.path(metadata.id),
    )


def with_row_ids(fragment: FragmentMetadata, row_ids: RowIds) -> FragmentMetadata:
    """A new fragment whose first rows have these row ids, which are in order.

    Its other rows get row ids with the commit.
    """
    recorded = {"row_id_meta": {"Inline": list(encode_row_ids(row_ids))}}
    return FragmentMetadata.from_json(json.dumps(fragment.to_json() | recorded))


def list_field_ids(dataset: LanceDataset) -> list[int]:
    """The ids of all fields of the columns, also of those that lie in others."""
    found, left = [], list(dataset.lance_schema.fields())
    while left:
        field = left.pop()
        found.append(int(field.id()))
        left += field.children()
    return sorted(found)


class FragmentFacts:
    """The facts of fragments by what manifests say of them, so that each is decoded once.

    A version has most fragments in common with the one before. What a manifest says of one whose
    rows were written one by one grows by 20 bytes with each of them, and is another text after each
    compaction: such a text is known by its digest. Thread-safe.
    """

    def __init__(self) -> None:
        self._by_message = Lru[bytes, Fragment](FRAGMENTS_MAX)

    def read(self, dataset: LanceDataset) -> tuple[Fragment, ...]:
        """The fragments of a version in scan order."""
        return tuple(self._read(dataset, each) for each in fragment_messages(dataset))

    def _read(self, dataset: LanceDataset, message: bytes) -> Fragment:
        def decode() -> Fragment:
            fragment = dataset.get_fragment(fragment_id_in(message))
            assert fragment is not None, "a manifest names a fragment that it does not have"
            return to_fragment(fragment.metadata)

        is_short = len(message) <= _KEY_BYTES_MAX
        key = message if is_short else blake2b(message, digest_size=_DIGEST_BYTES).digest()
        return self._by_message.get_or_make(key, decode)


def read_deletion_file(location: TableLocation, file: str) -> np.ndarray | None:
    """The rows that a deletion file names, ascending; None unless it is near and a plain list.

    A fork also uses files of the lineage it came from. No two of them have the same name.
    """
    if not location.is_local or not file.endswith(".arrow"):
        return None
    for place in dict.fromkeys([location.physical_uri, location.uri]):
        path = f"{place}/{file}"
        if os.path.exists(path):
            try:
                rows = pa.ipc.open_file(path).read_all().column(0).to_numpy()
            except (OSError, ValueError, pa.ArrowInvalid):
                return None
            return np.sort(rows.astype(np.int64))
    return None
