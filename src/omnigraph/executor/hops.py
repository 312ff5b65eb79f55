"""Hops: the pairs of nodes that a hop relates, as arrays of positions seen from its source."""

from __future__ import annotations

from omnigraph.executor.run import Run
from omnigraph.executor.walks import walk_pairs
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
    if hop.conditions:
        kept_edges = run.hop_edges(hop)
    if kept_edges is not None and kept_edges.is_all:
        kept_edges = None
    index = run.edges(hop.edge)
    relation: Relation | Pairs | None = None
    if not _is_stored(hop) and kept_edges is None:
        relation = index.peek_distinct(both=hop.direction is Direction.BOTH)
    if relation is None:
        relation = _look_up(index, hop, sources, targets, kept_edges)
    if relation is None:
        relation = _whole_relation(index, hop, kept_edges)
    if hop.direction is Direction.IN:
        relation = relation.reverse()
    if hop.is_single:
        return relation
    return walk_pairs(run, hop, relation, (sources, targets), kept_edges)


def _is_stored(hop: Hop) -> bool:
    """Whether parallel edges are apart: a path is searched along pairs of nodes."""
    return hop.edge_variable is not None and hop.is_single


def _look_up(
    index: EdgeIndex, hop: Hop, sources: Selection, targets: Selection, kept_edges: Selection | None
) -> Pairs | None:
    """The pairs at the smaller end, when looking them up costs less than the whole relation."""
    if hop.max_hops is None or (kept_edges is not None and not _is_stored(hop)):
        return None
    is_source = sources.count <= targets.count
    walk = Walk(
        # Seen along the stored direction, the source of an inward hop is the edge's target.
        from_source=is_source == (hop.direction is not Direction.IN),
        both=hop.direction is Direction.BOTH,
        is_stored=_is_stored(hop),
        hops=hop.max_hops if index.joins_one_type else 1,
    )
    return index.look_up(sources if is_source else targets, walk, kept_edges)


def _whole_relation(index: EdgeIndex, hop: Hop, kept_edges: Selection | None) -> Relation | Pairs:
    both = hop.direction is Direction.BOTH
    if kept_edges is not None:
        kept = index.select_edges(kept_edges, both=both)
        return kept if _is_stored(hop) else kept.distinct()
    return index.per_edge(both=both) if _is_stored(hop) else index.distinct(both=both)
