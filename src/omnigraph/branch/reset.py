"""Reset a branch: it goes back to an earlier commit of its line, and later ones are dropped.

    step                       durable afterwards         a crash here leaves
    forks of moved tables      lineages to write on       forks that no branch shows; cleanup
    publish_reset              the earlier state          the branch as it was, or reset
    forks of dropped commits   nothing more               the same; cleanup removes them

A table that the branch wrote since has versions past the one that it goes back to. They cannot be
taken away from those who read them, so the branch goes on from there on a fork of its own, one
version later with the same rows: as if it had been compacted. No HEAD of a lineage that something
shows moves, so there is no sidecar.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

from omnigraph.branch.commit_dag import CommitDag, find_reached_commits
from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import (
    BadRequestError,
    BranchInUse,
    CommitStateGone,
    ConflictError,
    ForkExists,
    ForkInUse,
    OmnigraphError,
    PreconditionFailed,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.json_form import JsonForm
from omnigraph.manifest import MAIN, GraphCommit, ManifestState, TableEntry, UpdatePin
from omnigraph.manifest.branch_names import (
    branch_of_fork,
    canonical_branch,
    fork_names,
    owns_lineage,
)
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.reset import Reset, publish_reset
from omnigraph.manifest.revisions import find_revision
from omnigraph.manifest.rows import commits_newest_first, find_known_commit
from omnigraph.manifest.state_text import find_forks
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.write.drift import check_heads
from omnigraph.write.environment import (
    BRANCHES_QUEUE,
    HISTORY_QUEUE,
    WriteEnvironment,
    publish_turn,
    queue_keys,
)
from omnigraph.write.pins import version_to_pin

SHOWN_MAX = 100
"""So many of the dropped commits are named."""

log = logging.getLogger("omnigraph.branch")


@dataclass(frozen=True, slots=True)
class ResetResult(JsonForm):
    """What a reset did, or would do: `commit_id` is the head, `commits_dropped` came after it.

    `dropped` are the ids of these, the newest first and no more than a hundred.
    """

    branch: str
    commit_id: str
    head_before: str
    commits_dropped: int
    dropped: tuple[str, ...]
    is_preview: bool = False

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


def reset_branch(
    environment: WriteEnvironment,
    name: str,
    to: str,
    *,
    if_commit: str | None = None,
    is_preview: bool = False,
    is_mirror: bool = False,
) -> ResetResult:
    """Take a branch back to what a revision of its line names.

    One that mirrors a branch of another store goes back even while others come from it: what
    these need of the dropped commits is written down, as when a branch is deleted.

    Raises:
        BadRequestError: It is `main`, or the revision is not on its line.
        BranchInUse: Another branch comes from what would be dropped.
        PreconditionFailed: The head is not `if_commit`.
        ConflictError: No manifest shows just that commit any more.
        CommitStateGone: A cleanup has removed its tables.
    """
    branch = canonical_branch(name)
    if branch == MAIN:
        raise BadRequestError(
            "branch 'main' cannot be reset: others come from it — `revert` takes commits back and "
            "`restore` brings earlier rows, each as a new commit"
        )
    coordinator = environment.coordinator
    if is_preview:
        plan = _plan(coordinator, coordinator.fresh(branch), to, if_commit)
        _find_used(coordinator, plan)
        return replace(plan.result, is_preview=True)
    with environment.queues.acquire_many([(BRANCHES_QUEUE, None), (HISTORY_QUEUE, None)]):
        keys = {*coordinator.fresh(branch).entries, *find_revision(coordinator, to).entries}
        # Writers of the branch have finished, and merges that read it; the next ones see the reset.
        with environment.queues.acquire_many(queue_keys(keys, branch)):
            plan = _plan(coordinator, coordinator.fresh(branch), to, if_commit)
            used = _find_used(coordinator, plan, may_be_used=is_mirror)
            if plan.dropped:
                check_heads(environment, branch, plan.state.entries)
                _carry_out(environment, plan, used)
            return plan.result


@dataclass(frozen=True, slots=True)
class _Plan:
    state: ManifestState
    origin: ManifestState
    dropped: Sequence[GraphCommit]
    result: ResetResult


def _plan(coordinator: Coordinator, state: ManifestState, to: str, if_commit: str | None) -> _Plan:
    branch = state.branch
    if if_commit is not None and state.head.commit_id != if_commit:
        raise PreconditionFailed(expected=if_commit, actual=state.head.commit_id)
    wanted = find_revision(coordinator, to).head.commit_id
    line = commits_newest_first(state.commit_rows)
    dropped = list(takewhile(lambda each: each.commit_id != wanted, line))
    if len(dropped) == state.commit_rows.num_rows:
        raise BadRequestError(
            f"commit '{wanted}' is not on the line of branch '{branch}', which can only go back "
            "along its own commits — nothing was changed; to start over from there, delete the "
            "branch and create it again"
        )
    result = ResetResult(
        branch,
        wanted,
        state.head.commit_id,
        len(dropped),
        tuple(each.commit_id for each in dropped[:SHOWN_MAX]),
    )
    if not dropped:
        return _Plan(state, state, dropped, result)
    commit = find_known_commit(state, wanted)
    assert commit is not None
    return _Plan(state, _find_origin(coordinator, state, commit), dropped, result)


def _find_origin(
    coordinator: Coordinator, state: ManifestState, commit: GraphCommit
) -> ManifestState:
    """The state to go back to, with all of its tables."""
    found: ManifestState | None = None
    # Its own manifest also has the commit that it came from.
    for place in (replace(commit, branch=state.branch), commit):
        with suppress(ConflictError):
            found = coordinator.commit_states.find_origin(place)
            break
    if found is None:
        raise ConflictError(
            f"branch '{state.branch}' cannot be reset to commit '{commit.commit_id}': a cleanup "
            "removed its manifest, or it was published together with later ones — nothing was "
            "changed; go back to the commit before or after it"
        )
    if not coordinator.commit_states.has_tables(found.snapshot()):
        raise CommitStateGone(commit.commit_id, commit.manifest_version, commit.branch)
    return found


def _find_used(
    coordinator: Coordinator, plan: _Plan, *, may_be_used: bool = False
) -> list[GraphCommit]:
    """The dropped commits that other branches come from.

    Raises:
        BranchInUse: There are some, or another branch shows a table of one, and it may not be so.
    """
    state, branch = plan.state, plan.state.branch
    live = [each for each in coordinator.branches() if each != branch]
    others = list(coordinator.fresh_each(live))
    own = [each for each in plan.dropped if each.branch == branch]
    dag = CommitDag([state, *others])
    used = {each.branch: find_reached_commits(dag, [each.head], own) for each in others if own}
    users = [
        each.branch
        for each in others
        if used.get(each.branch) or _shows_dropped(coordinator, each, branch, plan.origin)
    ]
    if users and not may_be_used:
        raise BranchInUse(branch, users)
    return list({each.commit_id: each for found in used.values() for each in found}.values())


def _shows_dropped(
    coordinator: Coordinator, other: ManifestState, branch: str, origin: ManifestState
) -> bool:
    """Whether a branch shows a version of this one's lineages that `origin` does not know."""
    for entry in other.entries.values():
        fork = entry.table_branch
        if fork is None or not owns_lineage(branch, fork):
            continue
        if entry.version not in coordinator.list_shown(origin, entry.table_path, fork):
            return True
    return False


def _carry_out(environment: WriteEnvironment, plan: _Plan, used: Sequence[GraphCommit]) -> None:
    state, origin = plan.state, plan.origin
    found = map(environment.coordinator.commit_states.find, used)
    environment.coordinator.retained.add([each for each in found if each is not None])
    pins = tuple(_fork_moved(environment.tables, state.branch, origin.entries))
    hit(Failpoint.BRANCH_RESET_BEFORE_PUBLISH)
    coordinator = environment.coordinator
    with publish_turn(environment, state.branch), coordinator.mark_unfinished(state.branch):
        made = publish_reset(coordinator, Reset(state, origin, pins))
    hit(Failpoint.BRANCH_RESET_BEFORE_TABLE_CLEANUP)
    _remove_forks(environment, state, made)


def _fork_moved(
    tables: TableStorage, branch: str, entries: Mapping[str, TableEntry]
) -> Iterator[UpdatePin]:
    """Give the branch a lineage to write on where its own has moved past what it goes back to."""
    for key, entry in sorted(entries.items()):
        location = tables.root.table(entry.table_path, entry.table_branch)
        if not owns_lineage(branch, entry.table_branch):
            continue
        if tables.head_version(location) == entry.version:
            continue
        fork = _fork(tables, entry, branch)
        # The same rows as one version more, so that the earlier pin stays as it is.
        again = tables.stage_restore(fork, fork.version)
        yield version_to_pin(key, tables.commit_staged(again))


def _fork(tables: TableStorage, entry: TableEntry, branch: str) -> TableHandle:
    location = tables.root.table(entry.table_path, entry.table_branch)
    for name in fork_names(branch):
        with suppress(ForkExists):
            fork = tables.fork_branch(location, entry.version, name)
            hit(Failpoint.FORK_AFTER_CREATE)
            return fork
    raise AssertionError("unreachable")


def _remove_forks(environment: WriteEnvironment, before: ManifestState, now: ManifestState) -> None:
    """Remove the forks of dropped commits that nothing else needs, as well as it goes."""
    coordinator, tables = environment.coordinator, environment.tables
    live = coordinator.fresh_each(coordinator.branches())
    kept = coordinator.commit_states.list_kept_forks() | find_forks(
        each.snapshot() for each in live
    )
    for key, entry in before.entries.items():
        fork, uri = entry.table_branch, tables.root.child(entry.table_path)
        if fork is None or branch_of_fork(fork) != now.branch or (entry.table_path, fork) in kept:
            continue
        try:
            if not coordinator.list_shown(now, entry.table_path, fork):
                with suppress(ForkInUse):  # another fork stands on it
                    tables.forks.delete(uri, fork)
        except OmnigraphError as error:
            log.warning("the fork of '%s' for '%s' stays: %s", key, now.branch, error)
