"""Match: a planned pattern to rows of positions.

    1  filters        each variable's own predicates become a set of live positions
    2  narrow         a selective root narrows what it leads to
    3  not            negations that hang on one variable become part of its live set
    4  reduce         leaves to root: children that are counted send weights, others existence;
                      then root to leaves, so that every partial row is part of an answer
    5  enumerate      rows of the bound variables, along the tree
    6  settle         closing steps, predicates over several variables, other negations

A tree without a bound variable is one number; trees meet as a cross product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from omnigraph.executor.filters import constants_hold, live_positions, rows_where
from omnigraph.executor.kernels import expand, expand_runs, reach, runs_between
from omnigraph.executor.rows import Rows, require_room
from omnigraph.executor.run import Run
from omnigraph.executor.steps import seen_from, step_relation
from omnigraph.executor.weights import Weights, combined, leaf_weights, message
from omnigraph.index import Live
from omnigraph.index.adjacency import Csr, Relation
from omnigraph.index.columns import IntArray
from omnigraph.ir.expressions import Predicate, PropertyRef
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.pattern import Step
from omnigraph.planner.plan import Branch, MatchPlan, NegationPlan, Tree

_SELECTIVE = 8
"""A set is selective when it holds less than one position in this many."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller needs of a match.

    `carried` are properties to sum on the way. With `exists` only the distinct bindings matter,
    and weights are left out. `limit` allows to stop after that many rows of any kind.
    """

    carried: frozenset[PropertyRef] = frozenset()
    exists: bool = False
    limit: int | None = None
    roots: IntArray | None = None


def match_rows(
    run: Run,
    plan: MatchPlan,
    wanted: Wanted,
    *,
    live: Mapping[str, Live] | None = None,
    seeds: Rows | None = None,
) -> Rows:
    """The rows of a pattern. `live` narrows variables beforehand; `seeds` binds the outer ones."""
    return _Match(run, plan, wanted, dict(live or {}), seeds).rows()


@dataclass(slots=True)
class _Match:
    run: Run
    plan: MatchPlan
    wanted: Wanted
    live: dict[str, Live]
    seeds: Rows | None
    kept_edges: dict[str, Live] = field(default_factory=dict)
    relations: dict[Step, Relation] = field(default_factory=dict)
    weights: dict[str, Weights] = field(default_factory=dict)
    unsettled: list[Predicate | Step] = field(default_factory=list)

    def rows(self) -> Rows:
        pattern = self.plan.pattern
        if not constants_hold(self.run, pattern.constants):
            return self._nothing()
        self._filter()
        for tree in self.plan.trees:
            self._narrow(tree)
        for negation in self.plan.negations:
            if negation.mask_of is not None:
                self._mask_out(negation, negation.mask_of)
        if any(live.count == 0 for live in self.live.values()):
            return self._nothing()
        self.unsettled = [*pattern.closing, *pattern.across]
        rows = self._start()
        for tree in self.plan.trees:
            rows = self._add_tree(rows, tree)
            if rows.count == 0:
                return self._nothing()
        for negation in self.plan.negations:
            if negation.mask_of is None:
                rows = self._without(rows, negation)
        return rows

    # 1 filters

    def _filter(self) -> None:
        pattern = self.plan.pattern
        for variable, type_name in pattern.nodes.items():
            view = self.run.nodes(type_name)
            live = live_positions(self.run, view, pattern.filters.get(variable, ()))
            given = self.live.get(variable)
            self.live[variable] = live if given is None else given.meet(live)
        for variable, edge in pattern.edge_types().items():
            filters = pattern.filters.get(variable)
            if filters:
                view = self.run.edges(edge).edges
                self.kept_edges[variable] = live_positions(self.run, view, filters)

    # 2 narrow

    def _narrow(self, tree: Tree) -> None:
        if tree.root is None:
            return
        for branch in tree.branches:
            parent = self.live[branch.parent]
            is_selective = parent.count * _SELECTIVE < parent.size
            if is_selective and branch.step.is_single_hop:
                self._narrow_child(branch)

    def _narrow_child(self, branch: Branch) -> None:
        above, below = self._adjacency(branch)
        live = self.live
        live[branch.child] = reach(below, above, live[branch.child], live[branch.parent])

    def _adjacency(self, branch: Branch) -> tuple[Csr, Csr]:
        """The relation of a branch keyed by its parent, then by its child."""
        return seen_from(self._relation(branch.step), branch.step, branch.parent)

    def _relation(self, step: Step) -> Relation:
        found = self.relations.get(step)
        if found is None:
            kept = self.kept_edges.get(step.edge_variable) if step.edge_variable else None
            ends = self.live[step.source], self.live[step.target]
            found = step_relation(self.run, step, *ends, kept)
            self.relations[step] = found
        return found

    # 3 not

    def _mask_out(self, negation: NegationPlan, variable: str) -> None:
        live = self.live[variable]
        found = match_rows(self.run, negation.plan, Wanted(exists=True), live={variable: live})
        if found.count:
            self.live[variable] = live.without(found.nodes[variable])
        self.run.note(f"not, as a mask of ${variable}", self.live[variable].count)

    # 4 reduce

    def _reduce(self, tree: Tree) -> None:
        for branch in reversed(tree.branches):
            above, below = self._adjacency(branch)
            parent, child = branch.parent, branch.child
            if branch.is_bound or self.wanted.exists:
                self.live[parent] = reach(above, below, self.live[parent], self.live[child])
                continue
            below_it = self._weights_of(child)
            sent = message(above, below, below_it, self.live[child])
            self.live[parent] = self.live[parent].meet(sent.live())
            self.weights[parent] = combined(self.weights.get(parent), sent)
        for branch in tree.branches:
            if branch.is_bound:
                self._narrow_child(branch)

    def _weights_of(self, variable: str) -> Weights:
        own = leaf_weights(self.run, self.plan.pattern, variable, self.wanted.carried)
        below = self.weights.get(variable)
        return own if below is None else combined(below, own)

    # 5 enumerate

    def _start(self) -> Rows:
        if self.seeds is None:
            return Rows(1)
        rows = self.seeds
        for variable, kept in self.kept_edges.items():
            if variable in rows.edges:
                rows = rows.take(kept.holds(rows.edges[variable]))
        return rows

    def _still_live(self, rows: Rows) -> Rows:
        for variable in self.plan.pattern.outer:
            live = self.live[variable]
            if not live.is_all:
                rows = rows.take(live.holds(rows.nodes[variable]))
        return rows

    def _add_tree(self, rows: Rows, tree: Tree) -> Rows:
        self._reduce(tree)
        if tree.root is None:
            return self._grow(self._weighted(self._still_live(rows), self.plan.pattern.outer), tree)
        if self.live[tree.root].count == 0:
            return Rows(0)
        grown = self._counted(tree.root) if tree.is_counted else self._grow(self._roots(tree), tree)
        if rows.count == 1 and not rows.nodes and not rows.edges and rows.seeds is None:
            return grown if rows.weight is None else grown.scaled(rows.weight[0])
        return self._settle(self._cut(rows).cross(self._cut(grown)))

    def _roots(self, tree: Tree) -> Rows:
        assert tree.root is not None
        positions = self.live[tree.root].positions()
        if self.wanted.roots is not None:
            positions = self.wanted.roots[self.live[tree.root].holds(self.wanted.roots)]
        rows = Rows(len(positions), {tree.root: positions})
        return self._weighted(rows, (tree.root,))

    def _counted(self, root: str) -> Rows:
        """A tree that nothing reads, as one row that stands for all its matches."""
        positions = self.live[root].positions()
        if self.wanted.exists:
            return Rows(1)
        weights = self._weights_of(root).at(positions)
        return Rows(1, weight=weights.total_weight(len(positions)), carried=weights.totals())

    def _grow(self, rows: Rows, tree: Tree) -> Rows:
        rows = self._settle(rows)
        for branch in tree.branches:
            if branch.is_bound:
                rows = self._settle(self._cut(self._expand(rows, branch)))
        return rows

    def _expand(self, rows: Rows, branch: Branch) -> Rows:
        above, _ = self._adjacency(branch)
        sources = rows.nodes[branch.parent]
        require_room(int(above.degree[sources].sum()))
        places, entries = expand(above, sources)
        targets = above.targets[entries]
        live = self.live[branch.child]
        if not live.is_all:
            kept = live.holds(targets)
            places, entries, targets = places[kept], entries[kept], targets[kept]
        grown = rows.take(places)
        grown.nodes[branch.child] = targets
        self._bind_edge(grown, branch.step, above, entries)
        self.run.note(f"expanded {branch.parent} to {branch.child}", grown.count)
        return self._weighted(grown, (branch.child,))

    def _bind_edge(self, rows: Rows, step: Step, csr: Csr, entries: IntArray) -> None:
        if step.edge_variable is not None and step.edge_variable in self.plan.bound:
            assert csr.edges is not None
            rows.edges[step.edge_variable] = csr.edges[entries]

    def _weighted(self, rows: Rows, variables: tuple[str, ...]) -> Rows:
        for variable in variables:
            weights = self.weights.get(variable)
            if weights is not None:
                rows = weights.at(rows.nodes[variable]).apply(rows)
        return rows

    def _cut(self, rows: Rows) -> Rows:
        """Drop rows beyond the limit, when nothing that follows can drop any."""
        limit = self.wanted.limit
        can_drop_later = self.unsettled or any(n.mask_of is None for n in self.plan.negations)
        if limit is None or can_drop_later or rows.count <= limit:
            return rows
        return rows.take(slice(0, limit))

    # 6 settle

    def _settle(self, rows: Rows) -> Rows:
        """Apply whatever has all of its variables bound by now."""
        bound = rows.nodes.keys() | rows.edges.keys()
        waiting: list[Predicate | Step] = []
        for each in self.unsettled:
            if isinstance(each, Step):
                if {each.source, each.target} <= bound:
                    rows = self._close(rows, each)
                    bound = rows.nodes.keys() | rows.edges.keys()
                else:
                    waiting.append(each)
            elif predicate_variables(each) <= bound:
                rows = rows.take(rows_where(self.run, self.plan.pattern, each, rows))
            else:
                waiting.append(each)
        self.unsettled = waiting
        return rows

    def _close(self, rows: Rows, step: Step) -> Rows:
        forward = self._closing_relation(rows, step).forward
        starts, ends = runs_between(forward, rows.nodes[step.source], rows.nodes[step.target])
        places, entries = expand_runs(starts, ends)
        closed = rows.take(places)
        self._bind_edge(closed, step, forward, entries)
        return closed

    def _closing_relation(self, rows: Rows, step: Step) -> Relation:
        if step.is_single_hop:
            return self._relation(step)
        sizes = self.live[step.source].size, self.live[step.target].size
        sources = Live(sizes[0], positions=np.unique(rows.nodes[step.source]))
        targets = Live(sizes[1], positions=np.unique(rows.nodes[step.target]))
        return step_relation(self.run, step, sources, targets, None)

    def _without(self, rows: Rows, negation: NegationPlan) -> Rows:
        """Drop the rows for which the inner pattern has a match."""
        outer = negation.negation.outer
        columns = [rows.nodes[name] if name in rows.nodes else rows.edges[name] for name in outer]
        distinct, place = np.unique(np.stack(columns), axis=1, return_inverse=True)
        seeds = Rows(distinct.shape[1], seeds=np.arange(distinct.shape[1]))
        for name, positions in zip(outer, distinct, strict=True):
            (seeds.nodes if name in rows.nodes else seeds.edges)[name] = positions
        live = {
            name: Live(self.live[name].size, positions=np.unique(positions))
            for name, positions in seeds.nodes.items()
        }
        found = match_rows(self.run, negation.plan, Wanted(exists=True), live=live, seeds=seeds)
        is_kept = np.ones(seeds.count, dtype=bool)
        if found.seeds is not None:
            is_kept[found.seeds] = False
        return rows.take(is_kept[place.reshape(-1)])

    def _nothing(self) -> Rows:
        empty = np.empty(0, dtype=np.int64)
        pattern = self.plan.pattern
        nodes = {name: empty for name in pattern.nodes if name in self.plan.bound}
        edges = {name: empty for name in pattern.edge_types() if name in self.plan.bound}
        carried = {ref: (empty.astype(float), empty) for ref in self.wanted.carried}
        return Rows(0, nodes, edges, None, carried, empty)
