"""Reduce: what each variable of a pattern can still be bound to, before any row is made.

filter   each variable's own predicates become a set of live positions
narrow   a selective root narrows what it leads to
reduce   leaves to root: children that are counted send weights, others existence, so that
         every partial row made from the root is part of an answer
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from omnigraph.executor.filters import live_positions
from omnigraph.executor.kernels import Side, reach
from omnigraph.executor.run import Run
from omnigraph.executor.steps import step_relation
from omnigraph.executor.weights import Sent, Weights, combined, leaf_weights, message
from omnigraph.index import Live
from omnigraph.index.adjacency import Pairs, Relation
from omnigraph.planner.pattern import Pattern, Step
from omnigraph.planner.plan import Branch, Tree

_SELECTIVE = 8
"""A set is selective when it holds less than one position in this many."""


@dataclass(slots=True)
class Reducer:
    """The live positions, weights and relations of one match.

    `sent` is what travels beside the weights. With `exists` weights are left out.
    """

    run: Run
    pattern: Pattern
    sent: Sent
    exists: bool
    live: dict[str, Live]
    kept_edges: dict[str, Live] = field(default_factory=dict)
    weights: dict[str, Weights] = field(default_factory=dict)
    _relations: dict[int, Relation | Pairs] = field(default_factory=dict)

    def filter(self) -> None:
        """Meet what is given with each variable's own predicates."""
        for variable, type_name in self.pattern.nodes.items():
            view = self.run.nodes(type_name)
            live = live_positions(self.run, view, self.pattern.filters.get(variable, ()))
            given = self.live.get(variable)
            self.live[variable] = live if given is None else given.meet(live)
        for variable, edge in self.pattern.edge_types().items():
            filters = self.pattern.filters.get(variable)
            if filters:
                view = self.run.edges(edge).edges
                self.kept_edges[variable] = live_positions(self.run, view, filters)

    def narrow(self, tree: Tree) -> None:
        """Follow selective variables down the tree."""
        if tree.root is None:
            return
        for branch in tree.branches:
            parent = self.live[branch.parent]
            if parent.count * _SELECTIVE < parent.size and branch.step.is_single_hop:
                above, below = self.sides(branch)
                child = self.live[branch.child]
                self.live[branch.child] = reach(below, above, child, parent)

    def reduce(self, tree: Tree) -> None:
        """Send messages from the leaves to the root."""
        for branch in reversed(tree.branches):
            above, below = self.sides(branch)
            parent, child = branch.parent, branch.child
            if branch.is_bound or self.exists:
                self.live[parent] = reach(above, below, self.live[parent], self.live[child])
                continue
            sent, self.live[parent] = message(
                above, below, self.weights_of(child), self.live[child], self.live[parent]
            )
            self.weights[parent] = combined(self.weights.get(parent), sent)

    def weights_of(self, variable: str) -> Weights:
        """What hangs below a variable, its own carried values included."""
        own = leaf_weights(self.run, self.pattern, variable, self.sent, self.live[variable])
        below = self.weights.get(variable)
        return own if below is None else combined(below, own)

    def sides(self, branch: Branch) -> tuple[Side, Side]:
        """The relation of a branch keyed by its parent, then by its child."""
        relation = self.relation(branch.step)
        is_forward = branch.parent == branch.step.source
        return (
            partial(relation.keyed_by, source=is_forward),
            partial(relation.keyed_by, source=not is_forward),
        )

    def relation(self, step: Step) -> Relation | Pairs:
        """What a step relates. Live sets only shrink, so what was found for them stays right."""
        # By identity: the plan holds its steps, and comparing them costs more than this does.
        found = self._relations.get(id(step))
        if found is None:
            kept = self.kept_edges.get(step.edge_variable) if step.edge_variable else None
            ends = self.live[step.source], self.live[step.target]
            found = step_relation(self.run, step, *ends, kept)
            self._relations[id(step)] = found
        return found
