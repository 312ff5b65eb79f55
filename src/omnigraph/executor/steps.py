"""Steps: what a traversal relates, as arrays of positions seen from its source."""

from __future__ import annotations

import numpy as np

from omnigraph.executor.kernels import walk
from omnigraph.executor.run import Run
from omnigraph.index import EdgeIndex, Live, Walk
from omnigraph.index.adjacency import Pairs, Relation
from omnigraph.ir.query import Direction
from omnigraph.planner.pattern import Step


def step_relation(
    run: Run, step: Step, sources: Live, targets: Live, kept_edges: Live | None
) -> Relation | Pairs:
    """The pairs that `step` relates: all of them for one hop, those between the ends for more.

    Of a few ends on a large table only their own pairs, looked up.
    """
    if kept_edges is not None and kept_edges.is_all:
        kept_edges = None
    index = run.edges(step.edge)
    relation: Relation | Pairs | None = None
    if step.edge_variable is None:
        relation = index.kept_distinct(both=step.direction is Direction.BOTH)
    if relation is None:
        relation = _looked_up(index, step, sources, targets, kept_edges)
    if relation is None:
        relation = _whole(index, step, kept_edges)
    if step.direction is Direction.IN:
        relation = relation.reversed()
    if step.is_single_hop:
        return relation
    return _hop_relation(run, step, relation, sources, targets)


def _looked_up(
    index: EdgeIndex, step: Step, sources: Live, targets: Live, kept_edges: Live | None
) -> Pairs | None:
    """The pairs at the smaller end, when looking them up costs less than the whole relation."""
    is_source = not _is_backwards(sources, targets)
    walk = Walk(
        # Seen along the stored direction, the source of an inward step is the edge's target.
        from_source=is_source == (step.direction is not Direction.IN),
        both=step.direction is Direction.BOTH,
        is_stored=step.edge_variable is not None,
        hops=step.max_hops if index.joins_one_type else 1,
    )
    return index.looked_up(sources if is_source else targets, walk, kept_edges)


def _whole(index: EdgeIndex, step: Step, kept_edges: Live | None) -> Relation | Pairs:
    both = step.direction is Direction.BOTH
    if step.edge_variable is None:
        return index.distinct(both=both)
    if kept_edges is None:
        return index.stored(both=both)
    return index.kept(kept_edges, both=both)


def _is_backwards(sources: Live, targets: Live) -> bool:
    """Whether a walk starts from its targets, because they are fewer."""
    return targets.count < sources.count


def _hop_relation(
    run: Run, step: Step, relation: Relation | Pairs, sources: Live, targets: Live
) -> Relation | Pairs:
    edge = run.catalog.edges[step.edge]
    sizes = relation.sizes
    if edge.source != edge.target:
        # The far end has no such edge of its own, so a second hop leads nowhere.
        nothing = np.empty(0, dtype=np.int64)
        return relation if step.min_hops == 1 else Pairs(nothing, nothing, None, sizes)
    hops = (step.min_hops, step.max_hops)
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
        f"walked {step.edge} from {'its targets' if is_backwards else 'its sources'}", len(rows)
    )
    return Pairs(*pairs, None, sizes)
