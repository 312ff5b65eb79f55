"""Closing: which of many pairs of positions an edge joins, and where runs of neighbours meet.

All that closing a cycle needs to know of adjacency is here. A pair is found by bisection in the run
of its source. Of very many pairs most are not joined, and those are told apart first, by a table of
bytes: each edge marks the byte its two ends are hashed to, so a pair whose byte is not marked is
certainly no edge. Of the edges 0 → 1, 0 → 2, 1 → 2, 2 → 0, 2 → 3:

    >>> from omnigraph.index.runs import Csr
    >>> edges = Members(Csr(np.array([0, 2, 3, 5, 5]), np.array([1, 2, 2, 0, 3]), None), 4)
    >>> edges.find(np.array([0, 1, 2]), np.array([2, 0, 3]))[0].tolist()    # 0 → 2 and 2 → 3
    [0, 2]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.kernels import expand, expand_runs
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.runs import Runs

FILTER_PAYS = 4
"""The table is made once there have been this part as many pairs as there are edges."""
BYTES_PER_EDGE = 16
_BYTES_MAX = 1 << 27
EXACT_BYTES_MAX = 1 << 21
"""Up to this many possible pairs each has a byte of its own."""
ONE_WAY_PAYS = 1.25
"""Rows are not told apart by their shortest run while one way for all looks at no more than this
many times as much."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True, eq=False)
class Members:
    """The edges of one side of a relation, whose neighbours are below `width`."""

    runs: Runs
    width: int
    _asked: int = 0
    _marked: BoolArray | None = None
    _shift: int = 0
    _is_exact: bool = False

    def find(self, sources: IntArray, targets: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """The pairs that are joined: their indices, and where their edges start and end.

        Where parallel edges are not kept apart, there is no need for the last two.
        """
        self._asked += len(sources)
        if self._marked is None and self._asked * FILTER_PAYS > self.runs.count:
            self._mark()
        likely: IntArray | None = None
        if self._marked is not None:
            likely = np.flatnonzero(self._marked[self._slots(sources, targets)])
            if self._is_exact and self.runs.edges is None:
                return likely, likely, likely
            sources, targets = sources[likely], targets[likely]
        starts, ends = self.runs.runs(sources)
        firsts = _bisect(self.runs, starts, ends, targets)
        if self.runs.edges is None:
            lasts = np.minimum(firsts + 1, ends)
            found = np.flatnonzero((firsts < ends) & (_at(self.runs, firsts) == targets))
        else:
            lasts = _bisect(self.runs, firsts, ends, targets + 1)
            found = np.flatnonzero(firsts < lasts)
        indices = found if likely is None else likely[found]
        return indices, firsts[found], lasts[found]

    def _mark(self) -> None:
        bits = min(
            max(self.runs.count * BYTES_PER_EDGE, 1).bit_length(), _BYTES_MAX.bit_length() - 1
        )
        self._shift = 64 - bits
        pairs = self.runs.size * self.width
        self._is_exact = pairs <= EXACT_BYTES_MAX
        marked = np.zeros(pairs if self._is_exact else 1 << bits, dtype=bool)
        sources, entries = expand(self.runs, np.arange(self.runs.size))
        marked[self._slots(sources, self.runs.neighbours(entries))] = True
        self._marked = marked

    def _slots(self, sources: IntArray, targets: IntArray) -> IntArray:
        keys = (sources * self.width + targets).astype(np.int64, copy=False)
        if self._is_exact:
            return keys
        return ((keys.view(np.uint64) * _MULTIPLIER) >> np.uint64(self._shift)).view(np.int64)


def _at(runs: Runs, entries: IntArray) -> IntArray:
    if runs.end == 0:
        return np.full(len(entries), -1)
    return runs.neighbours(np.minimum(entries, runs.end - 1))


def _bisect(runs: Runs, lows: IntArray, highs: IntArray, wanted: IntArray) -> IntArray:
    """The first entry in each ascending run whose neighbour is at least the wanted one."""
    lows, highs = lows.copy(), highs.copy()
    for _ in range(int(np.max(highs - lows, initial=0)).bit_length()):
        middle = (lows + highs) >> 1
        is_below = (_at(runs, middle) < wanted) & (lows < highs)
        lows = np.where(is_below, middle + 1, lows)
        highs = np.where(is_below, highs, middle)
    return lows


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """Runs of neighbours, one for each row."""

    runs: Runs
    starts: IntArray
    ends: IntArray

    @classmethod
    def along(cls, runs: Runs, positions: IntArray) -> Way:
        return cls(runs, *runs.runs(positions))

    @property
    def counts(self) -> IntArray:
        return self.ends - self.starts


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Where rows can lead along one of their ways: row by row, in entries of that way's runs."""

    way: int
    rows: IntArray
    entries: IntArray


def list_candidates(
    ways: Sequence[Way], block: Iterator[int]
) -> Iterator[tuple[slice, list[Candidates]]]:
    """The shortest run of each row, for as many rows at a time as `block` says there is room for.

    Every neighbour that all ways lead to is in the shortest run, and so nothing is missed.
    """
    counts = [way.counts for way in ways]
    chosen, fewest = _choose(counts)
    for part in split_runs(fewest, block):
        yield part, list(_expand_chosen(ways, chosen, part))


def split_runs(counts: IntArray, block: Iterator[int]) -> Iterator[slice]:
    """Rows that follow each other, at least one and as many as have no more than a block."""
    total = np.cumsum(counts)
    first = 0
    while first < len(counts):
        done = int(total[first - 1]) if first else 0
        last = int(np.searchsorted(total, done + next(block), side="right"))
        last = max(last, first + 1)
        yield slice(first, last)
        first = last


def _choose(counts: Sequence[IntArray]) -> tuple[IntArray | int, IntArray]:
    """Which way has the shortest run of each row; one for all when that costs little more."""
    if len(counts) == 1:
        return 0, counts[0]
    totals = [int(each.sum()) for each in counts]
    best = int(np.argmin(totals))
    every = np.stack(counts)
    fewest = every.min(axis=0)
    if totals[best] <= ONE_WAY_PAYS * int(fewest.sum()):
        return best, counts[best]
    return every.argmin(axis=0), fewest


def _expand_chosen(
    ways: Sequence[Way], chosen: IntArray | int, part: slice
) -> Iterator[Candidates]:
    if isinstance(chosen, int):
        way = ways[chosen]
        rows, entries = expand_runs(way.starts[part], way.ends[part])
        yield Candidates(chosen, rows + part.start, entries)
        return
    for number, way in enumerate(ways):
        here = np.flatnonzero(chosen[part] == number) + part.start
        if len(here):
            rows, entries = expand_runs(way.starts[here], way.ends[here])
            yield Candidates(number, here[rows], entries)
