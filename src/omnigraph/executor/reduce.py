"""Reduce: what each variable of a pattern can still be bound to, before any row is made.

filter   each variable's own predicates become a selection of positions
narrow   a selective root narrows what it leads to
reduce   leaves to root: children that are counted send weights, others existence, so that
         every partial row made from the root is part of an answer
"""

from __future__ import annotations

from dataclasses import field
from functools import partial

from omnigraph.dataclass import dataclass
from omnigraph.executor.filters import select_positions
from omnigraph.executor.hops import hop_relation
from omnigraph.executor.kernels import Side, reach
from omnigraph.executor.run import Run
from omnigraph.executor.weights import Payload, Weights, combine, leaf_weights, message
from omnigraph.index import Selection
from omnigraph.index.adjacency import Pairs, Relation
from omnigraph.index.arrays import IntArray, sort_distinct
from omnigraph.planner.pattern import Hop, Pattern
from omnigraph.planner.trees import Tree

_SELECTIVE = 8
"""A set is selective when it holds less than one position in this many."""


@dataclass(slots=True)
class Reducer:
    """The selections, weights and relations of one match.

    `payload` is what travels beside the weights. With `exists` weights are left out.
    """

    run: Run
    pattern: Pattern
    payload: Payload
    exists: bool
    selections: dict[str, Selection]
    kept_edges: dict[str, Selection] = field(default_factory=dict)
    weights: dict[str, Weights] = field(default_factory=dict)
    _relations: dict[int, Relation | Pairs] = field(default_factory=dict)
    _own_values: dict[str, Weights] = field(default_factory=dict)

    def filter(self) -> None:
        """Narrow each variable by its own predicates."""
        for variable, type_name in self.pattern.nodes.items():
            view = self.run.scanned(type_name)
            selection = select_positions(self.run, view, self.pattern.filters.get(variable, ()))
            given = self.selections.get(variable)
            self.selections[variable] = selection if given is None else given.intersect(selection)
        for variable, edge in self.pattern.edge_types().items():
            filters = self.pattern.filters.get(variable)
            if filters:
                view = self.run.edges(edge).edges
                self.kept_edges[variable] = select_positions(self.run, view, filters)

    def narrow(self, tree: Tree) -> None:
        """Follow selective variables down the tree."""
        if tree.root is None:
            return
        for branch in tree.branches:
            parent = self.selections[branch.parent]
            if parent.count * _SELECTIVE < parent.size and branch.hop.is_single:
                above, below = self.sides(branch.hop, branch.parent)
                child = self.selections[branch.child]
                self.selections[branch.child] = reach(below, above, child, parent)

    def reduce(self, tree: Tree) -> None:
        """Send messages from the leaves to the root."""
        for branch in reversed(tree.branches):
            parent, child = branch.parent, branch.child
            if not branch.is_tail or self.exists:
                self._require_child(branch.hop, parent, child)
                for hop in branch.closing:
                    if hop.is_single:
                        self._require_child(hop, hop.other_end(child), child)
                continue
            above, below = self.sides(branch.hop, parent)
            parents, children = self.selections[parent], self.selections[child]
            weights = self.weights_of(child)
            sent, self.selections[parent] = message(above, below, weights, children, parents)
            self.weights[parent] = combine(self.weights.get(parent), sent)

    def _require_child(self, hop: Hop, parent: str, child: str) -> None:
        """Keep the parents that a hop joins to one of the children."""
        above, below = self.sides(hop, parent)
        parents, children = self.selections[parent], self.selections[child]
        self.selections[parent] = reach(above, below, parents, children)

    def weights_of(self, variable: str) -> Weights:
        """What hangs below a variable, its own values included."""
        selection = self.selections[variable]
        own = leaf_weights(self.run, self.pattern, variable, self.payload, selection)
        below = self.weights.get(variable)
        return own if below is None else combine(below, own)

    def own_values(self, variable: str, positions: IntArray) -> Weights:
        """What a bound variable would send if it were counted; of a path what these would."""
        found = self._own_values.get(variable)
        if self.pattern.is_made(variable):
            view = self.run.view_of(variable, self.pattern)
            here = Selection(view.size, positions=sort_distinct(positions))
            return leaf_weights(self.run, self.pattern, variable, self.payload, here)
        if found is None:
            selection = self.selections.get(variable) or self.kept_edges.get(variable)
            if selection is None:
                selection = Selection(self.run.view_of(variable, self.pattern).size)
            found = self._own_values[variable] = leaf_weights(
                self.run, self.pattern, variable, self.payload, selection
            )
        return found

    def sides(self, hop: Hop, start: str) -> tuple[Side, Side]:
        """The relation of a hop keyed by `start`, then by its other end."""
        relation = self.relation(hop)
        is_forward = start == hop.source
        return (
            partial(relation.side, source=is_forward),
            partial(relation.side, source=not is_forward),
        )

    def relation(self, hop: Hop) -> Relation | Pairs:
        """The pairs of a hop. Selections only shrink, so what was found for them stays right."""
        # By identity: the plan holds its hops, and comparing them costs more than this does.
        found = self._relations.get(id(hop))
        if found is None:
            kept = self.kept_edges.get(hop.edge_variable) if hop.edge_variable else None
            ends = self.selections[hop.source], self.selections[hop.target]
            found = self._relations[id(hop)] = hop_relation(self.run, hop, *ends, kept)
        return found
