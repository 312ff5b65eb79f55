"""Picture: a subgraph to look at, in a notebook or as a page of its own.

Where the renderer can run (see `picture_widget.py`) a person drags, zooms and clicks; everywhere
else the same nodes and edges are a still drawing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Any

from omnigraph.branch.html import stream_page
from omnigraph.branch.picture import draw
from omnigraph.branch.surroundings import ShownEdge
from omnigraph.branch.surroundings import Subgraph as Drawing
from omnigraph.dataclass import dataclass
from omnigraph.display import show_text
from omnigraph.errors import StorageError
from omnigraph.graph.picture_widget import make_live_page, make_widget
from omnigraph.graph.subgraph import Subgraph
from omnigraph.html_text import escape_text

_DRAWN_NODES_MAX = 150


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes and edges, drawn. `subgraph` has them all, with their properties."""

    subgraph: Subgraph
    _widgets: list[Any] = field(default_factory=list, repr=False, compare=False)
    """The widget, from when it is first shown: the same picture shown twice is one model."""

    def __repr__(self) -> str:
        return show_text(self.subgraph)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, Any]:
        """What a notebook shows: the widget, else the still drawing, else the counts as text."""
        still = {"text/plain": repr(self), "text/html": "\n".join(self._draw())}
        return {**self.show_widget(), **still}

    def show_widget(self) -> Mapping[str, Any]:
        """The part of a mime bundle that is a widget; empty where there can be none."""
        if not self._widgets:
            made = make_widget(self.subgraph)
            if made is None:
                return {}
            self._widgets.append(made)
        shown = self._widgets[0]._repr_mimebundle_()
        data = shown[0] if isinstance(shown, tuple) else shown
        return {kind: value for kind, value in (data or {}).items() if kind != "text/plain"}

    def to_html(self, path: str | Path) -> Path:
        """Write one page to drag, zoom and click, which works offline; returns its path.

        Raises:
            StorageError: The file cannot be written.
        """
        target = Path(path)
        title = "Omnigraph"
        page = make_live_page(title, self.subgraph) or "".join(stream_page(title, self._draw()))
        try:
            target.write_text(page, encoding="utf-8")
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
