"""Adjacency: the edges of one table as arrays of node positions, in both directions.

`Csr` holds, for every position, a run of neighbours sorted by position. A distinct relation has
each neighbour once, which is what an unbound traversal means; an edge relation keeps parallel edges
apart and says which edge each neighbour came from. Of five edges, two of them parallel, one of
them without a source:

    >>> ends = Endpoints(np.array([0, 2, 0, 0, -1]), np.array([1, 0, 2, 1, 1]))
    >>> forward = build_distinct_relation(ends, (3, 3)).forward
    >>> forward.targets.tolist(), forward.offsets.tolist()   # 0 → 1, 2;  1 → none;  2 → 0
    ([1, 2, 0], [0, 2, 2, 3])
    >>> forward = build_edge_relation(ends, (3, 3)).forward
    >>> forward.targets.tolist(), forward.edges.tolist()     # edges 0 and 3 both lead 0 → 1
    ([1, 1, 2, 0], [0, 3, 2, 1])
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import AnyArray, BoolArray, IntArray, expand_runs, sort_distinct
from omnigraph.index.rooms import Room
from omnigraph.index.selection import Selection
from omnigraph.index.shifts import Shift

FEW = 4
"""Runs are few when there is less than one entry for this many positions."""
_PATCH_BYTES = 26
"""What a patched CSR comes to hold for each position: where runs start and end, and degrees."""


@dataclass(eq=False)
class Csr:
    """For each position: `targets[offsets[p]:offsets[p + 1]]`, ascending, and their edges.

    In `rooms`, when given, there is space for the changed runs of later versions.
    """

    offsets: IntArray
    targets: IntArray
    edges: IntArray | None
    rooms: tuple[Room, ...] = ()

    @property
    def flat(self) -> Csr:
        return self

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self.targets)

    @property
    def only_targets(self) -> IntArray:
        """The neighbour of every position, of a function."""
        return self.targets

    def neighbours(self, entries: IntArray) -> IntArray:
        """The neighbours at these entries."""
        return self.targets[entries]

    @property
    def end(self) -> int:
        """Every entry is below this."""
        return len(self.targets)

    @cached_property
    def degree(self) -> IntArray:
        return np.diff(self.offsets)

    @cached_property
    def degree_max(self) -> int:
        return int(np.max(self.degree, initial=0))

    def runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Where in `targets` the neighbours of each of these positions start and end."""
        return self.offsets[positions], self.offsets[positions + 1]

    def with_neighbour(self) -> Selection:
        """The positions that have a neighbour."""
        return Selection(self.size, mask=None if self.is_total else self.has_neighbour)

    @cached_property
    def has_neighbour(self) -> BoolArray:
        """Whether a position has any neighbour."""
        return np.asarray(self.degree > 0)

    @cached_property
    def is_total(self) -> bool:
        """Whether every position has a neighbour."""
        return bool(self.has_neighbour.all())

    @cached_property
    def is_function(self) -> bool:
        """Whether every position has exactly one neighbour: edge `p` then belongs to `p`."""
        return len(self.targets) == self.size and self.is_total

    @cached_property
    def loops(self) -> BoolArray:
        """Whether a position is its own neighbour."""
        looping = np.zeros(self.size, dtype=bool)
        sources = np.repeat(np.arange(self.size), self.degree)
        looping[sources[sources == self.targets]] = True
        return looping

    @property
    def size(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        entries = self.targets.nbytes + (0 if self.edges is None else self.edges.nbytes)
        if self.rooms:
            entries = sum(room.nbytes for room in self.rooms)
        # The degrees are counted from the start: nearly every query needs them.
        return int(self.offsets.nbytes * 2 + self.size * 2 + entries)


@dataclass(eq=False)
class FewRuns:
    """The same for a few positions only: `sources` and `targets` pair by pair, both ascending."""

    is_total: ClassVar = False
    is_function: ClassVar = False
    sources: IntArray
    targets: IntArray
    edges: IntArray | None
    size: int

    @cached_property
    def flat(self) -> Csr:
        return Csr(self.offsets, self.targets, self.edges)

    def neighbours(self, entries: IntArray) -> IntArray:
        return self.targets[entries]

    @property
    def end(self) -> int:
        return len(self.targets)

    @property
    def count(self) -> int:
        return len(self.targets)

    @cached_property
    def degree(self) -> IntArray:
        return np.bincount(self.sources, minlength=self.size)

    @cached_property
    def degree_max(self) -> int:
        return len(self.targets)

    @cached_property
    def offsets(self) -> IntArray:
        return np.concatenate([[0], np.cumsum(self.degree)])

    @cached_property
    def has_neighbour(self) -> BoolArray:
        return self.with_neighbour().mask()

    @cached_property
    def loops(self) -> BoolArray:
        looping = np.zeros(self.size, dtype=bool)
        looping[self.sources[self.sources == self.targets]] = True
        return looping

    def runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        return (
            np.searchsorted(self.sources, positions, side="left"),
            np.searchsorted(self.sources, positions, side="right"),
        )

    def with_neighbour(self) -> Selection:
        return Selection(self.size, positions=sort_distinct(self.sources))


@dataclass(eq=False)
class PatchedRuns:
    """The same as a CSR of an earlier version, and the runs that have changed since.

    The run of position `changed[i]` is `targets[starts[i]:ends[i]]`; it lies behind those of
    `base`, in rooms that versions share. All other positions have the run that they have there.
    """

    base: Csr
    size: int
    changed: IntArray
    starts: IntArray
    ends: IntArray
    rooms: tuple[Room, ...]
    length: int

    @property
    def targets(self) -> IntArray:
        return self.rooms[0].array[: self.length]

    @property
    def edges(self) -> IntArray | None:
        return None if self.base.edges is None else self.rooms[1].array[: self.length]

    def runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        if len(positions) * FEW > self.size:
            starts, ends = self._all_runs
            return starts[positions], ends[positions]
        starts, ends = self._base_runs(positions)
        if len(self.changed):
            at = np.minimum(np.searchsorted(self.changed, positions), len(self.changed) - 1)
            is_changed = self.changed[at] == positions
            at = at[is_changed]
            starts[is_changed], ends[is_changed] = self.starts[at], self.ends[at]
        return starts, ends

    def neighbours(self, entries: IntArray) -> IntArray:
        return self.rooms[0].array[entries]

    @property
    def end(self) -> int:
        return self.length

    def _base_runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        offsets, last = self.base.offsets, self.base.size
        return offsets[np.minimum(positions, last)], offsets[np.minimum(positions + 1, last)]

    @cached_property
    def _all_runs(self) -> tuple[IntArray, IntArray]:
        return (
            self._patch(self.base.offsets[:-1], self.starts),
            self._patch(self.base.offsets[1:], self.ends),
        )

    def _patch(self, known: AnyArray, changed: AnyArray) -> AnyArray:
        """One value per position: what the base knows, nothing for new ones, and what changed."""
        patched = np.zeros(self.size, dtype=known.dtype)
        patched[: len(known)] = known
        patched[self.changed] = changed
        return patched

    @cached_property
    def changed_runs(self) -> Csr:
        """The changed runs alone, one after the other."""
        _, entries = expand_runs(self.starts, self.ends)
        offsets = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        return Csr(offsets, self.targets[entries], None)

    @cached_property
    def flat(self) -> Csr:
        """The same without a patch: all runs one after the other."""
        _, entries = expand_runs(*self._all_runs)
        offsets = np.concatenate([[0], np.cumsum(self.degree)])
        edges = None if self.edges is None else self.edges[entries]
        return _with_room(Csr(offsets, self.targets[entries], edges))

    @cached_property
    def count(self) -> int:
        starts, ends = self._base_runs(self.changed)
        patched = int((self.ends - self.starts).sum())
        return self.base.count - int((ends - starts).sum()) + patched

    @cached_property
    def degree(self) -> IntArray:
        return self._patch(self.base.degree, self.ends - self.starts)

    @cached_property
    def degree_max(self) -> int:
        """At least the most neighbours of a position."""
        return max(self.base.degree_max, int(np.max(self.ends - self.starts, initial=0)))

    @cached_property
    def has_neighbour(self) -> BoolArray:
        return self._patch(self.base.has_neighbour, self.ends > self.starts)

    def with_neighbour(self) -> Selection:
        return Selection(self.size, mask=None if self.is_total else self.has_neighbour)

    @cached_property
    def is_total(self) -> bool:
        return bool(self.has_neighbour.all())

    @cached_property
    def is_function(self) -> bool:
        return self.count == self.size and self.is_total

    @cached_property
    def only_targets(self) -> IntArray:
        return self.targets[self._all_runs[0]]

    @cached_property
    def loops(self) -> BoolArray:
        rows, entries = expand_runs(self.starts, self.ends)
        looping = np.zeros(len(self.changed), dtype=bool)
        looping[rows[self.targets[entries] == self.changed[rows]]] = True
        return self._patch(self.base.loops, looping)

    @property
    def nbytes(self) -> int:
        """Without the base and the rooms: versions share them."""
        return self.size * _PATCH_BYTES + len(self.changed) * 24


@dataclass(eq=False)
class ShiftedRuns:
    """Runs of slots, seen as runs of positions: some rows of either side are gone since."""

    runs_of_slots: PatchedRuns
    own: Shift
    other: Shift

    @property
    def size(self) -> int:
        return self.runs_of_slots.size - len(self.own.gone)

    @property
    def count(self) -> int:
        return self.runs_of_slots.count

    @property
    def edges(self) -> IntArray | None:
        return self.runs_of_slots.edges

    @property
    def rooms(self) -> tuple[Room, ...]:
        return self.runs_of_slots.rooms

    @property
    def base(self) -> Csr:
        return self.runs_of_slots.base

    def runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        return self.runs_of_slots.runs(self.own.to_slots(positions))

    def neighbours(self, entries: IntArray) -> IntArray:
        return self.other.to_positions(self.runs_of_slots.neighbours(entries))

    @property
    def end(self) -> int:
        return self.runs_of_slots.length

    @cached_property
    def targets(self) -> IntArray:
        return self.other.to_positions(self.runs_of_slots.targets)

    @cached_property
    def flat(self) -> Csr:
        flat = self.runs_of_slots.flat
        offsets = np.concatenate([[0], np.cumsum(self.degree)])
        return _with_room(Csr(offsets, self.other.to_positions(flat.targets), flat.edges))

    @cached_property
    def degree(self) -> IntArray:
        return self.own.drop(self.runs_of_slots.degree)

    @property
    def degree_max(self) -> int:
        return self.runs_of_slots.degree_max

    @cached_property
    def has_neighbour(self) -> BoolArray:
        return self.own.drop(self.runs_of_slots.has_neighbour)

    def with_neighbour(self) -> Selection:
        return Selection(self.size, mask=None if self.is_total else self.has_neighbour)

    @cached_property
    def is_total(self) -> bool:
        return bool(self.has_neighbour.all())

    @cached_property
    def is_function(self) -> bool:
        return self.count == self.size and self.is_total

    @cached_property
    def only_targets(self) -> IntArray:
        return self.neighbours(self.runs(np.arange(self.size))[0])

    @cached_property
    def loops(self) -> BoolArray:
        return self.own.drop(self.runs_of_slots.loops)

    @property
    def nbytes(self) -> int:
        gone = self.own.gone.nbytes + self.other.gone.nbytes
        return self.runs_of_slots.nbytes + self.size * 2 * _PATCH_BYTES + int(gone)


StoredRuns: TypeAlias = Csr | PatchedRuns | ShiftedRuns
Runs: TypeAlias = StoredRuns | FewRuns


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many edges there are of a pair, by packed pair; of a pair that is not here, one."""

    pairs: IntArray
    numbers: IntArray

    @property
    def nbytes(self) -> int:
        return int(self.pairs.nbytes + self.numbers.nbytes)

    def has(self, pairs: IntArray) -> BoolArray:
        """Whether each of these pairs is here."""
        if len(self.pairs) == 0:
            return np.zeros(len(pairs), dtype=bool)
        at = np.minimum(np.searchsorted(self.pairs, pairs), len(self.pairs) - 1)
        return np.asarray(self.pairs[at] == pairs)

    def put(self, numbers: IntArray, pairs: IntArray) -> None:
        """Set the numbers of those pairs that are here."""
        is_known = self.has(pairs)
        numbers[is_known] = self.numbers[np.searchsorted(self.pairs, pairs[is_known])]

    def shift(self, sources: Shift, targets: Shift) -> Counts:
        """The same by the positions of slots; a pair with an end that is gone has no edge."""
        ends = unpack(self.pairs)
        is_left = ~(np.isin(ends[0], sources.gone) | np.isin(ends[1], targets.gone))
        pairs = pack(sources.to_positions(ends[0][is_left]), targets.to_positions(ends[1][is_left]))
        return Counts(pairs, self.numbers[is_left])

    def replace(self, pairs: IntArray, numbers: IntArray) -> Counts:
        """The same with other numbers for some pairs."""
        others = ~np.isin(self.pairs, pairs)
        pairs = np.concatenate([self.pairs[others], pairs])
        order = np.argsort(pairs)
        return Counts(pairs[order], np.concatenate([self.numbers[others], numbers])[order])


NO_COUNTS = Counts(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Relation:
    """Pairs of positions, reachable from either side.

    `parallel` counts the edges of the pairs that have several, and `recounted` those of pairs that
    have changed since. `dangling` edges lead nowhere, and are left out.
    """

    forward: StoredRuns
    backward: StoredRuns
    dangling: int = 0
    parallel: Counts = NO_COUNTS
    recounted: Counts = NO_COUNTS

    @property
    def nbytes(self) -> int:
        """Without what versions share."""
        patches = [each.nbytes for each in self._sides if not isinstance(each, Csr)]
        return sum(patches) + self.recounted.nbytes

    @property
    def shared(self) -> tuple[Csr | Room | Counts, ...]:
        parts: list[Csr | Room | Counts] = [self.parallel]
        for side in self._sides:
            base = side if isinstance(side, Csr) else side.base
            parts.append(base)
            parts += [room for room in side.rooms if room not in base.rooms]
        return tuple(parts)

    @property
    def _sides(self) -> tuple[StoredRuns, ...]:
        is_symmetric = self.forward is self.backward
        return (self.forward,) if is_symmetric else (self.forward, self.backward)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many positions the two sides have."""
        return self.forward.size, self.backward.size

    def side(self, *, source: bool) -> StoredRuns:
        """The runs of neighbours of the sources, or of the targets."""
        return self.forward if source else self.backward

    def reverse(self) -> Relation:
        return Relation(self.backward, self.forward)


@dataclass(eq=False)
class Pairs:
    """A relation made for one query: each side is sorted when it is first used."""

    _sources: IntArray
    _targets: IntArray
    _edges: IntArray | None
    sizes: tuple[int, int]

    @cached_property
    def forward(self) -> Runs:
        return _build_runs(self._sources, self._targets, self._edges, *self.sizes)

    @cached_property
    def backward(self) -> Runs:
        source_size, target_size = self.sizes
        return _build_runs(self._targets, self._sources, self._edges, target_size, source_size)

    def side(self, *, source: bool) -> Runs:
        return self.forward if source else self.backward

    def reverse(self) -> Pairs:
        source_size, target_size = self.sizes
        return Pairs(self._targets, self._sources, self._edges, (target_size, source_size))


@dataclass(frozen=True, slots=True, eq=False)
class Endpoints:
    """The positions of both ends of every stored edge, -1 for an end that is not there."""

    sources: IntArray
    targets: IntArray
    shared: tuple[Room, ...] = ()

    @property
    def nbytes(self) -> int:
        return 0 if self.shared else int(self.sources.nbytes + self.targets.nbytes)

    def count_dangling(self) -> int:
        """How many edges have an end that is not there."""
        return int(np.count_nonzero((self.sources < 0) | (self.targets < 0)))

    def append(self, more: Endpoints) -> Endpoints:
        """The ends with those of more edges after them."""
        rooms = self.shared or (Room.of(self.sources), Room.of(self.targets))
        length = len(self.sources)
        sources, targets = (
            rooms[0].append(length, more.sources),
            rooms[1].append(length, more.targets),
        )
        length += len(more.sources)
        return Endpoints(sources.array[:length], targets.array[:length], (sources, targets))


def build_distinct_relation(
    ends: Endpoints, sizes: tuple[int, int], *, both: bool = False
) -> Relation:
    """Each (source, target) once; with `both`, each edge also leads back."""
    sources, targets, _ = list_edges(ends, both=both)
    source_size, target_size = sizes
    keys, parallel = _count_pairs(pack(sources, targets))
    sources, targets = unpack(keys)
    forward = _with_room(_build_csr(sources, targets, None, source_size))
    if both:
        return Relation(forward, forward, ends.count_dangling(), parallel)
    targets, sources = unpack(np.sort(pack(targets, sources)))
    backward = _with_room(_build_csr(targets, sources, None, target_size))
    return Relation(forward, backward, ends.count_dangling(), parallel)


def _count_pairs(pairs: IntArray) -> tuple[IntArray, Counts]:
    """Each pair once, ascending, and how many there are of those that occur again."""
    pairs = np.sort(pairs)
    is_first = np.ones(len(pairs), dtype=bool)
    np.not_equal(pairs[1:], pairs[:-1], out=is_first[1:])
    distinct = pairs[is_first]
    if len(distinct) == len(pairs):
        return distinct, NO_COUNTS
    numbers = np.diff(np.append(np.flatnonzero(is_first), len(pairs)))
    is_parallel = numbers > 1
    return distinct, Counts(distinct[is_parallel], numbers[is_parallel])


def build_edge_relation(ends: Endpoints, sizes: tuple[int, int], *, both: bool = False) -> Relation:
    """One entry per stored edge; with `both`, one each way, and a loop once."""
    sources, targets, edges = list_edges(ends, both=both)
    source_size, target_size = sizes
    return Relation(
        _with_room(_build_csr(*_sort_pairs(sources, targets, edges, target_size), source_size)),
        _with_room(_build_csr(*_sort_pairs(targets, sources, edges, source_size), target_size)),
        ends.count_dangling(),
    )


def pack(sources: IntArray, targets: IntArray) -> IntArray:
    """A pair as one number, which sorts by source and then by target."""
    return (sources << 32) | targets


def unpack(pairs: IntArray) -> tuple[IntArray, IntArray]:
    return pairs >> 32, pairs & 0xFFFFFFFF


def select_pairs(
    ends: Endpoints, sizes: tuple[int, int], keep: BoolArray, *, both: bool = False
) -> Pairs:
    """The same of the edges to keep only."""
    sources, targets, edges = list_edges(ends, both=both)
    wanted = keep[edges]
    return Pairs(sources[wanted], targets[wanted], edges[wanted], sizes)


def list_edges(ends: Endpoints, *, both: bool) -> tuple[IntArray, IntArray, IntArray]:
    """The whole edges as (source, target, edge) by edge, each but loops with the way back."""
    whole = np.flatnonzero((ends.sources >= 0) & (ends.targets >= 0))
    sources, targets = ends.sources[whole], ends.targets[whole]
    if not both:
        return sources, targets, whole
    back = sources != targets
    edges = np.concatenate([whole, whole[back]])
    order = np.argsort(edges, kind="stable")
    return (
        np.concatenate([sources, targets[back]])[order],
        np.concatenate([targets, sources[back]])[order],
        edges[order],
    )


def _build_runs(
    sources: IntArray, targets: IntArray, edges: IntArray | None, size: int, target_size: int
) -> Runs:
    ordered = _sort_pairs(sources, targets, edges, target_size)
    if len(sources) * FEW < size:
        return FewRuns(*ordered, size)
    return _build_csr(*ordered, size)


def _sort_pairs(
    sources: IntArray, targets: IntArray, edges: IntArray | None, target_size: int
) -> tuple[IntArray, IntArray, IntArray | None]:
    """The same pairs, by source and then by target."""
    keys = sources * max(target_size, 1) + targets
    if edges is None:
        sources, targets = np.divmod(np.sort(keys), max(target_size, 1))
        return sources, targets, None
    order = np.argsort(keys, kind="stable")
    return sources[order], targets[order], edges[order]


def _build_csr(sources: IntArray, targets: IntArray, edges: IntArray | None, size: int) -> Csr:
    offsets = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(sources, minlength=size), out=offsets[1:])
    return Csr(offsets, np.ascontiguousarray(targets), edges)


def _with_room(csr: Csr) -> Csr:
    """The same with space for the changed runs of later versions."""
    rooms = tuple(Room.of(each) for each in (csr.targets, csr.edges) if each is not None)
    edges = None if csr.edges is None else rooms[1].array[: csr.count]
    return Csr(csr.offsets, rooms[0].array[: csr.count], edges, rooms)
