"""Hops: the pairs of nodes that a hop relates, as arrays of positions seen from its source."""

from __future__ import annotations

import numpy as np

from omnigraph.executor.kernels import walk
from omnigraph.executor.run import Run
from omnigraph.index import EdgeIndex, Selection, Walk
from omnigraph.index.adjacency import Pairs, Relation
from omnigraph.ir.query import Direction
from omnigraph.planner.pattern import Hop


def hop_relation(
    run: Run, hop: Hop, sources: Selection, targets: Selection, kept_edges: Selection | None
) -> Relation | Pairs:
    """The pairs that `hop` relates: all of them for one hop, those between the ends for more.

    Of a few ends on a large table only their own pairs, looked up.
    """
    if kept_edges is not None and kept_edges.is_all:
        kept_edges = None
    index = run.edges(hop.edge)
    relation: Relation | Pairs | None = None
    if hop.edge_variable is None:
        relation = index.peek_distinct(both=hop.direction is Direction.BOTH)
    if relation is None:
        relation = _look_up(index, hop, sources, targets, kept_edges)
    if relation is None:
        relation = _whole_relation(index, hop, kept_edges)
    if hop.direction is Direction.IN:
        relation = relation.reverse()
    if hop.is_single:
        return relation
    return _walk_relation(run, hop, relation, sources, targets)


def _look_up(
    index: EdgeIndex, hop: Hop, sources: Selection, targets: Selection, kept_edges: Selection | None
) -> Pairs | None:
    """The pairs at the smaller end, when looking them up costs less than the whole relation."""
    is_source = not _is_backwards(sources, targets)
    walk = Walk(
        # Seen along the stored direction, the source of an inward hop is the edge's target.
        from_source=is_source == (hop.direction is not Direction.IN),
        both=hop.direction is Direction.BOTH,
        is_stored=hop.edge_variable is not None,
        hops=hop.max_hops if index.joins_one_type else 1,
    )
    return index.look_up(sources if is_source else targets, walk, kept_edges)


def _whole_relation(index: EdgeIndex, hop: Hop, kept_edges: Selection | None) -> Relation | Pairs:
    both = hop.direction is Direction.BOTH
    if hop.edge_variable is None:
        return index.distinct(both=both)
    if kept_edges is None:
        return index.per_edge(both=both)
    return index.select_edges(kept_edges, both=both)


def _is_backwards(sources: Selection, targets: Selection) -> bool:
    """Whether a walk starts from its targets, because they are fewer."""
    return targets.count < sources.count


def _walk_relation(
    run: Run, hop: Hop, relation: Relation | Pairs, sources: Selection, targets: Selection
) -> Relation | Pairs:
    edge = run.catalog.edges[hop.edge]
    sizes = relation.sizes
    if edge.source != edge.target:
        # The far end has no such edge of its own, so a second hop leads nowhere.
        nothing = np.empty(0, dtype=np.int64)
        return relation if hop.min_hops == 1 else Pairs(nothing, nothing, None, sizes)
    hops = (hop.min_hops, hop.max_hops)
    loops = relation.forward.loops
    is_backwards = _is_backwards(sources, targets)
    if is_backwards:
        ends = targets.positions()
        rows, nodes = walk(relation.backward, ends, hops, loops, loop_at_start=True)
        pairs = nodes, ends[rows]
    else:
        starts = sources.positions()
        rows, nodes = walk(relation.forward, starts, hops, loops, loop_at_start=False)
        pairs = starts[rows], nodes
    run.note(
        f"walked {hop.edge} from {'its targets' if is_backwards else 'its sources'}", len(rows)
    )
    return Pairs(*pairs, None, sizes)
