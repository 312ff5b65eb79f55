"""Part: what the public calls of `Graph` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from omnigraph.branch.diff import State, Target
    from omnigraph.graph.graph import Graph
    from omnigraph.graph.session import Session


class GraphPart:
    """The calls of `Graph` about one subject; `Graph` is all its parts over one session."""

    _session: Session

    @property
    def _graph(self) -> Graph:
        """This graph with the calls of all its parts."""
        return cast("Graph", self)

    def _find_state(self, target: Target) -> State:
        """A snapshot with the schema it is in."""
        from omnigraph.branch.diff import State, find_snapshot

        session = self._session
        snapshot = find_snapshot(session.coordinator, target)
        catalog, shown = session.view_in_own_schema(snapshot, session.read_contract())
        return State(shown, catalog)
