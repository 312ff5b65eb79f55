"""Steps: what a traversal relates, as arrays of positions seen from its source."""

from __future__ import annotations

import numpy as np

from omnigraph.executor.kernels import walk
from omnigraph.executor.run import Run
from omnigraph.index import Live
from omnigraph.index.adjacency import Csr, Relation, pair_relation
from omnigraph.ir.query import Direction
from omnigraph.planner.pattern import Step


def step_relation(
    run: Run, step: Step, sources: Live, targets: Live, kept_edges: Live | None
) -> Relation:
    """The pairs that `step` relates: all of them for one hop, those between the ends for more."""
    index = run.edges(step.edge)
    both = step.direction is Direction.BOTH
    if step.edge_variable is None:
        relation = index.distinct(both=both)
    elif kept_edges is None or kept_edges.is_all:
        relation = index.stored(both=both)
    else:
        relation = index.stored(both=both, keep=kept_edges.mask())
    if step.direction is Direction.IN:
        relation = relation.reversed()
    if step.is_single_hop:
        return relation
    return _hop_relation(run, step, relation, sources, targets)


def _hop_relation(
    run: Run, step: Step, relation: Relation, sources: Live, targets: Live
) -> Relation:
    edge = run.catalog.edges[step.edge]
    sizes = (relation.forward.size, relation.backward.size)
    if edge.source != edge.target:
        # The far end has no such edge of its own, so a second hop leads nowhere.
        nothing = np.empty(0, dtype=np.int64)
        return relation if step.min_hops == 1 else pair_relation(nothing, nothing, None, sizes)
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
    return pair_relation(*pairs, None, sizes)


def seen_from(relation: Relation, step: Step, parent: str) -> tuple[Csr, Csr]:
    """The relation keyed by the parent's side, then by the other one."""
    if parent == step.source:
        return relation.forward, relation.backward
    return relation.backward, relation.forward
