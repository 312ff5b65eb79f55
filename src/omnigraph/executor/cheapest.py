"""Cheapest paths: least sum of weights, then fewest hops, then the order of all paths.

Costs are corrected round by round, from every node whose cost has become less, until none does.
What is left are the edges that lie on a cheapest path; along these, hop by hop, each node takes the
first of its predecessors, as in `shortest.py`. Sums are made from the written left end, so that
they are the same however the query is answered. Of 0 → 1 → 2 with weights 1 and 1, 0 → 2 with 3:

    >>> from omnigraph.index.adjacency import Pairs
    >>> edges = Pairs(np.array([0, 1, 0]), np.array([1, 2, 2]), np.arange(3), (3, 3))
    >>> weighted = Weighted(edges.forward, np.array([1.0, 1.0, 3.0]), lambda edges: edges, 3)
    >>> found, costs = search_cheapest(weighted, np.array([0]), Search(1, None, ranks=np.arange(3)))
    >>> found.nodes.tolist(), found.hops.tolist(), costs.tolist()
    ([1, 2], [1, 2], [1.0, 2.0])
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.executor.kernels import LEVEL_EFFORT, expand, starts_per_pass
from omnigraph.executor.rows import PATHS, require_room
from omnigraph.executor.shortest import TABLE_ENTRIES, Forest, Found, Search, join_found
from omnigraph.index.arrays import AnyArray, IntArray, sort_distinct
from omnigraph.index.runs import Runs

_NONE: IntArray = np.empty(0, dtype=np.int64)
_MANY_HOPS = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Edges with a weight each; `codes` sorts edges by their ids, positions are below `width`.

    Without `chains` the far ends are of another type, which has no such edges.
    """

    edges: Runs
    weights: AnyArray
    codes: Callable[[IntArray], IntArray]
    width: int
    chains: bool = True


def search_cheapest(weighted: Weighted, starts: IntArray, wanted: Search) -> tuple[Found, AnyArray]:
    """The cheapest path to each end from every start, and what it costs."""
    per_pass = starts_per_pass(weighted.edges, TABLE_ENTRIES, None)
    parts: list[Found] = []
    costs: list[AnyArray] = [np.empty(0)]
    count = 0
    for first in range(0, len(starts), per_pass):
        some = starts[first : first + per_pass]
        found, cost = _Pass(weighted, some, wanted).run(first)
        parts.append(found)
        costs.append(cost)
        count += len(found.forest.nodes)
        require_room(count, PATHS)
    return join_found(parts), np.concatenate(costs)


def negative_weight() -> BadRequestError:
    """The error for an edge that would make a path cheaper than its beginning."""
    return BadRequestError(
        "a negative weight: shortest by a weight needs numbers that are not below zero"
    )


@dataclass(slots=True, eq=False)
class _Pass:
    """The search from some starts. A key is a row and a node."""

    weighted: Weighted
    starts: IntArray
    wanted: Search

    def run(self, first_row: int) -> tuple[Found, AnyArray]:
        costs, hops = self._measure()
        return self._follow(costs, hops, first_row)

    def _begin(self) -> IntArray:
        return np.arange(len(self.starts)) * self.weighted.width + self.starts

    def _steps(self, keys: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """The index in `keys`, the key and the edge of every step from there."""
        size, runs = self.weighted.width, self.weighted.edges
        assert runs.edges is not None
        which, entries = expand(runs, keys % size)
        self.wanted.look_at(max(len(entries), LEVEL_EFFORT))
        after = keys[which] // size * size + runs.neighbours(entries)
        return which, after, runs.edges[entries]

    def _cost_of(self, keys: IntArray, costs: AnyArray) -> AnyArray:
        """What it costs to be there. Without chains these are starts, of another type than ends."""
        return costs[keys] if self.weighted.chains else np.zeros(len(keys))

    def _measure(self) -> tuple[AnyArray, IntArray]:
        """The least cost of every key, and the fewest hops it takes; infinite out of reach."""
        count = len(self.starts) * self.weighted.width
        costs = np.full(count, np.inf)
        hops = np.zeros(count, dtype=np.int64)
        keys = self._begin()
        if self.weighted.chains:
            costs[keys] = 0.0
        while len(keys):
            which, after, edges = self._steps(keys)
            weights = self.weighted.weights[edges]
            if np.any(weights < 0):
                raise negative_weight()
            cost, hop = self._cost_of(keys, costs)[which] + weights, hops[keys][which] + 1
            is_better = (cost < costs[after]) | ((cost == costs[after]) & (hop < hops[after]))
            after, cost, hop = after[is_better], cost[is_better], hop[is_better]
            # What is cheaper begins to count its hops again; then the fewest of the cheapest.
            hops[after[cost < costs[after]]] = _MANY_HOPS
            np.minimum.at(costs, after, cost)
            is_least = cost == costs[after]
            after, hop = after[is_least], hop[is_least]
            np.minimum.at(hops, after, hop)
            keys = sort_distinct(after)
            if not self.weighted.chains:
                break
        return costs, hops

    def _follow(self, costs: AnyArray, hops: IntArray, first_row: int) -> tuple[Found, AnyArray]:
        size, keys = self.weighted.width, self._begin()
        none = np.full(len(keys), -1, dtype=np.int64)
        nodes, parents, edges = [self.starts], [none], [none]
        ends: list[tuple[IntArray, IntArray]] = [(_NONE, _NONE)]
        base, entries, level = 0, len(keys), 0
        while len(keys):
            level += 1
            which, after, through = self._on_cheapest(keys, costs, hops, level)
            nodes.append(after % size)
            parents.append(base + which)
            edges.append(through)
            base, keys = entries, after
            entries += len(keys)
            kept = np.arange(len(keys))
            if self.wanted.targets is not None:
                kept = np.flatnonzero(self.wanted.targets[keys % size])
            ends.append((keys[kept], base + kept))
            if not self.weighted.chains:
                break
        forest = Forest(np.concatenate(nodes), np.concatenate(parents), np.concatenate(edges))
        found = np.concatenate([each[0] for each in ends])
        forest, places = forest.keep(np.concatenate([each[1] for each in ends]))
        is_looped = np.zeros(len(found), dtype=bool)
        rows = found // size + first_row
        return Found(rows, found % size, places, hops[found], is_looped, forest), costs[found]

    def _on_cheapest(
        self, keys: IntArray, costs: AnyArray, hops: IntArray, level: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """The steps of cheapest paths from these keys, which are in order; one to each key."""
        which, after, edges = self._steps(keys)
        cost = self._cost_of(keys, costs)[which] + self.weighted.weights[edges]
        kept = np.flatnonzero((cost == costs[after]) & (hops[after] == level))
        which, after, edges = which[kept], after[kept], edges[kept]
        order = np.lexsort([self.weighted.codes(edges), which, after])
        firsts = order[np.flatnonzero(np.diff(after[order], prepend=-1))]
        which, after, edges = which[firsts], after[firsts], edges[firsts]
        if self.wanted.ranks is None:
            return which, after, edges
        order = np.lexsort([self.wanted.ranks[after % self.weighted.width], which])
        return which[order], after[order], edges[order]
