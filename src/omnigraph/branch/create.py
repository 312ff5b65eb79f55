"""Create a branch: one ref in `__manifest`, nothing copied.

Creating and deleting take turns across all branches of a graph. A creation that finds files
without a ref takes them for what a dead one left and removes them; without the turn they could
be those of a creation that is still at work.
"""

from __future__ import annotations

from omnigraph.manifest import ManifestState
from omnigraph.storage.queues import Guard
from omnigraph.write.environment import BRANCHES_QUEUE, WriteEnvironment


def branch_turn(environment: WriteEnvironment) -> Guard:
    """Wait for the turn to make or remove branches. It is taken before any table queue."""
    return environment.queues.acquire_many([(BRANCHES_QUEUE, None)])


def create_branch(environment: WriteEnvironment, name: str, source: str) -> ManifestState:
    """Make a branch that shows what `source` shows now.

    Raises:
        BranchExists: There is one of that name.
        BranchNotFound: There is no `source`.
    """
    with branch_turn(environment):
        return environment.coordinator.create_branch(name, source)
