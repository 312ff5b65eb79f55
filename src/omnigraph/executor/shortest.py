"""Shortest paths: breadth-first searches that keep one path to each node, as plain functions.

Of all shortest paths the one counts whose node ids, read from the written left end, come first. No
paths are compared for that. A frontier is kept in order, and a node belongs to the first one that
reaches it:

    from the left     the order of the paths: that of the predecessor, then the node's own id
    from the right    the order of the ids: the next node of a path is the least that leads on
    from both ends    the first of the nodes in the middle, by its path from the left

What was reached is an entry: a node, and the entry it was reached from. Of the edges 0 → 1, 0 → 2,
1 → 3, 2 → 3, where node 2 has a smaller id than node 1:

    >>> from omnigraph.index.runs import Csr
    >>> csr = Csr(np.array([0, 2, 3, 4, 4]), np.array([1, 2, 3, 3]), None)
    >>> found = search(csr, np.array([0]), Search(1, None, ranks=np.array([0, 2, 1, 3])))
    >>> found.nodes.tolist(), found.hops.tolist()
    ([2, 1, 3], [1, 1, 2])
    >>> found.forest.nodes[found.forest.parents[found.entries[2]]].item()   # 3 is reached from 2
    2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.kernels import LEVEL_EFFORT, LookAt, expand, starts_per_pass
from omnigraph.executor.rows import PATHS, WALKS, require_room
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.runs import Runs

_NONE: IntArray = np.empty(0, dtype=np.int64)
TABLE_ENTRIES = 1 << 21
"""How many (row, node) pairs one pass may tell apart before its starts are split."""


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Entries: their nodes, the entries they were reached from (-1 for a start), their edges."""

    nodes: IntArray = field(default_factory=lambda: _NONE)
    parents: IntArray = field(default_factory=lambda: _NONE)
    edges: IntArray | None = None

    def keep(self, entries: IntArray) -> tuple[Forest, IntArray]:
        """Only what leads to these entries; and where they are then."""
        is_kept = np.zeros(len(self.nodes), dtype=bool)
        ahead = entries
        while len(ahead):
            is_kept[ahead] = True
            ahead = self.parents[ahead]
            ahead = ahead[ahead >= 0]
            ahead = ahead[~is_kept[ahead]]
        if is_kept.all():
            return self, entries
        place = np.cumsum(is_kept) - 1
        parents = self.parents[is_kept]
        parents = np.where(parents < 0, -1, place[parents])
        edges = None if self.edges is None else self.edges[is_kept]
        return Forest(self.nodes[is_kept], parents, edges), place[entries]


def join_forests(forests: Sequence[Forest]) -> Forest:
    """All of them, the entries of each after those before it."""
    some = [each for each in forests if len(each.nodes)]
    if len(some) <= 1:
        return some[0] if some else Forest()
    parents, shift = [], 0
    for each in some:
        parents.append(each.parents + np.where(each.parents < 0, 0, shift))
        shift += len(each.nodes)
    edges = [each.edges for each in some if each.edges is not None]
    return Forest(
        np.concatenate([each.nodes for each in some]),
        np.concatenate(parents),
        np.concatenate(edges) if len(edges) == len(some) else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What is searched for.

    `most` is None for any number of hops. `targets` says which nodes are ends, None for all of
    them. `ranks` orders nodes by their ids; None when no path is asked for. `is_prefix` says that
    the starts are the written left ends. `loops` are nodes with an edge to themselves, which count
    when they are one hop short of the bounds: those at the far end, or at the start of the search.
    `look_at` counts the edges that are followed.
    """

    least: int
    most: int | None
    targets: BoolArray | None = None
    ranks: IntArray | None = None
    is_prefix: bool = True
    loops: BoolArray | None = None
    loop_at_start: bool = False
    look_at: LookAt = lambda _: None


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Pairs of a start, as its row, and a node; where its path ends, and how long that is.

    A search that is not asked for paths has no entries.
    """

    rows: IntArray
    nodes: IntArray
    entries: IntArray
    hops: IntArray
    is_looped: BoolArray
    forest: Forest


def search(csr: Runs, starts: IntArray, wanted: Search) -> Found:
    """One shortest path to each end, from every start."""
    per_pass = starts_per_pass(csr, TABLE_ENTRIES, wanted.most)
    parts: list[Found] = []
    count = 0
    for first in range(0, len(starts), per_pass):
        found = _Pass(csr, starts[first : first + per_pass], first, wanted).run()
        parts.append(found)
        count += max(len(found.rows), len(found.forest.nodes))
        require_room(count, WALKS if wanted.ranks is None else PATHS)
    return join_found(parts)


def join_found(parts: list[Found]) -> Found:
    """All of them, as one."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([len(each.forest.nodes) for each in parts], dtype=np.int64)
    shifts = np.cumsum(sizes) - sizes
    entries = [_NONE, *(each.entries + by for each, by in zip(parts, shifts, strict=True))]
    forest = join_forests([each.forest for each in parts])
    return Found(
        np.concatenate([_NONE, *(each.rows for each in parts)]),
        np.concatenate([_NONE, *(each.nodes for each in parts)]),
        np.concatenate(entries),
        np.concatenate([_NONE, *(each.hops for each in parts)]),
        np.concatenate([_NONE.astype(bool), *(each.is_looped for each in parts)]),
        forest,
    )


@dataclass(slots=True, eq=False)
class _Pass:
    """The search from some starts, level by level. A frontier is in order of its paths."""

    csr: Runs
    starts: IntArray
    first_row: int
    wanted: Search
    nodes: list[IntArray] = field(default_factory=list)
    parents: list[IntArray] = field(default_factory=list)
    found: list[tuple[IntArray, IntArray, IntArray, int, bool]] = field(default_factory=list)
    entries: int = 0

    def run(self) -> Found:
        wanted = self.wanted
        rows, nodes = np.arange(len(self.starts)), self.starts
        frontier = Frontier(self.csr, rows, nodes, wanted)
        base = self._add(nodes, np.full(len(nodes), -1, dtype=np.int64))
        distance, missing = 0, self._count_missing()
        while len(frontier.nodes) and missing and distance != wanted.most:
            if distance == wanted.least - 1 and wanted.loops is not None:
                self._take_loops(frontier, base, wanted.loops)
            parents = frontier.step()
            distance += 1
            base = self._add(frontier.nodes, base + parents)
            if wanted.targets is not None:
                missing -= int(np.count_nonzero(wanted.targets[frontier.nodes]))
            if distance >= wanted.least:
                self._take(frontier.rows, frontier.nodes, base, distance)
        return self._finish()

    def _count_missing(self) -> int:
        """How many pairs there can be at most; the search ends when all of them are found."""
        targets, rows = self.wanted.targets, len(self.starts)
        if targets is None or self.wanted.loops is not None:
            return rows * self.csr.size + 1
        return rows * int(np.count_nonzero(targets)) - int(np.count_nonzero(targets[self.starts]))

    def _add(self, nodes: IntArray, parents: IntArray) -> int:
        base = self.entries
        if self.wanted.ranks is None:
            return base
        self.nodes.append(nodes)
        self.parents.append(parents)
        self.entries += len(nodes)
        return base

    def _take(self, rows: IntArray, nodes: IntArray, base: int, distance: int) -> None:
        kept = np.arange(len(nodes))
        if self.wanted.targets is not None:
            kept = np.flatnonzero(self.wanted.targets[nodes])
        self.found.append((rows[kept], nodes[kept], base + kept, distance, False))

    def _take_loops(self, frontier: Frontier, base: int, loops: BoolArray) -> None:
        rows, nodes = frontier.rows, frontier.nodes
        kept = np.flatnonzero(loops[self.starts[rows] if self.wanted.loop_at_start else nodes])
        if self.wanted.targets is not None:
            kept = kept[self.wanted.targets[nodes[kept]]]
        entries = base + kept
        if not self.wanted.loop_at_start:
            entries = self._add(nodes[kept], entries) + np.arange(len(kept))
        least, at_start = self.wanted.least, self.wanted.loop_at_start
        self.found.append((rows[kept], nodes[kept], entries, least, at_start))

    def _finish(self) -> Found:
        parts = self.found
        forest, entries = Forest(), _NONE
        if self.wanted.ranks is not None:
            forest = Forest(np.concatenate(self.nodes), np.concatenate(self.parents))
            forest, entries = forest.keep(np.concatenate([_NONE, *(part[2] for part in parts)]))
        counts = [len(part[0]) for part in parts]
        return Found(
            np.concatenate([_NONE, *(part[0] for part in parts)]) + self.first_row,
            np.concatenate([_NONE, *(part[1] for part in parts)]),
            entries,
            np.repeat(np.array([part[3] for part in parts], dtype=np.int64), counts),
            np.repeat(np.array([part[4] for part in parts], dtype=bool), counts),
            forest,
        )


class Frontier:
    """What the last step reached for the first time, in the order that decides between paths."""

    def __init__(self, csr: Runs, rows: IntArray, nodes: IntArray, wanted: Search) -> None:
        self.rows = rows
        self.nodes = nodes
        self._csr = csr
        self._wanted = wanted
        count = len(rows) * csr.size
        self.visited = np.zeros(count, dtype=bool)
        self.visited[rows * csr.size + nodes] = True
        # Read only where it was written: which of several comes first.
        self._firsts = np.empty(count, dtype=np.int64)

    def step(self) -> IntArray:
        """Go on by one hop; give for each node the index in the frontier it was reached from."""
        size = self._csr.size
        which, entries = expand(self._csr, self.nodes)
        self._wanted.look_at(max(len(entries), LEVEL_EFFORT))
        keys = self._csr.neighbours(entries).astype(np.int64, copy=False)
        if len(self.visited) > size:
            keys = self.rows[which] * size + keys
        fresh = np.flatnonzero(~self.visited[keys])
        keys, which = keys[fresh], which[fresh]
        place = np.arange(len(keys))
        self._firsts[keys[::-1]] = place[::-1]
        first = np.flatnonzero(self._firsts[keys] == place)
        keys, which = keys[first], which[first]
        self.visited[keys] = True
        rows, nodes = np.divmod(keys, size) if len(self.visited) > size else (which * 0, keys)
        ranks = self._wanted.ranks
        if ranks is not None:
            major = which if self._wanted.is_prefix else rows
            order = np.argsort(major * size + ranks[nodes])
            rows, nodes, which = rows[order], nodes[order], which[order]
        self.rows, self.nodes = rows, nodes
        return which


def meet(
    forward: Runs, backward: Runs, start: int, end: int, most: int | None, ranks: IntArray | None
) -> IntArray | None:
    """The nodes of the one shortest path between two nodes; None when there is none.

    The side with fewer nodes to go on from takes the next step.
    """
    if start == end:
        return None
    zero = np.zeros(1, dtype=np.int64)
    sides = (
        Frontier(forward, zero, np.array([start]), Search(1, most, ranks=ranks)),
        Frontier(backward, zero, np.array([end]), Search(1, most, ranks=ranks, is_prefix=False)),
    )
    levels: tuple[list[tuple[IntArray, IntArray]], ...] = (
        [(sides[0].nodes, zero)],
        [(sides[1].nodes, zero)],
    )
    is_ahead = np.zeros(forward.size, dtype=bool)
    for distance in range(1, forward.size + 1):
        if most is not None and distance > most:
            return None
        turn = int(len(sides[1].nodes) < len(sides[0].nodes))
        parents = sides[turn].step()
        levels[turn].append((sides[turn].nodes, parents))
        if len(parents) == 0:
            return None
        is_ahead[sides[1].nodes] = True
        middle = np.flatnonzero(is_ahead[sides[0].nodes])
        is_ahead[sides[1].nodes] = False
        if len(middle):
            node = sides[0].nodes[middle[0]]
            left = _follow(levels[0], int(middle[0]))[::-1]
            right = _follow(levels[1], int(np.flatnonzero(sides[1].nodes == node)[0]))
            return np.array([*left, *right[1:]], dtype=np.int64)
    return None


def _follow(levels: list[tuple[IntArray, IntArray]], index: int) -> list[int]:
    """The nodes from a place in the last level back to the first."""
    nodes = []
    for reached, parents in reversed(levels):
        nodes.append(int(reached[index]))
        index = int(parents[index])
    return nodes
