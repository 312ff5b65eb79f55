"""Patches: a relation of an earlier version, brought up to date by the edges that changed.

Only the runs of their ends are made anew, behind those that are there; every other run is shared
with the earlier version. Two edges of the same pair are one neighbour, so that an edge that goes
takes its pair along only if no other edge has it. Of 0 → 1, 0 → 2 and 2 → 1, the last goes and
1 → 3 comes, which is a new position:

    >>> from omnigraph.index.adjacency import build_distinct_relation
    >>> ends = Endpoints(np.array([0, 0, 2]), np.array([1, 2, 1]))
    >>> before = build_distinct_relation(ends, (3, 3))
    >>> come = Endpoints(np.array([1]), np.array([3]))
    >>> gone = Endpoints(np.array([2]), np.array([1]))
    >>> after = patch_distinct(before, (4, 4), come, gone, both=False)
    >>> forward = after.forward
    >>> forward.changed.tolist(), forward.targets.tolist(), forward.degree.tolist()
    ([1, 2], [1, 2, 1, 3], [2, 1, 0, 0])

When the rooms are full, or many runs have changed, all runs are laid out anew: a copy, no sorting.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omnigraph.index.adjacency import (
    NO_COUNTS,
    Csr,
    Endpoints,
    PatchedRuns,
    Relation,
    StoredRuns,
    list_edges,
    pack,
    unpack,
)
from omnigraph.index.arrays import IntArray, expand_runs, sort_distinct
from omnigraph.index.rooms import Room

CHANGED_RUNS_MAX = 16_384
"""How many runs are patched before all are laid out anew."""
_NONE: IntArray = np.empty(0, dtype=np.int64)


def patch_distinct(
    relation: Relation, sizes: tuple[int, int], come: Endpoints, gone: Endpoints, *, both: bool
) -> Relation | None:
    """The relation with and without some edges; None when it never had those that go.

    No edge may lead nowhere, before or after.
    """
    pairs, change = _net_change(_pairs_of(come, both), _pairs_of(gone, both))
    before = _count_edges(relation, sizes[0], pairs)
    after = before + change
    if np.any(after < 0):
        return None
    born, dead = pairs[(before == 0) & (after > 0)], pairs[(before > 0) & (after == 0)]
    forward = _patch_side(relation.forward, sizes[0], born, dead)
    backward = forward
    if not both:
        backward = _patch_side(relation.backward, sizes[1], _swap(born), _swap(dead))
    parallel, recounted = relation.parallel, relation.recounted
    is_told = (after > 1) | parallel.has(pairs) | recounted.has(pairs)
    if np.any(is_told):
        recounted = recounted.replace(pairs[is_told], after[is_told])
    if len(recounted.pairs) > CHANGED_RUNS_MAX:
        parallel, recounted = parallel.replace(recounted.pairs, recounted.numbers), NO_COUNTS
    return Relation(forward, backward, 0, parallel, recounted)


def patch_edges(
    relation: Relation, sizes: tuple[int, int], come: Endpoints, first_edge: int, *, both: bool
) -> Relation:
    """The relation of stored edges with some more, at the positions from `first_edge` on."""
    sources, targets, edges = list_edges(come, both=both)
    edges = edges + first_edge
    return Relation(
        _patch_side(relation.forward, sizes[0], pack(sources, targets), _NONE, edges),
        _patch_side(relation.backward, sizes[1], pack(targets, sources), _NONE, edges),
    )


def _pairs_of(ends: Endpoints, both: bool) -> IntArray:
    sources, targets, _ = list_edges(ends, both=both)
    return pack(sources, targets)


def _net_change(come: IntArray, gone: IntArray) -> tuple[IntArray, IntArray]:
    """Each pair that has more or fewer edges than before, ascending, and how many more."""
    pairs, index = np.unique(np.concatenate([come, gone]), return_inverse=True)
    change = np.bincount(index[: len(come)], minlength=len(pairs)) - np.bincount(
        index[len(come) :], minlength=len(pairs)
    )
    is_changed = change != 0
    return pairs[is_changed], change[is_changed]


def _count_edges(relation: Relation, size: int, pairs: IntArray) -> IntArray:
    """How many edges of each pair there are."""
    sources, _ = unpack(pairs)
    side = _as_patched(relation.forward, size)
    at = sort_distinct(sources)
    rows, entries = expand_runs(*side.runs(at))
    there = pack(at[rows], side.targets[entries].astype(np.int64))
    numbers = np.isin(pairs, there).astype(np.int64)
    is_there = np.flatnonzero(numbers)
    known = numbers[is_there]
    relation.parallel.put(known, pairs[is_there])
    relation.recounted.put(known, pairs[is_there])
    numbers[is_there] = known
    return numbers


def _swap(pairs: IntArray) -> IntArray:
    sources, targets = unpack(pairs)
    return pack(targets, sources)


def _patch_side(
    runs: StoredRuns, size: int, born: IntArray, dead: IntArray, edges: IntArray | None = None
) -> StoredRuns:
    """The runs with some pairs more and some less; `edges` are those of the pairs more."""
    side = _as_patched(runs, size)
    touched = sort_distinct(np.concatenate([born >> 32, dead >> 32]))
    if len(touched) == 0:
        return side
    rows, entries = expand_runs(*side.runs(touched))
    pairs = pack(touched[rows], side.targets[entries].astype(np.int64))
    stays = ~np.isin(pairs, dead)
    pairs = np.concatenate([pairs[stays], born])
    # Stable: of the same pair, the edges that come last stand last.
    order = np.argsort(pairs, kind="stable")
    sources, targets = unpack(pairs[order])
    added = [targets]
    if side.edges is not None and edges is not None:
        added.append(np.concatenate([side.edges[entries[stays]], edges])[order])
    others = ~np.isin(side.changed, touched)
    changed = np.concatenate([side.changed[others], touched])
    starts = side.length + np.searchsorted(sources, touched, side="left")
    ends = side.length + np.searchsorted(sources, touched, side="right")
    order = np.argsort(changed)
    patched = replace(
        side,
        changed=changed[order],
        starts=np.concatenate([side.starts[others], starts])[order],
        ends=np.concatenate([side.ends[others], ends])[order],
        rooms=_append(side, added),
        length=side.length + len(targets),
    )
    is_moved = patched.rooms[0] is not side.rooms[0]
    return patched.flat if is_moved or len(changed) > CHANGED_RUNS_MAX else patched


def _append(side: PatchedRuns, added: list[IntArray]) -> tuple[Room, ...]:
    return tuple(
        room.append(side.length, each) for room, each in zip(side.rooms, added, strict=True)
    )


def _as_patched(runs: StoredRuns, size: int) -> PatchedRuns:
    """The same runs, of so many positions."""
    if isinstance(runs, PatchedRuns):
        return replace(runs, size=size)
    rooms = runs.rooms or _make_rooms(runs)
    return PatchedRuns(runs, size, _NONE, _NONE, _NONE, rooms, runs.count)


def _make_rooms(csr: Csr) -> tuple[Room, ...]:
    return tuple(Room.of(each) for each in (csr.targets, csr.edges) if each is not None)
