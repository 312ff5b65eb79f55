"""Match: a planned pattern to rows of positions.

    reduce       what each variable can be bound to: filters, then messages along the trees
    not          negations that hang on one variable narrow its selection
    enumerate    rows of the bound variables, from the roots along the trees
    apply        closing hops, predicates over several variables, other negations

A tree without a bound variable is one number; trees meet as a cross product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.filters import constants_hold, rows_where
from omnigraph.executor.hops import hop_relation
from omnigraph.executor.joins import join
from omnigraph.executor.kernels import edge_count, expand, expand_runs, runs_between
from omnigraph.executor.reduce import Reducer
from omnigraph.executor.rows import Rows, require_room
from omnigraph.executor.run import Run
from omnigraph.executor.sorting import first_and_ties, property_column
from omnigraph.executor.weights import Payload
from omnigraph.index import Selection
from omnigraph.index.adjacency import Pairs, Relation, Runs
from omnigraph.index.arrays import IntArray, sort_distinct
from omnigraph.ir.expressions import Predicate
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.pattern import Hop
from omnigraph.planner.plan import MatchPlan, NegationPlan
from omnigraph.planner.trees import Branch, Tree


@dataclass(frozen=True, slots=True)
class FirstRoots:
    """Only the first `limit` roots by a property matter, and those that tie with the last."""

    property: str
    descending: bool
    limit: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller needs of a match.

    `payload` is what variables that are only counted send. With `exists` only the distinct bindings
    matter, and weights are left out. `limit` allows to stop after that many rows of any kind,
    `first` to leave out roots that an order with a limit cannot reach.
    """

    payload: Payload = field(default_factory=Payload)
    exists: bool = False
    limit: int | None = None
    first: FirstRoots | None = None


def match_rows(
    run: Run,
    plan: MatchPlan,
    wanted: Wanted,
    *,
    selections: Mapping[str, Selection] | None = None,
    seeds: Rows | None = None,
) -> Rows:
    """The rows of a pattern. `selections` narrows its variables; `seeds` binds the outer ones."""
    reducer = Reducer(run, plan.pattern, wanted.payload, wanted.exists, dict(selections or {}))
    return _Match(run, plan, wanted, reducer, seeds).rows()


@dataclass(slots=True)
class _Match:
    run: Run
    plan: MatchPlan
    wanted: Wanted
    reducer: Reducer
    seeds: Rows | None
    pending: list[Predicate | Hop] = field(default_factory=list)

    def rows(self) -> Rows:
        pattern = self.plan.pattern
        if not constants_hold(self.run, pattern.constants):
            return self._nothing()
        self.reducer.filter()
        for tree in self.plan.trees:
            self.reducer.narrow(tree)
        for negation in self.plan.negations:
            if negation.mask_of is not None:
                self._mask_out(negation, negation.mask_of)
        if any(selection.count == 0 for selection in self.reducer.selections.values()):
            return self._nothing()
        self.pending = [*pattern.closing, *pattern.across]
        for tree in self.plan.trees:
            self.reducer.reduce(tree)
        self._require_room_for_the_product()
        rows = self._apply_pending(self._start())
        for tree in self.plan.trees:
            rows = self._add_tree(rows, tree)
            if rows.count == 0:
                return self._nothing()
        for negation in self.plan.negations:
            if negation.mask_of is None:
                rows = self._without(rows, negation)
        return rows

    # not

    def _mask_out(self, negation: NegationPlan, variable: str) -> None:
        selection = self.reducer.selections[variable]
        found = match_rows(
            self.run, negation.plan, Wanted(exists=True), selections={variable: selection}
        )
        if found.count:
            self.reducer.selections[variable] = selection.without(found.nodes[variable])
        self.run.note(f"not, as a mask of ${variable}", self.reducer.selections[variable].count)

    # enumerate

    def _start(self) -> Rows:
        if self.seeds is None:
            return Rows(1)
        rows = self.seeds
        for variable, kept in self.reducer.kept_edges.items():
            if variable in rows.edges:
                rows = rows.take(kept.contains(rows.edges[variable]))
        return rows

    def _keep_selected(self, rows: Rows) -> Rows:
        for variable in self.plan.pattern.outer:
            selection = self.reducer.selections[variable]
            if not selection.is_all:
                rows = rows.take(selection.contains(rows.nodes[variable]))
        return rows

    def _require_room_for_the_product(self) -> None:
        """Refuse a cross product that is too large before any part of it is made."""
        if self.wanted.limit is not None or self._can_drop_later():
            return
        bound = [tree for tree in self.plan.trees if tree.root and not tree.is_counted]
        # After reduction every root is part of an answer: there are at least so many rows.
        require_room(math.prod(self.reducer.selections[str(tree.root)].count for tree in bound))

    def _add_tree(self, rows: Rows, tree: Tree) -> Rows:
        if tree.root is None:
            return self._grow(
                self._apply_weights(self._keep_selected(rows), self.plan.pattern.outer), tree
            )
        if self.reducer.selections[tree.root].count == 0:
            return Rows(0)
        grown = (
            self._count_tree(tree.root) if tree.is_counted else self._grow(self._roots(tree), tree)
        )
        if rows.is_unit:
            return grown
        return self._apply_pending(self._cut(self._cross(rows, grown)))

    def _cross(self, rows: Rows, others: Rows) -> Rows:
        limit = self.wanted.limit
        if limit is not None and not self._can_drop_later():
            others = self._cut(others)
            rows = rows.take(slice(0, -(-limit // max(others.count, 1))))
        return join(self.run, self.plan.pattern, rows, others, self.pending)

    def _roots(self, tree: Tree) -> Rows:
        assert tree.root is not None
        selection = self.reducer.selections[tree.root]
        rows = Rows(selection.count, {tree.root: selection.positions()}, distinct=tree.root)
        weights = self.reducer.weights.get(tree.root)
        if weights is not None:
            rows = weights.of(selection).apply(rows)
        first = self.wanted.first
        if first is None or self._can_drop_later() or rows.count <= first.limit:
            return rows
        view = self.run.view_of(tree.root, self.plan.pattern)
        key = property_column(
            view, first.property, rows.nodes[tree.root], descending=first.descending
        )
        return rows.take(first_and_ties(key.ascending_numbers(None), first.limit))

    def _count_tree(self, root: str) -> Rows:
        """A tree that nothing reads, as one row that stands for all its matches."""
        if self.wanted.exists:
            return Rows(1)
        weights = self.reducer.weights_of(root)
        selection = self.reducer.selections[root]
        return weights.of(selection).total(selection.count)

    def _grow(self, rows: Rows, tree: Tree) -> Rows:
        rows = self._apply_pending(self._cut(rows))
        for branch in tree.branches:
            if branch.is_bound:
                rows = self._apply_pending(self._cut(self._expand(rows, branch)))
        return rows

    def _expand(self, rows: Rows, branch: Branch) -> Rows:
        csr = self.reducer.sides(branch)[0]()
        sources = rows.nodes[branch.parent]
        require_room(edge_count(csr, sources))
        indices, entries = expand(csr, sources)
        targets = csr.targets[entries]
        selection = self.reducer.selections[branch.child]
        if not selection.is_all:
            kept = selection.contains(targets)
            indices, entries, targets = indices[kept], entries[kept], targets[kept]
        grown = rows if csr.is_function and selection.is_all else rows.take(indices)
        grown.nodes[branch.child] = targets
        if csr.is_function:
            grown.distinct = rows.distinct
        self._bind_edge(grown, branch.hop, csr, entries)
        self.run.note(f"expanded {branch.parent} to {branch.child}", grown.count)
        return self._apply_weights(grown, (branch.child,))

    def _bind_edge(self, rows: Rows, hop: Hop, csr: Runs, entries: IntArray) -> None:
        if hop.edge_variable is not None and hop.edge_variable in self.plan.bound:
            assert csr.edges is not None
            rows.edges[hop.edge_variable] = csr.edges[entries]

    def _apply_weights(self, rows: Rows, variables: tuple[str, ...]) -> Rows:
        for variable in variables:
            weights = self.reducer.weights.get(variable)
            if weights is not None:
                rows = weights.at(rows.nodes[variable]).apply(rows)
        return rows

    def _cut(self, rows: Rows) -> Rows:
        """Drop rows beyond the limit, when nothing that follows can drop any."""
        limit = self.wanted.limit
        if limit is None or self._can_drop_later() or rows.count <= limit:
            return rows
        return rows.take(slice(0, limit))

    def _can_drop_later(self) -> bool:
        """Whether a row made now may still turn out to be no answer."""
        return bool(self.pending) or any(n.mask_of is None for n in self.plan.negations)

    # apply

    def _apply_pending(self, rows: Rows) -> Rows:
        """Apply the hops and predicates whose variables are all bound by now."""
        bound = rows.nodes.keys() | rows.edges.keys()
        waiting: list[Predicate | Hop] = []
        for each in self.pending:
            if isinstance(each, Hop):
                if {each.source, each.target} <= bound:
                    rows = self._close(rows, each)
                    bound = rows.nodes.keys() | rows.edges.keys()
                else:
                    waiting.append(each)
            elif predicate_variables(each) <= bound:
                rows = rows.take(rows_where(self.run, self.plan.pattern, each, rows))
            else:
                waiting.append(each)
        self.pending = waiting
        return rows

    def _close(self, rows: Rows, hop: Hop) -> Rows:
        forward = self._closing_relation(rows, hop).forward
        starts, ends = runs_between(forward, rows.nodes[hop.source], rows.nodes[hop.target])
        indices, entries = expand_runs(starts, ends)
        closed = rows.take(indices)
        self._bind_edge(closed, hop, forward, entries)
        return closed

    def _closing_relation(self, rows: Rows, hop: Hop) -> Relation | Pairs:
        if hop.is_single:
            return self.reducer.relation(hop)
        sizes = self.reducer.selections[hop.source].size, self.reducer.selections[hop.target].size
        sources = Selection(sizes[0], positions=sort_distinct(rows.nodes[hop.source]))
        targets = Selection(sizes[1], positions=sort_distinct(rows.nodes[hop.target]))
        return hop_relation(self.run, hop, sources, targets, None)

    def _without(self, rows: Rows, negation: NegationPlan) -> Rows:
        """Drop the rows for which the inner pattern has a match."""
        outer = negation.outer
        columns = np.stack([rows.positions(name) for name in outer])
        distinct, index = np.unique(columns, axis=1, return_inverse=True)
        seeds = Rows(distinct.shape[1], seeds=np.arange(distinct.shape[1]))
        for name, positions in zip(outer, distinct, strict=True):
            (seeds.nodes if name in rows.nodes else seeds.edges)[name] = positions
        selections = {
            name: Selection(self.reducer.selections[name].size, positions=sort_distinct(positions))
            for name, positions in seeds.nodes.items()
        }
        found = match_rows(
            self.run, negation.plan, Wanted(exists=True), selections=selections, seeds=seeds
        )
        is_kept = np.ones(seeds.count, dtype=bool)
        if found.seeds is not None:
            is_kept[found.seeds] = False
        return rows.take(is_kept[index.reshape(-1)])

    def _nothing(self) -> Rows:
        empty = np.empty(0, dtype=np.int64)
        pattern = self.plan.pattern
        nodes = {name: empty for name in pattern.nodes if name in self.plan.bound}
        edges = {name: empty for name in pattern.edge_types() if name in self.plan.bound}
        return Rows(0, nodes, edges, seeds=empty)
