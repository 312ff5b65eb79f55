"""Kernels: expansion, messages and hop-bounded walks as plain functions over arrays.

An entry is an index into `csr.targets`. Of the five edges 0 → 1, 0 → 2, 1 → 2, 2 → 0, 2 → 3:

    >>> from omnigraph.index.runs import Csr
    >>> csr = Csr(np.array([0, 2, 3, 5, 5]), np.array([1, 2, 2, 0, 3]), None)
    >>> rows, entries = expand(csr, np.array([2, 0]))       # row 0 is node 2, row 1 is node 0
    >>> rows.tolist(), entries.tolist(), csr.targets[entries].tolist()
    ([0, 0, 1, 1], [3, 4, 0, 1], [0, 3, 1, 2])
    >>> scatter_sums(csr.targets, np.array([1, 1, 1, 5, 7]), 4).tolist()   # into 0, 1, 2 and 3
    [5, 1, 2, 7]
    >>> walk(csr, np.array([0]), (2, 3), np.zeros(4, dtype=bool), loop_at_start=False)[1].tolist()
    [3]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from omnigraph.executor.rows import WALKS, require_room
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray, sort_distinct
from omnigraph.index.arrays import expand_runs as expand_runs
from omnigraph.index.runs import Csr, FewRuns, PatchedRuns, Runs, ShiftedRuns, WholeRuns
from omnigraph.index.selection import Selection

_EXACT_IN_DOUBLE = 2**53
LookAt: TypeAlias = Callable[[int], None]
"""Counts what is looked at, and ends a search that looks at too much."""
LEVEL_EFFORT = 1_000
"""A step of a search takes as long as looking at so many edges, however few there are."""
FEW = 4
"""Positions or edges are few when there is less than one in this many."""
_VISITED_BYTES = 1 << 25
"""How large the table of visited (row, node) pairs may get before sources are split."""


def expand(csr: Runs, sources: IntArray) -> tuple[IntArray, IntArray]:
    """Return (row in `sources`, entry) for every edge that leaves `sources`.

    Rows keep the order of `sources`; the edges of one row keep the order of the CSR.
    """
    if csr.is_function:
        # One edge each; where nothing has changed, that of `p` is entry `p`.
        entries = sources if isinstance(csr, WholeRuns) else csr.runs(sources)[0]
        return np.arange(len(sources)), entries
    return expand_runs(*csr.runs(sources))


def edge_count(csr: Runs, sources: IntArray) -> int:
    """How many edges leave these positions."""
    starts, ends = csr.runs(sources)
    return int((ends - starts).sum())


Side: TypeAlias = Callable[[], Runs]
"""One side of a relation, built when it is called for."""


def reach(forward: Side, backward: Side, parents: Selection, children: Selection) -> Selection:
    """The parents with an edge to one of the children. `backward` is keyed by child."""
    if children.is_all:
        return parents.intersect(forward().with_neighbour())
    if not parents.is_all and parents.count <= children.count:
        return _reach_from_parents(forward(), parents, children)
    csr = backward()
    edges = edge_count(csr, children.positions())
    if not parents.is_all and edge_count(forward(), parents.positions()) < edges:
        return _reach_from_parents(forward(), parents, children)
    _, entries = expand(csr, children.positions())
    return parents.intersect(to_selection(csr.neighbours(entries), parents.size))


def to_selection(positions: IntArray, size: int) -> Selection:
    """The set of these positions, which may repeat."""
    if len(positions) * FEW < size:
        return Selection(size, positions=sort_distinct(positions))
    mask = np.zeros(size, dtype=bool)
    mask[positions] = True
    return Selection(size, mask=mask)


def _reach_from_parents(forward: Runs, parents: Selection, children: Selection) -> Selection:
    positions = parents.positions()
    rows, entries = expand(forward, positions)
    hits = children.mask()[forward.neighbours(entries)]
    found = np.zeros(len(positions), dtype=bool)
    found[rows[hits]] = True
    return Selection(parents.size, positions=positions[found])


def sum_along(forward: Side, backward: Side, weights: AnyArray, size: int) -> AnyArray:
    """Sum the children's weights over the edges of each parent. `backward` is keyed by child.

    Whole weights are summed as integers, so counts are exact; others as doubles.
    """
    below = backward()
    if below.is_function and not isinstance(below, FewRuns):
        return scatter_sums(below.only_targets, weights, size)
    positions = np.flatnonzero(weights)
    if edge_count(below, positions) * FEW < below.count:
        rows, entries = expand(below, positions)
        return scatter_sums(below.neighbours(entries), weights[positions][rows], size)
    if weights.dtype.kind == "f":
        return _fold_runs(forward(), weights, partial(_segments, np.add, 0.0), 0.0)
    return _fold_runs(forward(), weights, _running_sums, 0)


def _running_sums(weights: AnyArray, csr: Csr) -> AnyArray:
    sums = np.zeros(csr.count + 1, dtype=np.int64)
    np.cumsum(weights[csr.targets], out=sums[1:])
    return np.asarray(sums[csr.offsets[1:]] - sums[csr.offsets[:-1]])


def _fold_runs(
    runs: Runs, weights: AnyArray, fold: Callable[[AnyArray, Csr], AnyArray], empty: float
) -> AnyArray:
    """One value per position, folded from its run: one pass over the base, one over what changed.

    A run that has changed may lead to a position that the base does not know; the base's own never
    does, so that its pass is right for every position but the changed ones.
    """
    if isinstance(runs, ShiftedRuns):
        return runs.own.drop(
            _fold_runs(runs.runs_of_slots, runs.other.spread(weights), fold, empty)
        )
    if not isinstance(runs, PatchedRuns):
        return fold(weights, runs.flat)
    known = fold(weights, runs.base.flat)
    total = np.full(runs.size, empty, dtype=known.dtype)
    total[: len(known)] = known
    total[runs.changed] = fold(weights, runs.changed_runs)
    return total


def best_along(forward: Side, ranks: IntArray, none: int, *, is_minimum: bool) -> IntArray:
    """The least (or greatest) rank of the children of each parent, `none` without any."""
    update = np.minimum if is_minimum else np.maximum
    return _fold_runs(forward(), ranks, partial(_segments, update, none), none)


def scatter_sums(positions: IntArray, weights: AnyArray, size: int) -> AnyArray:
    """Sum the weights of each position."""
    if weights.dtype.kind == "b":
        return np.bincount(positions[weights], minlength=size)
    if weights.dtype.kind == "f":
        return np.bincount(positions, weights, size)
    if float(np.max(weights, initial=0)) * len(weights) < _EXACT_IN_DOUBLE:
        return np.bincount(positions, weights, size).astype(np.int64)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, positions, weights)
    return total


def best_of(
    positions: IntArray, ranks: IntArray, size: int, none: int, *, is_minimum: bool
) -> IntArray:
    """The least (or greatest) rank of each position, `none` without any."""
    best = np.full(size, none, dtype=ranks.dtype)
    (np.minimum if is_minimum else np.maximum).at(best, positions, ranks)
    return best


def _segments(update: np.ufunc, empty: float, weights: AnyArray, csr: Csr) -> AnyArray:
    """Fold each run on its own: differences of a running sum would carry rounding across runs."""
    has_neighbour = np.flatnonzero(csr.has_neighbour)
    total = np.full(csr.size, empty, dtype=weights.dtype)
    if len(has_neighbour):
        values = weights[csr.targets]
        total[has_neighbour] = update.reduceat(values, csr.offsets[has_neighbour])
    return total


def starts_per_pass(csr: Runs, pairs: int, most: int | None) -> int:
    """From how many starts to search at once, at most `most` hops far.

    So many that the nodes of all of them are `pairs` at most, and so are, about, the edges that
    one level looks at: all edges for each start when the search goes far.
    """
    edges = csr.count
    if most is not None:
        edges = min(edges, int((csr.count / max(csr.size, 1) + 1) ** min(most, 10)))
    return max(1, pairs // max(csr.size, edges, 1))


def walk(
    csr: Runs,
    starts: IntArray,
    hops: tuple[int, int],
    loops: BoolArray,
    *,
    loop_at_start: bool,
    look_at: LookAt = lambda _: None,
) -> tuple[IntArray, IntArray]:
    """Return (row in `starts`, node) for nodes whose shortest distance lies within `hops`.

    A node is visited once per row. A loop adds one pair: a node one hop short of the bounds that
    has a loop reaches itself. Seen from the other end of the walk (`loop_at_start`), it is the
    starting node whose loop counts.
    """
    if len(starts) == 1:
        nodes = _walk_one(csr, starts, hops, loops, loop_at_start, look_at)
        return np.zeros(len(nodes), dtype=np.int64), nodes
    rows_per_pass = starts_per_pass(csr, _VISITED_BYTES, hops[1])
    found: list[tuple[IntArray, IntArray]] = []
    count = 0
    for first in range(0, len(starts), rows_per_pass):
        some = starts[first : first + rows_per_pass]
        found.append(_walk_some(csr, some, first, hops, loops, loop_at_start, look_at))
        count += len(found[-1][0])
        require_room(count, WALKS)
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate([rows for rows, _ in found]), np.concatenate([node for _, node in found])


def _walk_one(
    csr: Runs,
    start: IntArray,
    hops: tuple[int, int],
    loops: BoolArray,
    loop_at_start: bool,
    look_at: LookAt,
) -> IntArray:
    """The nodes of a walk from one position: the common case, without a row number per node."""
    least, most = hops
    nodes = start
    visited = np.zeros(csr.size, dtype=bool)
    visited[start] = True
    found: list[IntArray] = []
    for distance in range(1, most + 1):
        if distance == least:
            if loop_at_start:
                found.append(nodes if loops[start[0]] else nodes[:0])
            else:
                found.append(nodes[loops[nodes]])
        _, entries = expand(csr, nodes)
        look_at(max(len(entries), LEVEL_EFFORT))
        reached = csr.neighbours(entries)
        nodes = sort_distinct(reached[~visited[reached]])
        if len(nodes) == 0:
            break
        visited[nodes] = True
        if distance >= least:
            found.append(nodes)
    return np.concatenate(found) if found else start[:0]


def _walk_some(
    csr: Runs,
    starts: IntArray,
    first_row: int,
    hops: tuple[int, int],
    loops: BoolArray,
    loop_at_start: bool,
    look_at: LookAt,
) -> tuple[IntArray, IntArray]:
    size = csr.size
    least, most = hops
    rows, nodes = np.arange(len(starts)), starts
    visited = np.zeros(len(starts) * size, dtype=bool)
    visited[rows * size + nodes] = True
    found: list[tuple[IntArray, IntArray]] = []
    distance = 0
    while len(nodes) and distance < most:
        if distance == least - 1:
            looping = loops[starts[rows] if loop_at_start else nodes]
            found.append((rows[looping], nodes[looping]))
        distance += 1
        which, entries = expand(csr, nodes)
        look_at(max(len(entries), LEVEL_EFFORT))
        keys = rows[which] * size + csr.neighbours(entries)
        keys = sort_distinct(keys[~visited[keys]])
        visited[keys] = True
        rows, nodes = np.divmod(keys, size)
        if distance >= least:
            found.append((rows, nodes))
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    all_rows = np.concatenate([pair[0] for pair in found])
    return all_rows + first_row, np.concatenate([pair[1] for pair in found])
