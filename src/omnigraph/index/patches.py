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
    >>> stay = Moves(np.array([], dtype=int), np.array([], dtype=int), kept=3)
    >>> after = patch_distinct(before, (4, 4), EdgeChanges(come, gone), (stay, stay), both=False)
    >>> forward = after.forward
    >>> targets = forward.neighbours(np.arange(forward.end))
    >>> forward.changed.tolist(), targets.tolist(), forward.degree.tolist()
    ([1, 2], [1, 2, 1, 3], [2, 1, 0, 0])

A node that is written again has a new position, and so have those behind the old one. Runs are
therefore kept by slot, which is what positions were when the base was built, and seen through a
shift. The pairs of such a node move to its new slot.

When the rooms are full, or many runs have changed, all runs are laid out anew: a copy, no sorting.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.adjacency import NO_COUNTS, Endpoints, Relation, list_edges, pack, unpack
from omnigraph.index.arrays import IntArray, expand_runs, sort_distinct
from omnigraph.index.rooms import Room
from omnigraph.index.runs import Csr, PatchedRuns, ShiftedRuns, StoredRuns, WholeRuns
from omnigraph.index.shifts import NO_SHIFT, Shift

CHANGED_RUNS_MAX = 16_384
"""How many runs are patched before all are laid out anew."""
_NONE: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Nodes of one table that lost their position: where the `removed` stood, ascending.

    `again` says which of the added nodes each of them is now, -1 for none. `kept` have stayed.
    """

    removed: IntArray
    again: IntArray
    kept: int


@dataclass(frozen=True, slots=True, eq=False)
class EdgeChanges:
    """The ends of edges that came, and of those that went; as positions of the later version.

    Edges that went with a node have no such ends: of them only the number of pairs is known.
    """

    come: Endpoints
    gone: Endpoints
    pairs_lost: int = 0


def patch_distinct(
    relation: Relation,
    sizes: tuple[int, int],
    changes: EdgeChanges,
    moves: tuple[Moves, Moves],
    *,
    both: bool,
) -> Relation | None:
    """The relation with and without some edges, and with some nodes elsewhere, or gone.

    No edge may lead nowhere before. None when one would afterwards, or when the relation never had
    what goes: it is then built anew.
    """
    before = _by_slots(relation)
    dead = before.sources.to_slots(moves[0].removed), before.targets.to_slots(moves[1].removed)
    slots = before.forward.size, before.backward.size
    after = _Slots(
        _resize(before.forward, slots[0] + sizes[0] - moves[0].kept),
        _resize(before.backward, slots[1] + sizes[1] - moves[1].kept),
        before.sources.remove(dead[0]),
        before.targets.remove(dead[1]),
    )
    moving = _pairs_at(before, dead)
    numbers = _count_edges(relation, after.forward, moving)
    ends = unpack(moving)
    now = (
        _move(ends[0], dead[0], moves[0].again, slots[0]),
        _move(ends[1], dead[1], moves[1].again, slots[1]),
    )
    stays = (now[0] >= 0) & (now[1] >= 0)
    if int(numbers[~stays].sum()) != changes.pairs_lost:
        return None
    moved = np.repeat(pack(now[0][stays], now[1][stays]), numbers[stays])
    come = np.concatenate([after.pairs_of(changes.come, both), moved])
    gone = np.concatenate([after.pairs_of(changes.gone, both), np.repeat(moving, numbers)])
    return _patch_pairs(relation, after, come, gone, both)


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    """Both sides of a relation by slot, and the slots that are gone."""

    forward: PatchedRuns
    backward: PatchedRuns
    sources: Shift
    targets: Shift

    def pairs_of(self, ends: Endpoints, both: bool) -> IntArray:
        sources, targets, _ = list_edges(ends, both=both)
        return pack(self.sources.to_slots(sources), self.targets.to_slots(targets))


def _by_slots(relation: Relation) -> _Slots:
    forward, backward = relation.forward, relation.backward
    if isinstance(forward, ShiftedRuns) and isinstance(backward, ShiftedRuns):
        return _Slots(forward.runs_of_slots, backward.runs_of_slots, forward.own, forward.other)
    return _Slots(_as_patched(forward), _as_patched(backward), NO_SHIFT, NO_SHIFT)


def _pairs_at(sides: _Slots, dead: tuple[IntArray, IntArray]) -> IntArray:
    """The pairs with an end that is gone."""
    from_sources = _list_pairs(sides.forward, dead[0])
    return sort_distinct(
        np.concatenate([from_sources, _swap(_list_pairs(sides.backward, dead[1]))])
    )


def _list_pairs(side: PatchedRuns, positions: IntArray) -> IntArray:
    rows, entries = expand_runs(*side.runs(positions))
    return pack(positions[rows], side.neighbours(entries).astype(np.int64))


def _move(ends: IntArray, dead: IntArray, again: IntArray, size: int) -> IntArray:
    """The slots of the same nodes now, -1 for one that is gone; new slots count from `size`."""
    if len(dead) == 0:
        return ends
    at = np.minimum(np.searchsorted(dead, ends), len(dead) - 1)
    moved = np.where(again[at] >= 0, again[at] + size, -1)
    return np.where(dead[at] == ends, moved, ends)


def _patch_pairs(
    relation: Relation, sides: _Slots, come: IntArray, gone: IntArray, both: bool
) -> Relation | None:
    pairs, change = _net_change(come, gone)
    before = _count_edges(relation, sides.forward, pairs)
    after = before + change
    if np.any(after < 0):
        return None
    born, dead = pairs[(before == 0) & (after > 0)], pairs[(before > 0) & (after == 0)]
    forward = _patch_side(sides.forward, born, dead)
    backward = forward if both else _patch_side(sides.backward, _swap(born), _swap(dead))
    parallel, recounted = relation.parallel, relation.recounted
    is_told = (after > 1) | parallel.has(pairs) | recounted.has(pairs)
    if np.any(is_told):
        recounted = recounted.replace(pairs[is_told], after[is_told])
    if len(recounted.pairs) > CHANGED_RUNS_MAX:
        parallel, recounted = parallel.replace(recounted.pairs, recounted.numbers), NO_COUNTS
    sources, targets = sides.sources, sides.targets
    if len(sources.gone) == 0 and len(targets.gone) == 0:
        return Relation(forward, backward, 0, parallel, recounted)
    one = ShiftedRuns(_as_patched(forward), sources, targets)
    other = one if both else ShiftedRuns(_as_patched(backward), targets, sources)
    is_laid_out = isinstance(forward, WholeRuns) or isinstance(backward, WholeRuns)
    if is_laid_out or max(len(sources.gone), len(targets.gone)) > CHANGED_RUNS_MAX:
        counts = parallel.replace(recounted.pairs, recounted.numbers).shift(sources, targets)
        return Relation(one.flat, one.flat if both else other.flat, 0, counts)
    return Relation(one, other, 0, parallel, recounted)


def patch_edges(
    relation: Relation, sizes: tuple[int, int], come: Endpoints, first_edge: int, *, both: bool
) -> Relation:
    """The relation of stored edges with some more, at the positions from `first_edge` on."""
    sources, targets, edges = list_edges(come, both=both)
    edges = edges + first_edge
    forward = _resize(_as_patched(relation.forward), sizes[0])
    backward = _resize(_as_patched(relation.backward), sizes[1])
    return Relation(
        _patch_side(forward, pack(sources, targets), _NONE, edges),
        _patch_side(backward, pack(targets, sources), _NONE, edges),
    )


def _net_change(come: IntArray, gone: IntArray) -> tuple[IntArray, IntArray]:
    """Each pair that has more or fewer edges than before, ascending, and how many more."""
    pairs, index = np.unique(np.concatenate([come, gone]), return_inverse=True)
    change = np.bincount(index[: len(come)], minlength=len(pairs)) - np.bincount(
        index[len(come) :], minlength=len(pairs)
    )
    is_changed = change != 0
    return pairs[is_changed], change[is_changed]


def _count_edges(relation: Relation, forward: PatchedRuns, pairs: IntArray) -> IntArray:
    """How many edges of each pair there are."""
    there = _list_pairs(forward, sort_distinct(pairs >> 32))
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
    side: PatchedRuns, born: IntArray, dead: IntArray, edges: IntArray | None = None
) -> Csr | PatchedRuns:
    """The runs with some pairs more and some less; `edges` are those of the pairs more."""
    touched = sort_distinct(np.concatenate([born >> 32, dead >> 32]))
    if len(touched) == 0:
        return side
    rows, entries = expand_runs(*side.runs(touched))
    pairs = pack(touched[rows], side.neighbours(entries).astype(np.int64))
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
    length = side.length - side.first
    return tuple(room.append(length, each) for room, each in zip(side.rooms, added, strict=True))


def _as_patched(runs: StoredRuns) -> PatchedRuns:
    """The same runs, in a form that can be patched."""
    assert not isinstance(runs, ShiftedRuns)
    if isinstance(runs, PatchedRuns):
        return runs
    patch = PatchedRuns(runs, runs.size, _NONE, _NONE, _NONE, runs.rooms, runs.count)
    if isinstance(runs, Csr):
        return patch if runs.rooms else replace(patch, rooms=_make_rooms(runs))
    return replace(patch, rooms=(Room.empty(runs.count),), first=runs.count)


def _resize(side: PatchedRuns, size: int) -> PatchedRuns:
    return replace(side, size=size)


def _make_rooms(csr: Csr) -> tuple[Room, ...]:
    return tuple(Room.of(each) for each in (csr.targets, csr.edges) if each is not None)
