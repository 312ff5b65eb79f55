"""Orphan forks: branches of a table that no branch of the graph owns.

A fork is made before the publish that claims it, so a writer that dies leaves one behind, and a
branch that is deleted may. The forks of kept commits are none of these. A fork that some branch
shows needs no further look. Of the others it is decided from the manifest as it stands, by all
branches, while the queues of these forks are held, so that no writer can claim one meanwhile.
A fork that cannot be classified stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import ManifestState
from omnigraph.manifest.branch_names import branch_of_fork
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.purge import children_first

FORKS_AT_ONCE = 64
"""How many forks are decided on by one look at all branches. Each of them holds a file open."""


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
    for path, key in sorted(_list_tables(states.values()).items(), key=lambda each: each[::-1]):
        uri = environment.tables.root.child(path)
        try:
            owned = set(_list_owned(states.values(), path))
            past = {each.branch for each in states.values() if path in each.hidden_paths}
            forks = children_first(environment.tables.forks.list(uri))
            suspects = [
                each
                for each in forks
                if (path, each) not in kept
                and each not in owned
                and branch_of_fork(each) not in past
            ]
            for start in range(0, len(suspects), FORKS_AT_ONCE):
                some = suspects[start : start + FORKS_AT_ONCE]
                found = _reclaim(environment, key, path, some, is_dry_run=is_dry_run)
                removed += [f"{key}:{fork}" for fork in found]
        except OmnigraphError as error:
            errors[key] = error.message
    return removed, errors


def _reclaim(
    environment: WriteEnvironment, key: str, path: str, forks: Sequence[str], *, is_dry_run: bool
) -> Sequence[str]:
    queues = [(key, branch_of_fork(fork)) for fork in forks]
    with environment.queues.acquire_many(queues):
        hit(Failpoint.CLEANUP_RECONCILE_FORK)
        coordinator = environment.coordinator
        owned = set(_list_owned(coordinator.fresh_each(coordinator.branches()), path))
        orphans = [each for each in forks if each not in owned]
        uri = environment.tables.root.child(path)
        return orphans if is_dry_run else environment.tables.forks.delete_unused(uri, orphans)


def _list_tables(states: Iterable[ManifestState]) -> dict[str, str]:
    """Path → table key of every table that is shown. Branches may call one table differently."""
    tables: dict[str, str] = {}
    for state in states:
        for key, entry in state.entries.items():
            tables.setdefault(entry.table_path, key)
    return tables


def _list_owned(states: Iterable[ManifestState], path: str) -> Iterator[str]:
    """The forks of a table that some branch shows, under whichever key."""
    for state in states:
        for entry in state.entries.values():
            if entry.table_path == path and entry.table_branch is not None:
                yield entry.table_branch
