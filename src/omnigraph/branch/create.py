"""Create a branch: one ref in `__manifest`, nothing copied.

Creating and deleting take turns across all branches of a graph. A creation that finds files
without a ref takes them for what a dead one left and removes them; without the turn they could
be those of a creation that is still at work. A branch that starts in the past also takes turns with
cleanup, which would not know of it.
"""

from __future__ import annotations

from contextlib import ExitStack

from omnigraph.errors import BranchNotFound, CommitStateGone, ConflictError
from omnigraph.manifest import MAIN, ManifestState
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.revisions import find_revision, is_plain
from omnigraph.manifest.schemas import load_schema
from omnigraph.storage.queues import Guard
from omnigraph.write.environment import (
    BRANCHES_QUEUE,
    HISTORY_QUEUE,
    WriteEnvironment,
    publish_turn,
)


def branch_turn(environment: WriteEnvironment) -> Guard:
    """Wait for the turn to make or remove branches. It is taken before any table queue."""
    return environment.queues.acquire_many([(BRANCHES_QUEUE, None)])


def history_turn(environment: WriteEnvironment) -> Guard:
    """Wait for the turn to name the past or to remove it, before any table queue."""
    return environment.queues.acquire_many([(HISTORY_QUEUE, None)])


def create_branch(environment: WriteEnvironment, name: str, source: str) -> ManifestState:
    """Make a branch that shows what the revision `source` names.

    Raises:
        BranchExists: There is one of that name.
        NotFoundError: `source` names nothing.
        ConflictError: No branch can start there.
    """
    coordinator = environment.coordinator
    with ExitStack() as held:
        try:
            held.enter_context(branch_turn(environment))
            origin = coordinator.fresh(canonical_branch(source)) if is_plain(source) else None
        except BranchNotFound:
            origin = None
        if origin is not None:
            return coordinator.create_branch(name, origin)
    turns = [(HISTORY_QUEUE, None), (BRANCHES_QUEUE, None)]
    with environment.queues.acquire_many(turns):
        return _create_in_past(environment, name, source)


def _admit_schema(environment: WriteEnvironment, origin: ManifestState) -> None:
    """Let a branch start in an earlier schema than that of main, if that schema is known.

    Raises:
        ConflictError: It is not.
    """
    name, commit = origin.schema_name, origin.head
    if name == environment.coordinator.fresh(MAIN).schema_name:
        return
    if name is None or load_schema(environment.texts, name) is None:
        raise ConflictError(
            f"no branch can start at commit '{commit.commit_id}': it is in an earlier schema whose "
            "text is not kept — it can still be read by the names that are the same today"
        )
    with publish_turn(environment, MAIN):
        environment.coordinator.admit_branch_schemas()


def _create_in_past(environment: WriteEnvironment, name: str, source: str) -> ManifestState:
    coordinator = environment.coordinator
    origin = coordinator.commit_states.find_origin(find_revision(coordinator, source).head)
    commit = origin.head
    _admit_schema(environment, origin)
    made = coordinator.create_branch(name, origin)
    if not coordinator.commit_states.has_tables(made.snapshot()):
        # Removed before the turn was taken, or by a process that shares no locks with this one.
        coordinator.delete_branch(made.branch)
        raise CommitStateGone(commit.commit_id, commit.manifest_version, commit.branch)
    return made
