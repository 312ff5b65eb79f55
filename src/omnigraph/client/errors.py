"""Errors of a server that are raised as those of the library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import MergeConflicts, RemoteError
from omnigraph.wire import parse_conflict


@contextmanager
def raise_conflicts(target: str, verb: str) -> Iterator[None]:
    """Raise the conflicts that a server reports as the library does."""
    try:
        yield
    except RemoteError as error:
        conflicts = error.details.get("merge_conflicts")
        if not conflicts:
            raise
        found = [parse_conflict(each) for each in conflicts]
        raise MergeConflicts(found, into=target, verb=verb) from None
