"""Descent: which version of a table two others both came from.

A table's versions form a tree: main, and forks that each go on counting from the version they
left. Rows, row ids and row versions are the same on both sides up to where the lines part, so a
comparison needs to look only at what happened since.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.errors import NotFoundError, OmnigraphError
from omnigraph.manifest import TableEntry
from omnigraph.storage.handles import BranchInfo, TableHandle
from omnigraph.storage.tables import TableStorage


def open_entry(tables: TableStorage, entry: TableEntry) -> TableHandle:
    """Open a table where a snapshot, perhaps an old one, shows it.

    Raises:
        NotFoundError: That version is not there, or is another branch's of the same name.
    """
    location = tables.root.table(entry.table_path, entry.table_branch)
    handle = tables.open_at(location, entry.version, incarnation=entry.transaction_uuid)
    found = tables.identity(handle)[-1]
    if entry.transaction_uuid is not None and found is not None and found != entry.transaction_uuid:
        raise NotFoundError(
            f"version {entry.version} of '{entry.table_key}' on branch '{entry.table_branch}' went "
            "with a branch of that name that was deleted — read a newer snapshot"
        )
    return handle


def common_ancestor(
    tables: TableStorage, first: TableHandle, second: TableHandle
) -> TableHandle | None:
    """The newest version both came from; None when it cannot be proved or is not there."""
    if first.location.uri != second.location.uri:
        return None
    try:
        forks = (
            {}
            if first.location.branch == second.location.branch
            else tables.list_branches(first.location.uri)
        )
        line = dict(_line(forks, first))
        for branch, version in _line(forks, second):
            if branch in line:
                location = type(first.location)(first.location.uri, branch)
                ancestor = tables.open_at(location, min(version, line[branch]))
                return ancestor if _same_columns(tables, ancestor, first, second) else None
    except OmnigraphError:
        # Cleaned up, or a fork that is being made anew: comparing all rows is always right.
        return None
    return None


def _line(
    forks: Mapping[str, BranchInfo], handle: TableHandle
) -> list[tuple[str | None, int]]:
    """Every lineage the version lies on, with the last version of it that it came through."""
    branch, version = handle.location.branch, handle.version
    line = [(branch, version)]
    while branch is not None and branch in forks:
        fork = forks[branch]
        branch, version = fork.parent_branch, min(version, fork.parent_version)
        line.append((branch, version))
    return line


def _same_columns(tables: TableStorage, *handles: TableHandle) -> bool:
    """Row versions say nothing about columns that were added or dropped."""
    return len({tables.field_ids(handle) for handle in handles}) == 1
