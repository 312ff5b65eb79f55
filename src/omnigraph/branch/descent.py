"""Descent: which version of a table two others both came from.

A table's versions form a tree: main, and forks that each go on counting from the version they
left. Rows, row ids and row versions are the same on both sides up to where the lines part, so a
comparison needs to look only at what happened since.
"""

from __future__ import annotations

from dataclasses import field

from omnigraph.dataclass import dataclass
from omnigraph.errors import NotFoundError, OmnigraphError
from omnigraph.manifest import TableEntry
from omnigraph.storage.handles import BranchInfo, TableHandle
from omnigraph.storage.location import TableLocation
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin


def open_entry(tables: TableStorage, entry: TableEntry) -> TableHandle:
    """Open a table where a snapshot, perhaps an old one, shows it.

    Raises:
        NotFoundError: That version is not there, or is another branch's of the same name.
    """
    handle = open_pin(tables, entry)
    found = handle.transaction_uuid
    if entry.transaction_uuid is not None and found is not None and found != entry.transaction_uuid:
        raise NotFoundError(
            f"version {entry.version} of '{entry.table_key}' on branch '{entry.table_branch}' went "
            "with a branch of that name that was deleted — read a newer snapshot"
        )
    return handle


@dataclass(slots=True)
class Descent:
    """The lines of descent of tables, each looked up once: make a new one for every operation."""

    tables: TableStorage
    reads_all: bool = False
    """Whether the caller reads all that differs, and not the next page of it."""
    _forks: dict[tuple[str, str], BranchInfo | None] = field(default_factory=dict)

    def common_ancestor(self, first: TableHandle, second: TableHandle) -> TableHandle | None:
        """The newest version both came from; None when it cannot be proved or is not there."""
        if first.location.uri != second.location.uri:
            return None
        try:
            found = self._where_lines_part(first, second)
        except OmnigraphError:
            # Cleaned up, or a fork that is being made anew: comparing all rows is always right.
            return None
        return found if _same_columns(self.tables, found, first, second) else None

    def _where_lines_part(self, first: TableHandle, second: TableHandle) -> TableHandle:
        line = dict(self._line(first, second))
        branch, version = next(each for each in self._line(second, first) if each[0] in line)
        return self.tables.open_at(
            TableLocation(first.location.uri, branch),
            min(version, line[branch]),
            # Found through this very handle, so not another branch's of the same name.
            incarnation=f"before {first.identity}",
        )

    def _line(self, handle: TableHandle, other: TableHandle) -> list[tuple[str | None, int]]:
        """Every lineage the version lies on, with the last version of it that it came through."""
        branch, version = handle.location.branch, handle.version
        line = [(branch, version)]
        if branch == other.location.branch:
            return line
        while branch is not None:
            fork = self._fork(handle.location.uri, branch)
            if fork is None:
                raise NotFoundError(f"'{handle.location}' has no fork '{branch}' any more")
            branch, version = fork.parent_branch, min(version, fork.parent_version)
            line.append((branch, version))
        return line

    def _fork(self, uri: str, branch: str) -> BranchInfo | None:
        if (uri, branch) not in self._forks:
            self._forks[uri, branch] = self.tables.forks.find(uri, branch)
        return self._forks[uri, branch]


def _same_columns(tables: TableStorage, *handles: TableHandle) -> bool:
    """Row versions say nothing about columns that were added or dropped."""
    return len({tables.ancestry.field_ids(handle) for handle in handles}) == 1
