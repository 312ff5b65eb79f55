"""Fragments: facts about a fragment of Lance, from the manifest it is in."""

from __future__ import annotations

from lance import LanceFragment


def file_names(fragment: LanceFragment) -> tuple[str, ...]:
    """The data files of a fragment: the same files hold the same rows, but for deleted ones."""
    return tuple(sorted(file.path for file in fragment.metadata.files))


def count_deleted(fragment: LanceFragment) -> int:
    """How many of the rows in its data files are deleted."""
    deleted = fragment.metadata.deletion_file
    return 0 if deleted is None else int(deleted.num_deleted_rows or 0)


def count_live(fragment: LanceFragment) -> int:
    """How many rows it has left."""
    return int(fragment.metadata.physical_rows) - count_deleted(fragment)
