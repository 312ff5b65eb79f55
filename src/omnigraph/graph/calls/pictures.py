"""Picture calls: those of a graph that take it, or a part of it, out as nodes and edges."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.catalog import Catalog
from omnigraph.errors import BadRequestError
from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN, Snapshot

if TYPE_CHECKING:
    from omnigraph.graph.arrays import GraphArrays
    from omnigraph.graph.picture import Picture
    from omnigraph.graph.session import Session
    from omnigraph.graph.subgraph import Subgraph


class PictureCalls(GraphPart):
    """What `Graph` shows as nodes and edges; a part of that class."""

    def picture(
        self,
        query: str | Path | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        types: Collection[str] | None = None,
        branch: str = MAIN,
        commit: str | None = None,
        limit: int = 200,
    ) -> Picture:
        """Draw what a read matches, of at most `limit` rows; without a read, `limit` nodes.

        A notebook shows the drawing; `to_html` writes it as a page. `types` chooses the node and
        edge types where no read does.
        """
        from omnigraph.graph.picture import Picture
        from omnigraph.graph.state_view import StateView
        from omnigraph.graph.subgraph import sample_graph

        catalog, snapshot = self._session.read((branch, commit, None, None))
        if query is not None:
            return draw_matches(self._session, catalog, snapshot, query, name, params, limit)
        view = StateView(self._session, catalog, snapshot)
        return Picture(sample_graph(view, types, _check_limit(limit)))

    def to_networkx(self, types: Collection[str] | None = None, *, branch: str = MAIN) -> Any:
        """The graph as a `networkx.MultiDiGraph`: nodes are (type, id), edges have their id as key.

        `types` names node and edge types; with node types alone the edges among them come too.
        Vectors and blobs are left out.
        """
        return self._read_whole(types, branch).to_networkx()

    def to_igraph(self, types: Collection[str] | None = None, *, branch: str = MAIN) -> Any:
        """The graph as a directed `igraph.Graph`; see `to_networkx`."""
        return self._read_whole(types, branch).to_igraph()

    def to_arrays(self, types: Collection[str] | None = None, *, branch: str = MAIN) -> GraphArrays:
        """Columns of every node type and an index of every edge type, for graph learning."""
        from omnigraph.graph.arrays import read_arrays
        from omnigraph.graph.state_view import StateView

        catalog, snapshot = self._session.read((branch, None, None, None))
        return read_arrays(StateView(self._session, catalog, snapshot), types)

    def _read_whole(self, types: Collection[str] | None, branch: str) -> Subgraph:
        from omnigraph.graph.arrays import choose_types
        from omnigraph.graph.state_view import StateView
        from omnigraph.graph.subgraph import read_whole

        catalog, snapshot = self._session.read((branch, None, None, None))
        view = StateView(self._session, catalog, snapshot)
        return read_whole(view, choose_types(catalog, types))


def draw_matches(
    session: Session,
    catalog: Catalog,
    snapshot: Snapshot,
    source: str | Path,
    name: str | None,
    params: Mapping[str, Any] | None,
    limit: int,
) -> Picture:
    """A picture of what a read matches at a snapshot."""
    from omnigraph.graph.picture import Picture
    from omnigraph.graph.query_source import read_source
    from omnigraph.graph.state_view import StateView
    from omnigraph.graph.subgraph import find_matches

    view = StateView(session, catalog, snapshot)
    text, _ = read_source(source)
    return Picture(find_matches(view, text, name, params, _check_limit(limit)))


def _check_limit(limit: int) -> int:
    from omnigraph.graph.subgraph import NODES_MAX

    if not 1 <= limit <= NODES_MAX:
        raise BadRequestError(f"limit is {limit}, expected 1 to {NODES_MAX:,} for a picture")
    return limit
