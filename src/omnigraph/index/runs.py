"""Runs: for every position of one side, its neighbours on the other, sorted by position.

`Csr` is the plain form: one array of neighbours, and where in it each run starts. `FewRuns` has
few positions, pair by pair. `PatchedRuns` is a CSR of an earlier version with the runs that have
changed since, and `ShiftedRuns` one in which positions have moved as well. All answer alike.

    >>> few = FewRuns(np.array([0, 0, 2]), np.array([1, 2, 0]), None, size=3)
    >>> few.flat.offsets.tolist(), few.flat.targets.tolist()   # 0 → 1, 2;  1 → none;  2 → 0
    ([0, 2, 2, 3], [1, 2, 0])
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeAlias

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


class DenseRuns:
    """What follows from `size`, `count` and `has_neighbour` of runs that cover every position."""

    if TYPE_CHECKING:  # only there: a data class takes an inherited property for a default

        @property
        def size(self) -> int: ...

        @property
        def count(self) -> int: ...

        @property
        def has_neighbour(self) -> BoolArray: ...

    def with_neighbour(self) -> Selection:
        """The positions that have a neighbour."""
        return Selection(self.size, mask=None if self.is_total else self.has_neighbour)

    @cached_property
    def is_total(self) -> bool:
        """Whether every position has a neighbour."""
        return bool(self.has_neighbour.all())

    @cached_property
    def is_function(self) -> bool:
        """Whether every position has exactly one neighbour: edge `p` then belongs to `p`."""
        return self.count == self.size and self.is_total


class WholeRuns(DenseRuns):
    """Runs that are no patch of others: a `Csr`, or one that is saved (see `saved_runs.py`)."""

    if TYPE_CHECKING:

        @property
        def flat(self) -> Csr: ...

        @property
        def edges(self) -> IntArray | None: ...

        @property
        def rooms(self) -> tuple[Room, ...]: ...

        @property
        def only_targets(self) -> IntArray: ...

        @property
        def end(self) -> int: ...

        @property
        def degree(self) -> IntArray: ...

        @property
        def degree_max(self) -> int: ...

        @property
        def loops(self) -> BoolArray: ...

        @property
        def nbytes(self) -> int: ...

        def runs(self, positions: IntArray) -> tuple[IntArray, IntArray]: ...

        def neighbours(self, entries: IntArray) -> IntArray: ...


@dataclass(eq=False)
class Csr(WholeRuns):
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

    @cached_property
    def has_neighbour(self) -> BoolArray:
        """Whether a position has any neighbour."""
        return np.asarray(self.degree > 0)

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
class PatchedRuns(DenseRuns):
    """The same as a CSR of an earlier version, and the runs that have changed since.

    The run of position `changed[i]` are the entries `starts[i]` to `ends[i]`, which lie behind
    those of `base`, in rooms that versions share. All other positions have the run that they have
    there. The rooms begin with the entries of the base, or with entry `first` behind them.
    """

    base: WholeRuns
    size: int
    changed: IntArray
    starts: IntArray
    ends: IntArray
    rooms: tuple[Room, ...]
    length: int
    first: int = 0

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
        room = self.rooms[0].array
        if self.first == 0:
            return room[entries]
        is_new = entries >= self.first
        if not is_new.any():
            return self.base.neighbours(entries)
        found = np.empty(len(entries), dtype=np.int64)
        found[is_new] = room[entries[is_new] - self.first]
        found[~is_new] = self.base.neighbours(entries[~is_new])
        return found

    @property
    def end(self) -> int:
        return self.length

    def _base_runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        last = self.base.size
        if len(positions) and int(positions.max()) < last:
            return self.base.runs(positions)
        starts, ends = np.zeros((2, len(positions)), dtype=np.int64)
        is_known = positions < last
        starts[is_known], ends[is_known] = self.base.runs(positions[is_known])
        return starts, ends

    @cached_property
    def _all_runs(self) -> tuple[IntArray, IntArray]:
        offsets = self.base.flat.offsets
        return self._patch(offsets[:-1], self.starts), self._patch(offsets[1:], self.ends)

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
        return Csr(offsets, self.neighbours(entries), None)

    @cached_property
    def flat(self) -> Csr:
        """The same without a patch: all runs one after the other."""
        _, entries = expand_runs(*self._all_runs)
        offsets = np.concatenate([[0], np.cumsum(self.degree)])
        edges = None if self.edges is None else self.edges[entries]
        return with_room(Csr(offsets, self.neighbours(entries), edges))

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

    @cached_property
    def only_targets(self) -> IntArray:
        return self.neighbours(self._all_runs[0])

    @cached_property
    def loops(self) -> BoolArray:
        rows, entries = expand_runs(self.starts, self.ends)
        looping = np.zeros(len(self.changed), dtype=bool)
        looping[rows[self.neighbours(entries) == self.changed[rows]]] = True
        return self._patch(self.base.loops, looping)

    @property
    def nbytes(self) -> int:
        """Without the base and the rooms: versions share them."""
        return self.size * _PATCH_BYTES + len(self.changed) * 24


@dataclass(eq=False)
class ShiftedRuns(DenseRuns):
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
    def base(self) -> WholeRuns:
        return self.runs_of_slots.base

    def runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        return self.runs_of_slots.runs(self.own.to_slots(positions))

    def neighbours(self, entries: IntArray) -> IntArray:
        return self.other.to_positions(self.runs_of_slots.neighbours(entries))

    @property
    def end(self) -> int:
        return self.runs_of_slots.length

    @cached_property
    def flat(self) -> Csr:
        flat = self.runs_of_slots.flat
        offsets = np.concatenate([[0], np.cumsum(self.degree)])
        return with_room(Csr(offsets, self.other.to_positions(flat.targets), flat.edges))

    @cached_property
    def degree(self) -> IntArray:
        return self.own.drop(self.runs_of_slots.degree)

    @property
    def degree_max(self) -> int:
        return self.runs_of_slots.degree_max

    @cached_property
    def has_neighbour(self) -> BoolArray:
        return self.own.drop(self.runs_of_slots.has_neighbour)

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


StoredRuns: TypeAlias = WholeRuns | PatchedRuns | ShiftedRuns
Runs: TypeAlias = StoredRuns | FewRuns


def with_room(csr: Csr) -> Csr:
    """The same with space for the changed runs of later versions."""
    rooms = tuple(Room.of(each) for each in (csr.targets, csr.edges) if each is not None)
    edges = None if csr.edges is None else rooms[1].array[: csr.count]
    return Csr(csr.offsets, rooms[0].array[: csr.count], edges, rooms)
