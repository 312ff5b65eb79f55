"""Fragments: facts about a fragment of Lance, from the manifest it is in."""

from __future__ import annotations

from lance import LanceFragment
from lance.fragment import FragmentMetadata


def file_names(fragment: LanceFragment | FragmentMetadata) -> tuple[str, ...]:
    """The data files of a fragment: the same files hold the same rows, but for deleted ones."""
    files = fragment.files if isinstance(fragment, FragmentMetadata) else fragment.metadata.files
    return tuple(sorted(file.path for file in files))


def count_deleted(fragment: LanceFragment) -> int:
    """How many of the rows in its data files are deleted."""
    deleted = fragment.metadata.deletion_file
    return 0 if deleted is None else int(deleted.num_deleted_rows or 0)


def count_live(fragment: LanceFragment) -> int:
    """How many rows it has left."""
    return int(fragment.metadata.physical_rows) - count_deleted(fragment)
