"""States: what of a graph's past a request names, and whether its caller may read it."""

from __future__ import annotations

import re

from omnigraph.branch.diff import find_snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.graph.graph import get_session
from omnigraph.manifest import MAIN, Snapshot
from omnigraph.manifest.revisions import find_commit
from omnigraph.policy import Action
from omnigraph.server.call import Call


async def permit_state(call: Call, target: str) -> Snapshot:
    """Find a state and check that the caller may read it: as readable as the branch it is of.

    Raises:
        PolicyError: The actor may not read it.
        NotFoundError: It names nothing that is there.
    """
    try:
        found = await call.run_read(_find, call, target)
    except OmnigraphError:
        # A caller who may not read there does not learn what is there.
        call.permit(branch=_name_of(target), action=Action.READ)
        raise
    call.permit(branch=found.branch, action=Action.READ)
    return found


async def find_origin(call: Call, revision: str | None) -> tuple[str, str]:
    """The branch that a policy decides by, and what to start from: a branch, or a commit's id."""
    wanted = MAIN if revision is None else revision
    try:
        return await call.run_read(_find_origin, call, wanted)
    except OmnigraphError:
        call.permit(branch=_name_of(wanted), target_branch=_name_of(wanted))
        raise


def _find_origin(call: Call, revision: str) -> tuple[str, str]:
    session = get_session(call.graph.graph)
    branch = session.find_branch_of(revision)
    if revision.strip() == branch and session.coordinator.has_branch(branch):
        return branch, branch
    # What was permitted is what is used, whatever the name stands for by then.
    return branch, find_commit(session.coordinator, revision).commit_id


def _name_of(target: str) -> str:
    """The branch in a text that names nothing."""
    return re.split("[@~]", target, maxsplit=1)[0] or MAIN


def _find(call: Call, target: str) -> Snapshot:
    session = get_session(call.graph.graph)
    session.read_contract()
    return find_snapshot(session.coordinator, target)
