"""Purge: make every earlier version of a table unreachable, on request."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress

from omnigraph.errors import ForkInUse, OmnigraphError
from omnigraph.index.derived import remove_unneeded_files
from omnigraph.manifest import TableEntry
from omnigraph.storage.garbage import Garbage
from omnigraph.storage.handles import BranchInfo
from omnigraph.storage.location import TableLocation
from omnigraph.storage.tables import TableStorage

log = logging.getLogger("omnigraph.upkeep")


def purge_history(tables: TableStorage, paths: Iterable[str], shown: Iterable[TableEntry]) -> None:
    """Remove all versions but the latest of these tables. No other branch needs them.

    The latest version of a table stays; of one that is not among `shown`, it is made an empty one.
    A failure is logged: the graph is valid without this, and `cleanup` tries again.
    """
    garbage = Garbage(tables.storage_options)
    lineages = {entry.table_path: entry.table_branch for entry in shown}
    for path in paths:
        location = tables.root.table(path)
        if lineages.get(path) is not None:
            # Its rows lie on a fork, which would go with the others.
            log.warning("earlier versions of '%s' stay: '%s' shows it", path, lineages[path])
            continue
        try:
            _remove_forks(tables, location.uri)
            if path not in lineages:
                empty_table(tables, location)
            versions = garbage.versions(location)
            garbage.remove(location, versions[:-1])
            tables.forget()
        except OmnigraphError as error:
            log.warning("earlier versions of '%s' stay: %s", path, error)
    remove_unneeded_files(tables.root)


def empty_table(tables: TableStorage, location: TableLocation) -> None:
    """Make the latest version of a table that no branch shows an empty one."""
    handle = tables.open_at(location, tables.head_version(location), incarnation="purge")
    if handle.row_count:
        tables.commit_staged(tables.rows.stage_overwrite(handle, handle.schema.empty_table()))


def _remove_forks(tables: TableStorage, uri: str) -> None:
    """Forks of deleted branches would keep the versions they came from."""
    for fork in children_first(tables.forks.list(uri)):
        with suppress(ForkInUse):
            tables.forks.delete(uri, fork)


def children_first(forks: Mapping[str, BranchInfo]) -> list[str]:
    """Every fork after those that came from it, which is the order they can be deleted in."""

    def depth(name: str) -> int:
        parent = forks[name].parent_branch
        return 0 if parent is None or parent not in forks else 1 + depth(parent)

    return sorted(forks, key=lambda name: (-depth(name), name))
