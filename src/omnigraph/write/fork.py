"""Fork: give a branch its own lineage of a table, the first time it writes there.

Nothing is copied. A fork exists before the publish that claims it, so a writer that dies leaves a
ref that no manifest row names; the next writer sees that nobody owns it and makes a new one.
"""

from __future__ import annotations

from omnigraph.errors import ConflictError, ForkExists, ForkInUse, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import MAIN, Coordinator, TableEntry
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage


def open_pin(tables: TableStorage, entry: TableEntry) -> TableHandle:
    """Open a table exactly where the manifest shows it."""
    location = tables.root.table(entry.table_path, entry.table_branch)
    return tables.open_at(
        location, entry.version, incarnation=entry.transaction_uuid, shown=entry.shown
    )


def fork_for_write(
    tables: TableStorage, coordinator: Coordinator, entry: TableEntry, branch: str
) -> TableHandle:
    """Open a table on the branch's own lineage, forking it first when it has none.

    The caller holds the table's queue.

    Raises:
        ConflictError: The fork belongs to somebody, or that cannot be found out. Retry.
    """
    if entry.table_branch == (None if branch == MAIN else branch):
        return open_pin(tables, entry)
    source = tables.root.table(entry.table_path, entry.table_branch)
    try:
        fork = tables.fork_branch(source, entry.version, branch)
    except ForkExists as collision:
        _reclaim(tables, coordinator, entry, branch, collision)
        fork = _fork_again(tables, entry, branch)
    hit(Failpoint.FORK_AFTER_CREATE)
    return fork


def _reclaim(
    tables: TableStorage,
    coordinator: Coordinator,
    entry: TableEntry,
    branch: str,
    collision: ForkExists,
) -> None:
    """Remove a fork that nobody owns, decided from the manifest as it stands now."""
    key = entry.table_key
    hit(Failpoint.FORK_BEFORE_CLASSIFY)
    try:
        hit(Failpoint.CLASSIFY_FRESH_READ)
        owner = coordinator.fresh(branch).entries.get(key)
    except OmnigraphError as error:
        raise ConflictError(
            f"could not verify who owns the fork of '{key}' on branch '{branch}'; refresh and retry"
        ) from error
    if owner is not None and owner.table_branch == branch:
        raise ConflictError(
            f"another writer forked '{key}' on branch '{branch}' first — refresh and retry"
        ) from collision
    hit(Failpoint.FORK_BEFORE_RECLAIM)
    uri = tables.root.child(entry.table_path)
    try:
        if collision.has_ref:
            tables.delete_branch(uri, branch)
        else:
            tables.delete_fork_tree(uri, branch)
    except ForkInUse as in_use:
        raise ConflictError(f"{in_use.message}; then retry") from in_use


def _fork_again(tables: TableStorage, entry: TableEntry, branch: str) -> TableHandle:
    source = tables.root.table(entry.table_path, entry.table_branch)
    try:
        return tables.fork_branch(source, entry.version, branch)
    except ForkExists as collision:
        raise ConflictError(
            f"another writer forks '{entry.table_key}' on branch '{branch}' — refresh and retry"
        ) from collision
