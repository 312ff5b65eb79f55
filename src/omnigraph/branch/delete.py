"""Delete a branch: first its ref, then, as well as it goes, the table forks that only it held.

The ref in `__manifest` is the branch. Once it is gone the branch does not exist, whatever happens
to the rest; forks that could not be removed are unclaimed and are reclaimed later.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack

from omnigraph.branch.create import branch_turn
from omnigraph.errors import (
    BadRequestError,
    ConflictError,
    ForkInUse,
    OmnigraphError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import MAIN, Snapshot, TableEntry
from omnigraph.write.environment import WriteEnvironment, queue_keys

log = logging.getLogger("omnigraph.branch")


def delete_branch(environment: WriteEnvironment, branch: str) -> None:
    """Remove a branch.

    Raises:
        BranchNotFound: There is none of that name.
        ConflictError: Another branch came from it, or still shows a table of it.
    """
    if branch == MAIN:
        raise BadRequestError("cannot delete branch 'main'")
    with ExitStack() as held:
        held.enter_context(branch_turn(environment))
        snapshot = environment.coordinator.fresh(branch).snapshot()
        # Writers of the branch have finished before the ref goes, and nobody can write on a new
        # branch of the same name before the old one's forks are gone.
        keys = queue_keys(frozenset(snapshot.entries), branch)
        held.enter_context(environment.queues.acquire_many(keys))
        _delete_ref(environment, branch)
        hit(Failpoint.BRANCH_DELETE_BEFORE_TABLE_CLEANUP)
        _remove_forks(environment, snapshot.entries.values(), branch)


def _delete_ref(environment: WriteEnvironment, branch: str) -> None:
    coordinator = environment.coordinator
    for other in coordinator.branches():
        if other != branch:
            _refuse_if_used(coordinator.fresh(other).snapshot(), branch)
    try:
        coordinator.delete_branch(branch)
    except ForkInUse as in_use:
        raise ConflictError(
            f"branch '{branch}' has branches that came from it — delete those first"
        ) from in_use


def _refuse_if_used(snapshot: Snapshot, branch: str) -> None:
    for key, entry in snapshot.entries.items():
        if entry.table_branch == branch:
            raise ConflictError(
                f"branch '{snapshot.branch}' still shows '{key}' as branch '{branch}' left it — "
                f"delete '{snapshot.branch}' first"
            )


def _remove_forks(
    environment: WriteEnvironment, entries: Iterable[TableEntry], branch: str
) -> None:
    """Remove every fork of the branch, those that no pin claims included."""
    for entry in entries:
        uri = environment.tables.root.child(entry.table_path)
        try:
            if environment.tables.find_branch(uri, branch) is not None:
                environment.tables.delete_branch(uri, branch)
        except OmnigraphError as error:
            log.warning("the fork of '%s' for '%s' stays: %s", entry.table_key, branch, error)
