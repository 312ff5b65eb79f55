"""Power cut: what one leaves of a control table, and how readers and writers get past it.

A commit that no sidecar covers is marked while it runs. A torn version that has neither a mark nor
a sidecar was acknowledged: it is damage, and an error. Object stores have no torn files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from urllib.parse import quote, unquote

from lance import LanceDataset

from omnigraph.errors import OmnigraphError
from omnigraph.storage.datasets import Opener
from omnigraph.storage.fold_records import quarantine_torn
from omnigraph.storage.forks import Forks
from omnigraph.storage.location import TableLocation
from omnigraph.storage.torn import TornFile, list_torn_refs, list_torn_versions, newest_version
from omnigraph.storage.torn_rows import has_torn_rows

_UNFINISHED = "_unfinished"


class PowerCut:
    """Marks, finds and quarantines torn files of one control table."""

    def __init__(self, uri: str, opener: Opener, forks: Forks) -> None:
        self._uri = uri
        self._is_local = "://" not in uri
        self._opener = opener
        self._forks = forks
        self._suspects: frozenset[str | None] = frozenset()
        self.hidden_branches: frozenset[str] = frozenset()

    @contextmanager
    def mark_unfinished(self, branch: str | None = None) -> Iterator[None]:
        """Mark a branch during a commit that no sidecar covers: it may not be on the disk yet."""
        mark = f"{self._uri}/{_UNFINISHED}/{quote(branch or '', safe='')}.mark"
        if self._is_local:
            self._forks.texts.write_text(mark, "")
        yield
        if self._is_local:
            self._forks.texts.delete(mark)

    def list_unfinished(self) -> set[str | None]:
        """The branches on which a marked commit was begun and not ended."""
        found = self._forks.texts.list_dir(f"{self._uri}/{_UNFINISHED}")
        names = [unquote(each.rpartition("/")[2].removesuffix(".mark")) for each in found]
        return {name or None for name in names}

    def clear_unfinished(self) -> None:
        """Remove the marks. The caller holds the publish turn of their branches."""
        self._forks.texts.delete_prefix(f"{self._uri}/{_UNFINISHED}")

    def find_torn(self, suspects: Collection[str | None]) -> list[TornFile]:
        """Refs and newest versions that a power cut has torn; none of them was acknowledged.

        The writers of `suspects`, branches, had not finished: there the rows are checked too.
        """
        refs = list_torn_refs(self._uri)
        branches = [None, *sorted(self._forks.names(self._uri) - refs.keys())]
        versions = [self._find_versions(each, each in suspects) for each in branches]
        return [*refs.values(), *(each for found in versions for each in found)]

    def find_torn_heads(self) -> dict[str | None, TornFile]:
        """Branch → its oldest torn version, of branches whose newest version is torn."""
        branches = [None, *(self._forks.names(self._uri) - list_torn_refs(self._uri).keys())]
        found = {each: self._find_versions(each, False) for each in branches}
        return {each: torn[-1] for each, torn in found.items() if torn}

    def quarantine(self, suspects: Collection[str | None]) -> list[str]:
        """Move torn files to the quarantine of the table; returns where they are now."""
        return quarantine_torn(self.find_torn(suspects), self._forks.durability)

    def ignore_torn(self, suspects: Collection[str | None]) -> None:
        """Read as if torn files were not there; for a handle that may not move them."""
        if self._is_local:
            self.hidden_branches = frozenset(list_torn_refs(self._uri))
            self._suspects = frozenset(suspects)

    def open_head(self, location: TableLocation) -> LanceDataset:
        """The latest version that is whole."""
        head = self._opener.head(location)
        if location.branch in self._suspects and self.has_torn_rows(location, head):
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

    def _find_versions(self, branch: str | None, is_suspect: bool) -> list[TornFile]:
        location = TableLocation(self._uri, branch)
        torn = list_torn_versions(location)
        newest = newest_version(location)
        if torn or newest is None or not is_suspect:
            return torn
        head = self._opener.at(location, newest.version)
        return [newest] if self.has_torn_rows(location, head) else []
