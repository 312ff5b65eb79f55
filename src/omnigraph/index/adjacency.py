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

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import BoolArray, IntArray, sort_distinct
from omnigraph.index.background import may_give_up
from omnigraph.index.rooms import Room
from omnigraph.index.runs import FEW, Csr, FewRuns, Runs, StoredRuns, WholeRuns, with_room
from omnigraph.index.shifts import Shift


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
        patches = [each.nbytes for each in self._sides if not isinstance(each, WholeRuns)]
        return sum(patches) + self.recounted.nbytes

    @property
    def shared(self) -> tuple[WholeRuns | Room | Counts, ...]:
        parts: list[WholeRuns | Room | Counts] = [self.parallel]
        for side in self._sides:
            base = side if isinstance(side, WholeRuns) else side.base
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

    def distinct(self) -> Pairs:
        """Each pair once."""
        sources, targets = unpack(sort_distinct(pack(self._sources, self._targets)))
        return Pairs(sources, targets, None, self.sizes)

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
    may_give_up()
    sources, targets, _ = list_edges(ends, both=both)
    source_size, target_size = sizes
    keys, parallel = _count_pairs(pack(sources, targets))
    sources, targets = unpack(keys)
    forward = with_room(_build_csr(sources, targets, None, source_size))
    if both:
        return Relation(forward, forward, ends.count_dangling(), parallel)
    may_give_up()
    targets, sources = unpack(np.sort(pack(targets, sources)))
    backward = with_room(_build_csr(targets, sources, None, target_size))
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
        with_room(_build_csr(*_sort_pairs(sources, targets, edges, target_size), source_size)),
        with_room(_build_csr(*_sort_pairs(targets, sources, edges, source_size), target_size)),
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
