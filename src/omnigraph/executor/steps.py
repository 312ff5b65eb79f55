"""Steps: from rows along one branch of a tree to more rows, in blocks of bounded size.

expand       one hop: every neighbour of every row
intersect    several hops: for each row the shortest of its runs, then what all the others have
count        the same, and only how many there are is kept
drop         variables that nothing reads any more leave, and equal rows are added up
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.closing import Members, Way, list_candidates
from omnigraph.executor.folding import fold_rows, sum_weights
from omnigraph.executor.hops import hop_relation
from omnigraph.executor.kernels import expand, expand_runs, scatter_sums, to_selection
from omnigraph.executor.reduce import Reducer
from omnigraph.executor.rows import Rows, map_sums
from omnigraph.executor.run import Run
from omnigraph.executor.weights import Weights, fold_extremes
from omnigraph.index.arrays import IntArray
from omnigraph.index.runs import Runs
from omnigraph.planner.pattern import Hop
from omnigraph.planner.plan import MatchPlan
from omnigraph.planner.trees import Branch

BLOCK_ENTRIES = 1 << 20
"""How many neighbours a step looks at before what it found goes on to the next step."""
_FIRST_BLOCK_ENTRIES = 1 << 14
"""The same for the first block of a query with a limit: it may be enough."""
FOLDED_ROWS_MIN = 1 << 12
SAMPLED_ROWS = 1 << 14
FOLDING_PAYS = 1.2
"""Folding goes on while it leaves this many times fewer rows."""


@dataclass(slots=True, eq=False)
class _Met:
    """Where rows lead: a row, a position of the child, and edges by variable, side by side."""

    rows: IntArray
    targets: IntArray
    edges: dict[str, IntArray]

    def take(self, indices: IntArray) -> None:
        self.rows, self.targets = self.rows[indices], self.targets[indices]
        self.edges = {name: edges[indices] for name, edges in self.edges.items()}


@dataclass(slots=True)
class Steps:
    """The branches of one match. With a `limit` the first blocks are small."""

    run: Run
    plan: MatchPlan
    reducer: Reducer
    limit: int | None
    _block: int = 0
    _unpaid: set[str] = field(default_factory=set)
    _made: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first = BLOCK_ENTRIES if self.limit is None else _FIRST_BLOCK_ENTRIES
        self._block = min(first, BLOCK_ENTRIES)

    def take(self, rows: Rows, branch: Branch) -> Iterator[Rows]:
        """The rows that a branch makes of these, a block at a time."""
        child, hops = branch.child, (branch.hop, *branch.closing)
        # Along a walk nothing is known before its ends are, so it leads only where nothing else
        # does; a loop has no other end to be led from.
        led = [hop for hop in hops if hop.is_single and hop.source != hop.target] or [branch.hop]
        sides = [self._side(hop, hop.other_end(child)) for hop in led]
        if len(hops) == 1 and sides[0].is_function:
            yield self._follow_function(rows, branch, sides[0])
            return
        starts = [rows.nodes[hop.other_end(child)] for hop in led]
        ways = [Way.along(side, at) for side, at in zip(sides, starts, strict=True)]
        for part, candidates in list_candidates(ways, self._room()):
            met = []
            for each in candidates:
                found = self._begin(branch, led[each.way], sides[each.way], each.rows, each.entries)
                for hop in hops:
                    if hop is not led[each.way]:
                        self._check(rows, child, hop, found)
                met.append(found)
            yield self._make(rows, part, branch, _join(met))

    def close(self, rows: Rows, hops: Iterable[Hop]) -> Rows:
        """The rows whose ends these hops join."""
        for hop in hops:
            met = _Met(np.arange(rows.count), rows.nodes[hop.target], {})
            self._check(rows, hop.target, hop, met)
            rows = rows.take(met.rows)
            rows.edges |= met.edges
        return rows

    def apply_weights(self, rows: Rows, variables: Iterable[str]) -> Rows:
        """Make rows stand for all that hangs below these variables."""
        for variable in variables:
            weights = self.reducer.weights.get(variable)
            if weights is not None:
                rows = weights.at(rows.nodes[variable]).apply(rows)
        return rows

    def drop(self, rows: Rows, branch: Branch) -> Rows:
        """Rows without what is not read after a branch, equal ones added up while that pays."""
        rows = self.forget(rows, branch.drops)
        if not branch.folds or rows.count < FOLDED_ROWS_MIN or branch.child in self._unpaid:
            return rows
        if rows.count > 4 * SAMPLED_ROWS and not self._folding_pays(rows, branch):
            return rows
        return self._fold(rows, branch)

    def _folding_pays(self, rows: Rows, branch: Branch) -> bool:
        """Try it on the first rows: what one start leads to is together."""
        self._fold(rows.take(slice(0, SAMPLED_ROWS)), branch)
        return branch.child not in self._unpaid

    def _fold(self, rows: Rows, branch: Branch) -> Rows:
        folded = fold_rows(rows, exists=self.reducer.exists)
        if folded.count * FOLDING_PAYS > rows.count:
            self._unpaid.add(branch.child)
        return folded

    def forget(self, rows: Rows, names: Iterable[str]) -> Rows:
        """Rows without these variables, which leave behind what is to be summed of them."""
        kept = replace(rows, nodes=dict(rows.nodes), edges=dict(rows.edges), sums=dict(rows.sums))
        kept.extremes = dict(rows.extremes)
        for name in names:
            if not self.reducer.exists:
                positions = kept.positions(name)
                kept = self.reducer.own_values(name, positions).at(positions).apply(kept)
            kept.nodes.pop(name, None)
            kept.edges.pop(name, None)
        return kept

    def note_made(self) -> None:
        """Record how many rows each step made."""
        for text, count in self._made.items():
            self.run.note(text, count)

    def _room(self) -> Iterator[int]:
        while True:
            yield self._block
            self._block = min(2 * self._block, BLOCK_ENTRIES)

    def _side(self, hop: Hop, start: str) -> Runs:
        return self.reducer.sides(hop, start)[0]()

    def _follow_function(self, rows: Rows, branch: Branch, side: Runs) -> Rows:
        """Every position has one neighbour: rows stay as they are."""
        _, entries = expand(side, rows.nodes[branch.parent])
        targets = side.neighbours(entries)
        selection = self.reducer.selections[branch.child]
        if selection.is_all:
            grown = replace(rows, nodes=dict(rows.nodes), edges=dict(rows.edges))
        else:
            kept = np.flatnonzero(selection.contains(targets))
            grown, entries, targets = rows.take(kept), entries[kept], targets[kept]
        grown.distinct = rows.distinct
        grown.nodes[branch.child] = targets
        grown.edges |= self._edges_of(branch.hop, side, entries)
        self._count(branch, grown.count)
        return self.apply_weights(grown, (branch.child,))

    def _begin(
        self, branch: Branch, hop: Hop, side: Runs, rows: IntArray, entries: IntArray
    ) -> _Met:
        targets = side.neighbours(entries)
        selection = self.reducer.selections[branch.child]
        if not selection.is_all:
            kept = np.flatnonzero(selection.contains(targets))
            rows, entries, targets = rows[kept], entries[kept], targets[kept]
        return _Met(rows, targets, self._edges_of(hop, side, entries))

    def _edges_of(self, hop: Hop, side: Runs, entries: IntArray) -> dict[str, IntArray]:
        if hop.edge_variable is None or hop.edge_variable not in self.plan.bound:
            return {}
        assert side.edges is not None
        return {hop.edge_variable: side.edges[entries]}

    def _check(self, rows: Rows, child: str, hop: Hop, met: _Met) -> None:
        """Keep what a hop joins, once for each of its edges."""
        start = hop.other_end(child)
        sources = met.targets if start == child else rows.nodes[start][met.rows]
        members = self._members(hop, start, child, sources, met.targets)
        indices, firsts, lasts = members.find(sources, met.targets)
        if members.runs.edges is None:
            met.take(indices)
            return
        runs, entries = expand_runs(firsts, lasts)
        met.take(indices[runs])
        met.edges |= self._edges_of(hop, members.runs, entries)

    def _members(
        self, hop: Hop, start: str, child: str, sources: IntArray, targets: IntArray
    ) -> Members:
        sizes = self.reducer.selections[start].size, self.reducer.selections[child].size
        if hop.is_single:
            return self.run.members(self._side(hop, start), sizes[1])
        ends = to_selection(sources, sizes[0]), to_selection(targets, sizes[1])
        is_forward = start == hop.source
        relation = hop_relation(self.run, hop, *(ends if is_forward else ends[::-1]), None)
        return Members(relation.side(source=is_forward), sizes[1])

    def _make(self, rows: Rows, part: slice, branch: Branch, met: _Met) -> Rows:
        if branch.is_bound:
            grown = rows.take(met.rows)
            grown.nodes[branch.child] = met.targets
            grown.edges |= met.edges
            self._count(branch, grown.count)
            return self.apply_weights(grown, (branch.child,))
        index, size = met.rows - part.start, part.stop - part.start
        if self.reducer.exists:
            matches = np.bincount(index, minlength=size)
        else:
            each = self.reducer.weights_of(branch.child).at(met.targets)
            matches = sum_weights(each.matches, index, size)
        kept = np.flatnonzero(matches)
        counted = rows.take(kept + part.start)
        self._count(branch, counted.count)
        if self.reducer.exists:
            return counted
        sums = map_sums(each.sums, lambda numbers: scatter_sums(index, numbers, size))
        sent = Weights(matches, sums, fold_extremes(each.extremes, index, size))
        return sent.at(kept).apply(counted)

    def _count(self, branch: Branch, rows: int) -> None:
        text = f"expanded {branch.parent} to {branch.child}"
        if branch.closing:
            verb = "intersected" if branch.is_bound else "counted"
            text = f"{verb} at {branch.child}"
        self._made[text] = self._made.get(text, 0) + rows


def _join(parts: Sequence[_Met]) -> _Met:
    if len(parts) == 1:
        return parts[0]
    return _Met(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.targets for part in parts]),
        {name: np.concatenate([part.edges[name] for part in parts]) for name in parts[0].edges},
    )
