"""Orphan forks: branches of a table that no branch of the graph owns.

A fork is made before the publish that claims it, so a writer that dies leaves one behind, and a
branch that is deleted may. The forks of kept commits are none of these. Whether one is an orphan
is decided from the manifest as it stands, by all branches, while the queue of the table is held.
A fork that cannot be classified stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from omnigraph.errors import ForkInUse, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import ManifestState
from omnigraph.manifest.branch_names import branch_of_fork
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.purge import children_first


def reclaim_forks(
    environment: WriteEnvironment,
    states: Mapping[str, ManifestState],
    kept: Collection[tuple[str, str]],
    *,
    is_dry_run: bool,
) -> tuple[list[str], dict[str, str]]:
    """Remove orphan forks: `table:fork` of each, and table key → why some of it stays.

    `kept` are forks, by path and name, of commits whose branch is gone.
    """
    removed: list[str] = []
    errors: dict[str, str] = {}
    paths = {key: e.table_path for state in states.values() for key, e in state.entries.items()}
    for key, path in sorted(paths.items()):
        uri = environment.tables.root.child(path)
        try:
            forks = environment.tables.forks.list(uri)
            removed += [
                f"{key}:{fork}"
                for fork in children_first(forks)
                if (path, fork) not in kept
                and _reclaim(environment, key, uri, fork, is_dry_run=is_dry_run)
            ]
        except OmnigraphError as error:
            errors[key] = error.message
    return removed, errors


def _reclaim(
    environment: WriteEnvironment, key: str, uri: str, fork: str, *, is_dry_run: bool
) -> bool:
    with environment.queues.acquire_many([(key, branch_of_fork(fork))]):
        hit(Failpoint.CLEANUP_RECONCILE_FORK)
        if _is_owned(environment, key, fork):
            return False
        try:
            if not is_dry_run:
                environment.tables.forks.delete(uri, fork)
        except ForkInUse:
            return False  # a fork that is owned is based on it
        return True


def _is_owned(environment: WriteEnvironment, key: str, fork: str) -> bool:
    """Whether any live branch shows the table as this fork has it."""
    coordinator = environment.coordinator
    return any(
        (entry := coordinator.fresh(branch).entries.get(key)) is not None
        and entry.table_branch == fork
        for branch in coordinator.branches()
    )
