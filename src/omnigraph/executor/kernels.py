"""Kernels: expansion, messages and hop-bounded walks as plain functions over arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from omnigraph.index.adjacency import Csr
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray, sorted_distinct
from omnigraph.index.live import Live

_EXACT_IN_DOUBLE = 2**53
_VISITED_BYTES = 1 << 25
"""How large the table of visited (row, node) pairs may get before sources are split."""


def expand(csr: Csr, sources: IntArray) -> tuple[IntArray, IntArray]:
    """Return (row in `sources`, place in `csr.targets`) for every edge that leaves `sources`.

    Rows keep the order of `sources`; the edges of one row keep the order of the CSR.
    """
    if csr.is_function:
        return np.arange(len(sources)), sources
    return expand_runs(csr.offsets[sources], csr.offsets[sources + 1])


def expand_runs(starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Return (run, place) for every place of the runs `starts[i]:ends[i]`."""
    counts = ends - starts
    rows = np.repeat(np.arange(len(counts)), counts)
    # Where each place sits: its place overall, moved to where its own run starts.
    moved = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return rows, moved + np.arange(len(rows))


def runs_between(csr: Csr, sources: IntArray, targets: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the edges from each source to its target start and end in the CSR."""
    starts, ends = csr.offsets[sources], csr.offsets[sources + 1]
    return (
        _bisect(csr.targets, starts, ends, targets),
        _bisect(csr.targets, starts, ends, targets + 1),
    )


def _bisect(values: IntArray, lows: IntArray, highs: IntArray, wanted: IntArray) -> IntArray:
    """The first place in each ascending run whose value is at least the wanted one."""
    lows, highs = lows.copy(), highs.copy()
    while True:
        active = np.flatnonzero(lows < highs)
        if len(active) == 0:
            return lows
        middle = (lows[active] + highs[active]) // 2
        is_below = values[middle] < wanted[active]
        lows[active[is_below]] = middle[is_below] + 1
        highs[active[~is_below]] = middle[~is_below]


Side: TypeAlias = Callable[[], Csr]
"""One side of a relation, made only if it is asked for."""


def reach(forward: Side, backward: Side, parents: Live, children: Live) -> Live:
    """The parents with an edge to one of the children. `backward` is keyed by child."""
    if children.is_all:
        csr = forward()
        return parents if csr.is_total else parents.meet(Live(csr.size, mask=csr.occupied))
    if not parents.is_all and parents.count <= children.count:
        return _reach_from_parents(forward(), parents, children)
    csr = backward()
    edges = int(csr.degree[children.positions()].sum())
    if not parents.is_all and int(forward().degree[parents.positions()].sum()) < edges:
        return _reach_from_parents(forward(), parents, children)
    _, places = expand(csr, children.positions())
    mask = np.zeros(parents.size, dtype=bool)
    mask[csr.targets[places]] = True
    return parents.meet(Live(parents.size, mask=mask))


def _reach_from_parents(forward: Csr, parents: Live, children: Live) -> Live:
    positions = parents.positions()
    rows, places = expand(forward, positions)
    hits = children.mask()[forward.targets[places]]
    found = np.zeros(len(positions), dtype=bool)
    found[rows[hits]] = True
    return Live(parents.size, positions=positions[found])


def sum_along(forward: Side, backward: Side, weights: AnyArray, size: int) -> AnyArray:
    """Sum the children's weights over the edges of each parent. `backward` is keyed by child.

    Whole weights are summed as integers, so counts are exact; others as doubles.
    """
    below = backward()
    if below.is_function:
        return _scattered(below.targets, weights, size)
    live = np.flatnonzero(weights)
    edges = int(below.degree[live].sum())
    if edges * 4 < len(below.targets):
        rows, places = expand(below, live)
        return _scattered(below.targets[places], weights[live][rows], size)
    above = forward()
    gathered = weights[above.targets]
    if gathered.dtype.kind == "f":
        return _segment_sums(gathered, above)
    sums = np.zeros(len(gathered) + 1, dtype=np.int64)
    np.cumsum(gathered, out=sums[1:])
    return sums[above.offsets[1:]] - sums[above.offsets[:-1]]


def _scattered(positions: IntArray, weights: AnyArray, size: int) -> AnyArray:
    if weights.dtype.kind == "b":
        return np.bincount(positions[weights], minlength=size)
    if weights.dtype.kind == "f":
        return np.bincount(positions, weights, size)
    if float(np.max(weights, initial=0)) * len(weights) < _EXACT_IN_DOUBLE:
        return np.bincount(positions, weights, size).astype(np.int64)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, positions, weights)
    return total


def _segment_sums(values: AnyArray, csr: Csr) -> AnyArray:
    """Sum each run on its own: differences of a running sum would carry rounding across runs."""
    occupied = np.flatnonzero(csr.occupied)
    total = np.zeros(csr.size)
    if len(occupied):
        total[occupied] = np.add.reduceat(values, csr.offsets[occupied])
    return total


def walk(
    csr: Csr, starts: IntArray, hops: tuple[int, int], loops: BoolArray, *, loop_at_start: bool
) -> tuple[IntArray, IntArray]:
    """Return (row in `starts`, node) for nodes whose shortest distance lies within `hops`.

    A node is visited once per row. A loop adds one pair: a node one hop short of the bounds that
    has a loop steps onto itself. Seen from the other end of the walk (`loop_at_start`), it is the
    starting node whose loop counts.
    """
    rows_at_once = max(1, _VISITED_BYTES // max(csr.size, 1))
    found = [
        _walk_some(csr, starts[first : first + rows_at_once], first, hops, loops, loop_at_start)
        for first in range(0, len(starts), rows_at_once)
    ]
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate([rows for rows, _ in found]), np.concatenate([node for _, node in found])


def _walk_some(
    csr: Csr,
    starts: IntArray,
    first_row: int,
    hops: tuple[int, int],
    loops: BoolArray,
    loop_at_start: bool,
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
        which, places = expand(csr, nodes)
        keys = rows[which] * size + csr.targets[places]
        keys = sorted_distinct(keys[~visited[keys]])
        visited[keys] = True
        rows, nodes = np.divmod(keys, size)
        if distance >= least:
            found.append((rows, nodes))
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    all_rows = np.concatenate([pair[0] for pair in found])
    return all_rows + first_row, np.concatenate([pair[1] for pair in found])
