"""Edge look-up: the edges at a few nodes, found in storage by `src` or `dst`.

It costs what the nodes have, not what the table has, and needs nothing that is derived.
"""

from __future__ import annotations

import os
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.index import thresholds
from omnigraph.index.adjacency import Pairs
from omnigraph.index.arrays import IntArray, sort_distinct
from omnigraph.index.notes import note
from omnigraph.index.selection import Selection
from omnigraph.index.table_view import TableView
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.projection import ROW_ID

MODE_VARIABLE = "OMNIGRAPH_TRAVERSAL_MODE"
_MODES = ("indexed", "csr")


@dataclass(frozen=True, slots=True)
class Walk:
    """How a query walks an edge table from its smaller end.

    `from_source` says that this end is the source of the stored edges; with `both` they lead both
    ways. `is_stored` keeps parallel edges apart.
    """

    from_source: bool
    both: bool
    is_stored: bool = False
    hops: int = 1


_Edges: TypeAlias = "tuple[IntArray, IntArray, IntArray | None]"
"""Positions of near and far ends, and of the edges between them in a stored walk."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeLookup:
    """An edge table and the node tables it joins, to be asked for the edges at a few nodes."""

    edges: TableView
    sources: TableView
    targets: TableView

    def cost(self, frontier: int, walk: Walk) -> float:
        """About how many edges are looked at."""
        cost = 0.0
        for from_source in (True, False) if walk.both else (walk.from_source,):
            near = self.sources if from_source else self.targets
            if self.edges.has_index("src" if from_source else "dst"):
                cost += walk.hops * frontier * self.edges.size / max(near.size, 1)
            else:
                cost += walk.hops * self.edges.size
        return cost

    def find(self, frontier: IntArray, walk: Walk, keep: Selection | None) -> Pairs | None:
        """The pairs within reach of these positions; None when too many turn out to be."""
        seen = frontier
        found: list[_Edges] = []
        for _ in range(walk.hops):
            if len(frontier) > thresholds.FEW_IDS and read_mode() is None:
                return None
            found.append(self._edges_at(frontier, walk, keep))
            reached = sort_distinct(found[-1][1])
            frontier = np.setdiff1d(reached, seen, assume_unique=True)
            seen = np.union1d(seen, reached)
            if len(frontier) == 0:
                break
        return self._pairs(found, walk)

    def _edges_at(self, positions: IntArray, walk: Walk, keep: Selection | None) -> _Edges:
        """The edges at these positions."""
        parts = [
            self._one_way(positions, from_source, walk, keep)
            for from_source in ((True, False) if walk.both else (walk.from_source,))
        ]
        if walk.both and walk.is_stored:
            # A loop has both ends here and is one edge.
            nears, fars, edges = parts[1]
            assert edges is not None
            other = nears != fars
            parts[1] = (nears[other], fars[other], edges[other])
        return _concatenate(parts)

    def _one_way(
        self, positions: IntArray, from_source: bool, walk: Walk, keep: Selection | None
    ) -> _Edges:
        near, far, columns = self.sources, self.targets, ("src", "dst")
        if not from_source:
            near, far, columns = far, near, ("dst", "src")
        ids = near.ids(positions)
        rows = self.edges.scan(columns, IsIn(columns[0], ids), with_row_id=walk.is_stored)
        found = rows.column(columns[0]).combine_chunks()
        nears = positions[pc.index_in(found, value_set=ids).to_numpy()]
        fars = far.positions_of_ids(rows.column(columns[1]).combine_chunks())
        is_kept = fars >= 0
        note(f"looked up {self.edges.table_key} by {columns[0]}", len(fars))
        if not walk.is_stored:
            return nears[is_kept], fars[is_kept], None
        edges = self.edges.positions_of_rows(rows.column(ROW_ID).to_numpy())
        if keep is not None:
            is_kept &= keep.contains(edges)
        return nears[is_kept], fars[is_kept], edges[is_kept]

    def _pairs(self, found: list[_Edges], walk: Walk) -> Pairs:
        nears, fars, edges = _concatenate(found)
        sizes = self.sources.size, self.targets.size
        near_size, far_size = sizes if walk.from_source else sizes[::-1]
        if edges is None:
            keys = sort_distinct(nears * max(far_size, 1) + fars)
            nears, fars = np.divmod(keys, max(far_size, 1))
        pairs = Pairs(nears, fars, edges, (near_size, far_size))
        return pairs if walk.from_source else pairs.reverse()


def _concatenate(parts: list[_Edges]) -> _Edges:
    nears, fars, edges = zip(*parts, strict=True)
    is_stored = edges[0] is not None
    return (
        np.concatenate(nears),
        np.concatenate(fars),
        np.concatenate(edges) if is_stored else None,
    )


def read_mode() -> str | None:
    """What the environment says; None to decide by cost.

    Raises:
        BadRequestError: It says something else.
    """
    mode = os.environ.get(MODE_VARIABLE)
    if mode and mode not in _MODES:
        raise BadRequestError(f"{MODE_VARIABLE} is '{mode}', expected 'indexed' or 'csr'")
    return mode or None
