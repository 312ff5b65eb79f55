"""Fork: give a branch its own lineage of a table, the first time it writes there.

Nothing is copied. A fork exists before the publish that claims it, so a writer that dies leaves a
ref that no manifest row names; the next writer removes it and makes a new one. A fork of an
earlier branch of the same name stays while a merge may need it, or another fork stands on it: then
the new one gets another name.
"""

from __future__ import annotations

from omnigraph.errors import ConflictError, ForkExists, ForkInUse, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import Coordinator, TableEntry
from omnigraph.manifest.branch_names import fork_names, owns_lineage
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.write.environment import WriteEnvironment


def open_pin(tables: TableStorage, entry: TableEntry) -> TableHandle:
    """Open a table exactly where the manifest shows it."""
    if entry.image is not None:
        return entry.image
    location = tables.root.table(entry.table_path, entry.table_branch)
    return tables.open_pinned(location, entry.version, entry.transaction_uuid, entry.shown)


def fork_for_write(environment: WriteEnvironment, entry: TableEntry, branch: str) -> TableHandle:
    """Open a table on the branch's own lineage, forking it first when it has none.

    The caller holds the table's queue.

    Raises:
        ConflictError: Another writer has the fork, or its owner cannot be determined. Retry.
    """
    if owns_lineage(branch, entry.table_branch):
        return open_pin(environment.tables, entry)
    forks = (_fork(environment, entry, branch, name) for name in fork_names(branch))
    fork = next(each for each in forks if each is not None)
    hit(Failpoint.FORK_AFTER_CREATE)
    return fork


def _fork(
    environment: WriteEnvironment, entry: TableEntry, branch: str, name: str
) -> TableHandle | None:
    """Fork a table under this name; None when a fork of that name is still needed."""
    tables = environment.tables
    source = tables.root.table(entry.table_path, entry.table_branch)
    try:
        return tables.fork_branch(source, entry.version, name)
    except ForkExists as collision:
        if not _reclaim(environment, entry, branch, collision):
            return None
    try:
        return tables.fork_branch(source, entry.version, name)
    except ForkExists as collision:
        raise ConflictError(
            f"another writer forks '{entry.table_key}' on branch '{branch}' — refresh and retry"
        ) from collision


def _was_shown(coordinator: Coordinator, path: str, fork: str) -> bool:
    """Whether some branch shows, or ever showed, a table on this fork.

    Its owner may have gone back from it, or have left it for a version that another store sent.
    """
    states = coordinator.fresh_each(coordinator.branches())
    return any(coordinator.list_shown(each, path, fork) for each in states)


def _reclaim(
    environment: WriteEnvironment, entry: TableEntry, branch: str, collision: ForkExists
) -> bool:
    """Remove a fork that nothing needs, decided from the manifest as it stands now; else False."""
    tables, coordinator, key = environment.tables, environment.coordinator, entry.table_key
    hit(Failpoint.FORK_BEFORE_CLASSIFY)
    try:
        hit(Failpoint.CLASSIFY_FRESH_READ)
        state = coordinator.fresh(branch)
        # By its path: the branch may have another name for the table.
        shown = [each for each in state.entries.values() if each.table_path == entry.table_path]
        owner = next(iter(shown), None)
        is_kept = (
            entry.table_path in state.hidden_paths  # its earlier commits show the fork
            or (entry.table_path, collision.branch) in coordinator.commit_states.list_kept_forks()
            or _was_shown(coordinator, entry.table_path, collision.branch)
        )
    except OmnigraphError as error:
        raise ConflictError(
            f"could not verify who owns the fork of '{key}' on branch '{branch}'; refresh and retry"
        ) from error
    if owner is not None and owns_lineage(branch, owner.table_branch):
        raise ConflictError(
            f"another writer forked '{key}' on branch '{branch}' first — refresh and retry"
        ) from collision
    if is_kept:
        return False
    hit(Failpoint.FORK_BEFORE_RECLAIM)
    uri = tables.root.child(entry.table_path)
    try:
        if collision.has_ref:
            tables.forks.delete(uri, collision.branch)
        else:
            tables.forks.delete_tree(uri, collision.branch)
    except ForkInUse:
        return False
    return True
