"""All shortest paths: every path of least length between two nodes, parallel edges apart.

Nothing is made that is not part of an answer. Distances come first; then, from the ends back, what
lies on a path to one; then the size of all paths, and if that is too much none is made. Of the
edges 0 → 1, 0 → 2, 1 → 3, 2 → 3 there are two from 0 to 3:

    >>> from omnigraph.index.adjacency import Pairs
    >>> ends = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])
    >>> edges = Pairs(*ends, np.arange(4), (4, 4))
    >>> wanted = Search(1, None, targets=np.array([False, False, False, True]))
    >>> found = search_all(edges.forward, edges.backward, edges.forward, np.array([0]), wanted)
    >>> found.nodes.tolist(), found.hops.tolist(), found.forest.edges[found.entries].tolist()
    ([3, 3], [2, 2], [2, 3])
"""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.closing import split_runs
from omnigraph.executor.kernels import LEVEL_EFFORT, expand, expand_runs, starts_per_pass
from omnigraph.executor.rows import PATHS, require_room
from omnigraph.executor.shortest import TABLE_ENTRIES, Forest, Found, Frontier, Search, join_found
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray
from omnigraph.index.runs import Runs

_NONE: IntArray = np.empty(0, dtype=np.int64)
_BLOCK_ENTRIES = 1 << 20


def search_all(steps: Runs, reverse: Runs, stored: Runs, starts: IntArray, wanted: Search) -> Found:
    """Every shortest path to each end. `stored` keeps parallel edges apart.

    `steps` and `reverse` are the same without them, from either side.
    """
    per_pass = starts_per_pass(steps, TABLE_ENTRIES, wanted.most)
    parts: list[Found] = []
    count = 0
    for first in range(0, len(starts), per_pass):
        some = starts[first : first + per_pass]
        found = _AllPaths(steps, reverse, stored, some, wanted).run(first, count)
        parts.append(found)
        count += len(found.forest.nodes)
    return join_found(parts)


@dataclass(slots=True, eq=False)
class _AllPaths:
    """Distances first; then, from the ends back, what leads to one; then path by path."""

    steps: Runs
    reverse: Runs
    stored: Runs
    starts: IntArray
    wanted: Search

    def run(self, first_row: int, held: int) -> Found:
        distances, depth = self._measure()
        self._leave_out(distances, depth)
        require_room(held + self._count(distances, depth), PATHS)
        return self._enumerate(distances, depth, first_row)

    def _measure(self) -> tuple[IntArray, int]:
        """The distance of every (row, node), -1 for those out of reach; and the greatest."""
        size, rows = self.steps.size, np.arange(len(self.starts))
        frontier = Frontier(self.steps, rows, self.starts, replace(self.wanted, ranks=None))
        distances = np.full(len(rows) * size, -1, dtype=np.int32)
        distances[rows * size + self.starts] = 0
        depth = 0
        while len(frontier.nodes) and depth != self.wanted.most:
            frontier.step()
            depth += 1
            distances[frontier.rows * size + frontier.nodes] = depth
        return distances, depth

    def _is_end(self, keys: IntArray) -> BoolArray:
        targets = self.wanted.targets
        if targets is None:
            return np.ones(len(keys), dtype=bool)
        return targets[keys % self.steps.size]

    def _leave_out(self, distances: IntArray, depth: int) -> None:
        """Forget what lies on no path to an end that counts."""
        if self.wanted.targets is None:
            return
        size = self.steps.size
        is_needed = np.zeros(len(distances), dtype=bool)
        for level in range(depth, 0, -1):
            here = np.flatnonzero(distances == level)
            if level >= self.wanted.least:
                is_needed[here[self._is_end(here)]] = True
            here = here[is_needed[here]]
            which, entries = expand(self.reverse, here % size)
            self.wanted.look_at(max(len(entries), LEVEL_EFFORT))
            before = here[which] // size * size + self.reverse.neighbours(entries)
            is_needed[before[distances[before] == level - 1]] = True
        distances[~is_needed] = -1

    def _onward(
        self, keys: IntArray, distances: IntArray, level: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """The index in `keys`, the key and the edge of each next step."""
        size, edges = self.stored.size, self.stored.edges
        assert edges is not None
        starts, ends = self.stored.runs(keys % size)
        self.wanted.look_at(max(int((ends - starts).sum()), LEVEL_EFFORT))
        found = [(_NONE, _NONE, _NONE)]
        for part in split_runs(ends - starts, repeat(_BLOCK_ENTRIES)):
            which, entries = expand_runs(starts[part], ends[part])
            which += part.start
            after = keys[which] // size * size + self.stored.neighbours(entries)
            kept = np.flatnonzero(distances[after] == level)
            found.append((which[kept], after[kept], edges[entries[kept]]))
        which, after, through = (np.concatenate(each) for each in zip(*found, strict=True))
        return which, after, through

    def _count(self, distances: IntArray, depth: int) -> int:
        """How many entries all paths have, as far as that can be told without making any."""
        size = self.steps.size
        keys = np.arange(len(self.starts)) * size + self.starts
        paths: AnyArray = np.ones(len(keys))
        total = 0.0
        for level in range(1, depth + 1):
            which, after, _ = self._onward(keys, distances, level)
            keys, index = np.unique(after, return_inverse=True)
            paths = np.bincount(index, paths[which], len(keys))
            total += float(paths.sum())
        return int(min(total, 2.0**62))

    def _enumerate(self, distances: IntArray, depth: int, first_row: int) -> Found:
        size = self.steps.size
        keys = np.arange(len(self.starts)) * size + self.starts
        none = np.full(len(keys), -1, dtype=np.int64)
        nodes, parents, edges = [self.starts], [none], [none]
        found: list[tuple[IntArray, IntArray, int]] = []
        base, entries = 0, len(keys)
        for level in range(1, depth + 1):
            which, after, through = self._onward(keys, distances, level)
            nodes.append(after % size)
            parents.append(base + which)
            edges.append(through)
            base, keys = entries, after
            entries += len(keys)
            if level >= self.wanted.least:
                ends = np.flatnonzero(self._is_end(keys))
                found.append((keys[ends], base + ends, level))
        forest = Forest(np.concatenate(nodes), np.concatenate(parents), np.concatenate(edges))
        ends = np.concatenate([_NONE, *(each[0] for each in found)])
        counts = [len(each[0]) for each in found]
        return Found(
            ends // size + first_row,
            ends % size,
            np.concatenate([_NONE, *(each[1] for each in found)]),
            np.repeat(np.array([each[2] for each in found], dtype=np.int64), counts),
            np.zeros(len(ends), dtype=bool),
            forest,
        )
