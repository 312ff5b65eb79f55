"""Power cut: what one leaves of a control table, and how readers and writers get past it.

A commit that no sidecar covers is marked while it runs. A torn version that has neither a mark nor
a sidecar was acknowledged: it is damage, and an error. Object stores have no torn files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from urllib.parse import quote, unquote

from lance import LanceDataset

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.datasets import Opener
from omnigraph.storage.fold_records import quarantine_torn
from omnigraph.storage.forks import Forks
from omnigraph.storage.location import TableLocation
from omnigraph.storage.torn import TornFile, list_torn_refs, list_torn_versions, newest_version
from omnigraph.storage.torn_rows import has_torn_rows

_UNFINISHED = "_unfinished"


@dataclass(frozen=True, slots=True)
class Suspects:
    """Branches that were being written, and ones that were being created, when the power was cut.

    Of the former the rows are checked too.
    """

    written: frozenset[str | None]
    created: frozenset[str] = frozenset()


class PowerCut:
    """Marks, finds and quarantines torn files of one control table."""

    def __init__(self, uri: str, opener: Opener, forks: Forks) -> None:
        self._uri = uri
        self._is_local = "://" not in uri
        self._opener = opener
        self._forks = forks
        self._unfinished: frozenset[str | None] = frozenset()
        self._examined: set[str | None] = set()
        self.hidden_branches: frozenset[str] = frozenset()

    @contextmanager
    def mark_unfinished(self, branch: str | None = None) -> Iterator[None]:
        """Mark a branch during a commit that no sidecar covers: it may not be on the disk yet.

        A mark that a power cut brings back has what it marked looked at, and found to be whole.
        """
        mark = f"{self._uri}/{_UNFINISHED}/{quote(branch or '', safe='')}.mark"
        if self._is_local:
            self._forks.texts.write_text(mark, "")
        yield
        if self._is_local:
            self._forks.texts.delete(mark, is_lasting=False)

    def list_unfinished(self) -> set[str | None]:
        """The branches on which a marked commit was begun and not ended."""
        found = self._forks.texts.list_dir(f"{self._uri}/{_UNFINISHED}")
        names = [unquote(each.rpartition("/")[2].removesuffix(".mark")) for each in found]
        return {name or None for name in names}

    def clear_unfinished(self) -> None:
        """Remove the marks. The caller holds the publish turn of their branches."""
        self._forks.texts.delete_prefix(f"{self._uri}/{_UNFINISHED}")

    def find_torn(self, suspects: Suspects) -> list[TornFile]:
        """Refs and newest versions that a power cut has torn; none of them was acknowledged."""
        refs = list_torn_refs(self._uri, suspects.created)
        # A creation may have died before there was a ref: what it left is no branch.
        there = {None, *self._forks.names(self._uri)} - refs.keys()
        versions = [self._find_versions(each) for each in suspects.written & there]
        return [*refs.values(), *(each for found in versions for each in found)]

    def quarantine(self, suspects: Suspects) -> list[str]:
        """Move torn files to the quarantine of the table; returns where they are now."""
        return quarantine_torn(self.find_torn(suspects), self._forks.durability)

    def ignore_torn(self, suspects: Suspects) -> None:
        """Read as if torn files were not there; for a handle that may not move them."""
        if self._is_local:
            self.hidden_branches = frozenset(list_torn_refs(self._uri, suspects.created))
            self._unfinished = suspects.written

    def refuse_damaged(self, branch: str | None, unfinished: Collection[str | None]) -> None:
        """Refuse a branch whose newest version is torn though no write to it was under way.

        Raises:
            StorageError: It is. The version had been acknowledged.
        """
        if branch in self._examined:
            return  # once is enough: a power cut ends this process as well
        torn = [] if branch in unfinished else list_torn_versions(TableLocation(self._uri, branch))
        if torn:
            raise StorageError(
                f"the file '{torn[-1].path}' is cut off, and the write that made it was "
                "acknowledged: it was damaged later — restore it from a backup; nothing was "
                "changed"
            )
        self._examined.add(branch)

    def open_head(self, location: TableLocation) -> LanceDataset:
        """The latest version that is whole.

        Raises:
            StorageError: A later one had been acknowledged, and is torn.
        """
        self.refuse_damaged(location.branch, self._unfinished)
        head = self._opener.head(location)
        if location.branch in self._unfinished and self.has_torn_rows(location, head):
            return self._opener.at(location, head.version - 1)
        return head

    def has_torn_rows(self, location: TableLocation, head: LanceDataset) -> bool:
        """Whether the version is there but not all of its rows are."""
        if not self._is_local:
            return False
        try:
            before = self._opener.at(location, head.version - 1) if head.version > 1 else None
        except OmnigraphError:
            before = None
        return has_torn_rows(head, before, location)

    def _find_versions(self, branch: str | None) -> list[TornFile]:
        location = TableLocation(self._uri, branch)
        torn = list_torn_versions(location)
        newest = newest_version(location)
        if torn or newest is None:
            return torn
        head = self._opener.at(location, newest.version)
        return [newest] if self.has_torn_rows(location, head) else []
