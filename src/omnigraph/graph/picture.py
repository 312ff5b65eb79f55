"""Picture: a subgraph to look at, in a notebook or as a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from omnigraph.branch.html import make_page
from omnigraph.branch.picture import draw
from omnigraph.branch.surroundings import ShownEdge
from omnigraph.branch.surroundings import Subgraph as Drawing
from omnigraph.dataclass import dataclass
from omnigraph.display import show_text
from omnigraph.errors import StorageError
from omnigraph.graph.subgraph import Subgraph
from omnigraph.html_text import escape_text

_DRAWN_NODES_MAX = 150


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes and edges, drawn. `subgraph` has them all, with their properties."""

    subgraph: Subgraph

    def __repr__(self) -> str:
        return show_text(self.subgraph)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        """What a notebook shows: the drawing, or the counts where only text is shown."""
        return {"text/plain": repr(self), "text/html": "\n".join(self._draw())}

    def to_html(self, path: str | Path) -> Path:
        """Write a page that works offline, asks for nothing and runs nothing; returns its path.

        Raises:
            StorageError: The file cannot be written.
        """
        target = Path(path)
        try:
            target.write_text(make_page("Omnigraph", self._draw()), encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write '{target}': {error.strerror}") from error
        return target

    def to_networkx(self) -> Any:
        """A `networkx.MultiDiGraph` of what is drawn."""
        return self.subgraph.to_networkx()

    def to_igraph(self) -> Any:
        """An `igraph.Graph` of what is drawn."""
        return self.subgraph.to_igraph()

    def _draw(self) -> list[str]:
        whole = self.subgraph
        if not whole.nodes:
            return ["<p>No nodes.</p>"]
        nodes = dict.fromkeys(islice(whole.nodes, _DRAWN_NODES_MAX))
        edges = [
            ShownEdge(each.type, each.source, each.target)
            for each in whole.edges
            if each.source in nodes and each.target in nodes
        ]
        left_out = len(whole.nodes) - len(nodes)
        counts = f"{len(whole.nodes):,} nodes, {len(whole.edges):,} edges"
        notes = [f"{left_out:,} nodes are not drawn"] if left_out else []
        notes += ["there are more in the graph"] if whole.is_cut else []
        caption = escape_text("; ".join([counts, *notes]))
        return [draw(Drawing(nodes, edges)), f"<p>{caption}</p>"]
