"""Steps: what a traversal relates, as arrays of positions seen from its source."""

from __future__ import annotations

import numpy as np

from omnigraph.executor.kernels import walk
from omnigraph.executor.run import Run
from omnigraph.index import EdgeIndex, Live
from omnigraph.index.adjacency import Pairs, Relation
from omnigraph.ir.query import Direction
from omnigraph.planner.pattern import Step


def step_relation(
    run: Run, step: Step, sources: Live, targets: Live, kept_edges: Live | None
) -> Relation | Pairs:
    """The pairs that `step` relates: all of them for one hop, those between the ends for more."""
    index = run.edges(step.edge)
    both = step.direction is Direction.BOTH
    relation: Relation | Pairs
    if step.edge_variable is None:
        found = _looked_up(index, step, sources, targets)
        if found is not None:
            return found
        relation = index.distinct(both=both)
    elif kept_edges is None or kept_edges.is_all:
        relation = index.stored(both=both)
    else:
        relation = index.kept(kept_edges.mask(), both=both)
    if step.direction is Direction.IN:
        relation = relation.reversed()
    if step.is_single_hop:
        return relation
    return _hop_relation(run, step, relation, sources, targets)


def _looked_up(index: EdgeIndex, step: Step, sources: Live, targets: Live) -> Pairs | None:
    """The pairs at the smaller end, when looking them up costs less than the whole adjacency."""
    if not step.is_single_hop:
        return None
    is_source = sources.count <= targets.count
    near = sources if is_source else targets
    # Seen along the stored direction, the source of an inward step is the edge's target.
    from_source = is_source == (step.direction is not Direction.IN)
    both = step.direction is Direction.BOTH
    if index.is_worth_building(near.count, from_source=from_source, both=both):
        return None
    pairs = index.distinct_from(near.positions(), from_source=from_source)
    return pairs.reversed() if step.direction is Direction.IN else pairs


def _hop_relation(
    run: Run, step: Step, relation: Relation | Pairs, sources: Live, targets: Live
) -> Relation | Pairs:
    edge = run.catalog.edges[step.edge]
    sizes = (relation.forward.size, relation.backward.size)
    if edge.source != edge.target:
        # The far end has no such edge of its own, so a second hop leads nowhere.
        nothing = np.empty(0, dtype=np.int64)
        return relation if step.min_hops == 1 else Pairs(nothing, nothing, None, sizes)
    hops = (step.min_hops, step.max_hops)
    loops = relation.forward.loops
    is_backwards = targets.count < sources.count
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
