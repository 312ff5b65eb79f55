"""States: what of a graph's past a request names, and whether its caller may read it."""

from __future__ import annotations

from omnigraph.branch.diff import find_snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.graph.graph import get_session
from omnigraph.manifest import Snapshot
from omnigraph.policy import Action
from omnigraph.server.call import Call
from omnigraph.server.request_models import resolve_branch


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
        call.permit(branch=target.partition("@")[0] or resolve_branch(None), action=Action.READ)
        raise
    call.permit(branch=found.branch, action=Action.READ)
    return found


def _find(call: Call, target: str) -> Snapshot:
    session = get_session(call.graph.graph)
    session.read_contract()
    return find_snapshot(session.coordinator, target)
