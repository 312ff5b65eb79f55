"""Delete a branch: first its ref, then, as well as it goes, the table forks that only it held.

The ref in `__manifest` is the branch. Once it is gone the branch does not exist, whatever happens
to the rest; forks that could not be removed are unclaimed and are reclaimed later. The states of
commits that another branch comes from are written down before, and their forks stay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack, suppress

from omnigraph.branch.commit_dag import (
    CommitDag,
    compare_histories,
    find_reached_commits,
    own_commits,
)
from omnigraph.branch.create import branch_turn
from omnigraph.errors import (
    BadRequestError,
    CommitStateGone,
    ConflictError,
    ForkInUse,
    OmnigraphError,
    StorageFull,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import (
    MAIN,
    Coordinator,
    GraphCommit,
    ManifestState,
    Publish,
    Snapshot,
    TableEntry,
    publish,
)
from omnigraph.manifest.branch_names import branch_of_fork, owns_lineage
from omnigraph.manifest.history import list_branches_after, reconcile_changed
from omnigraph.manifest.rows import find_known_commit, row_to_commit
from omnigraph.storage.control import ControlTable
from omnigraph.write.environment import WriteEnvironment, publish_turn, queue_keys

log = logging.getLogger("omnigraph.branch")


def delete_branch(environment: WriteEnvironment, branch: str, history: ControlTable) -> None:
    """Remove a branch. `history` tells which others come from commits of it.

    Raises:
        BranchNotFound: There is none of that name.
        ConflictError: Another branch came from it, or still shows a table of it.
    """
    if branch == MAIN:
        raise BadRequestError("cannot delete branch 'main'")
    with ExitStack() as held:
        held.enter_context(branch_turn(environment))
        state = environment.coordinator.fresh(branch)
        # Writers of the branch have finished before the ref goes, and no writer can write on a new
        # branch of the same name before the old one's forks are gone.
        keys = queue_keys(state.entries, branch)
        held.enter_context(environment.queues.acquire_many(keys))
        state = environment.coordinator.fresh(branch)
        _delete_ref(environment, state, history)
        hit(Failpoint.BRANCH_DELETE_BEFORE_TABLE_CLEANUP)
        _remove_forks(environment, state.entries.values(), branch)


def _delete_ref(environment: WriteEnvironment, state: ManifestState, history: ControlTable) -> None:
    coordinator, branch = environment.coordinator, state.branch
    live = [each for each in coordinator.branches() if each != branch]
    near = _list_near(environment, state, history, live)
    others = [coordinator.fresh(each) for each in near]
    for other in others:
        _refuse_if_used(other.snapshot(), branch)
    dag = CommitDag([state, *others])
    for other in others:
        _bring_commits(environment, dag, state, other)
    _keep_states(coordinator, dag, state, others)
    try:
        coordinator.delete_branch(branch)
    except ForkInUse as in_use:
        for each in live:
            _refuse_if_used(coordinator.fresh(each).snapshot(), branch)
        raise ConflictError(
            f"branch '{branch}' has branches that came from it — delete those first"
        ) from in_use


def _list_near(
    environment: WriteEnvironment, state: ManifestState, history: ControlTable, live: list[str]
) -> list[str]:
    """The branches that can come from a commit that only this branch may know; always `main`.

    A branch without commits of its own is as near as the one that it came from, which lives as long
    as it does. All branches are near when the history table may not have all of
    them.
    """
    coordinator = environment.coordinator
    if not environment.tables.root.is_local:
        return live
    try:
        unread = reconcile_changed(coordinator, history, environment.texts, environment.queues)
    except StorageFull:
        return live  # deleting a branch is how one gets room
    if unread:
        return live
    own = {each.commit_id for each in own_commits(state)}
    known = map(row_to_commit, state.ancestor_rows.to_pylist())
    own |= {each.commit_id for each in known if each.branch not in live}
    after = list_branches_after(history, own)
    return [each for each in live if each == MAIN or each in after]


def _bring_commits(
    environment: WriteEnvironment, dag: CommitDag, state: ManifestState, other: ManifestState
) -> None:
    """Give another branch the commits that it merged from this one and does not have.

    Merges bring them along; those of an older Omnigraph did not.
    """
    pending = list(compare_histories(dag, [other.head], [state.head]).bases)
    missing: dict[str, GraphCommit] = {}
    while pending:
        commit = pending.pop()
        if commit.commit_id not in missing and find_known_commit(other, commit.commit_id) is None:
            missing[commit.commit_id] = commit
            pending += dag.parents(commit)
    if missing:
        coordinator = environment.coordinator
        with publish_turn(environment, other.branch), coordinator.mark_unfinished(other.branch):
            publish(
                coordinator,
                Publish(other.branch, changes=(), ancestors=tuple(missing.values())),
            )


def _keep_states(
    coordinator: Coordinator, dag: CommitDag, state: ManifestState, others: list[ManifestState]
) -> None:
    """Write down the states of this branch's commits that another branch comes from."""
    own = own_commits(state)
    reached = find_reached_commits(dag, [other.head for other in others], own)
    states = []
    for commit in reached:
        with suppress(CommitStateGone):  # a cleanup has removed it
            states.append(coordinator.commit_states.get(commit))
    coordinator.retained.add(states)


def _refuse_if_used(snapshot: Snapshot, branch: str) -> None:
    for key, entry in snapshot.entries.items():
        if owns_lineage(branch, entry.table_branch):
            raise ConflictError(
                f"branch '{snapshot.branch}' still shows '{key}' as branch '{branch}' left it — "
                f"delete '{snapshot.branch}' first"
            )


def _remove_forks(
    environment: WriteEnvironment, entries: Iterable[TableEntry], branch: str
) -> None:
    """Remove every fork of the branch that nothing needs, those that no pin claims included."""
    kept = environment.coordinator.commit_states.list_kept_forks()
    for entry in entries:
        uri = environment.tables.root.child(entry.table_path)
        try:
            for fork in sorted(environment.tables.forks.names(uri)):
                if branch_of_fork(fork) == branch and (entry.table_path, fork) not in kept:
                    # Another fork may stand on it; cleanup removes it after that one.
                    with suppress(ForkInUse):
                        environment.tables.forks.delete(uri, fork)
        except OmnigraphError as error:
            log.warning("the fork of '%s' for '%s' stays: %s", entry.table_key, branch, error)
