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
from omnigraph.index.arrays import BoolArray, IntArray, sort_distinct
from omnigraph.index.selection import Selection

FEW = 4
"""Runs are few when there is less than one entry for this many positions."""


@dataclass(eq=False)
class Csr:
    """For each position: `targets[offsets[p]:offsets[p + 1]]`, ascending, and their edges."""

    offsets: IntArray
    targets: IntArray
    edges: IntArray | None

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
        edges = 0 if self.edges is None else self.edges.nbytes
        # The degrees are counted from the start: nearly every query needs them.
        return int(self.offsets.nbytes * 2 + self.size * 2 + self.targets.nbytes + edges)


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


Runs: TypeAlias = Csr | FewRuns


@dataclass(frozen=True, slots=True)
class Relation:
    """Pairs of positions, reachable from either side."""

    forward: Csr
    backward: Csr

    @property
    def nbytes(self) -> int:
        return self.forward.nbytes + self.backward.nbytes

    @property
    def sizes(self) -> tuple[int, int]:
        """How many positions the two sides have."""
        return self.forward.size, self.backward.size

    def side(self, *, source: bool) -> Csr:
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

    @property
    def nbytes(self) -> int:
        return int(self.sources.nbytes + self.targets.nbytes)


def build_distinct_relation(
    ends: Endpoints, sizes: tuple[int, int], *, both: bool = False
) -> Relation:
    """Each (source, target) once; with `both`, each edge also leads back."""
    sources, targets, _ = _list_edges(ends, both=both)
    source_size, target_size = sizes
    keys = sort_distinct(sources * target_size + targets)
    sources, targets = np.divmod(keys, max(target_size, 1))
    forward = _build_csr(sources, targets, None, source_size)
    if both:
        return Relation(forward, forward)
    swapped = np.sort(targets * source_size + sources)
    targets, sources = np.divmod(swapped, max(source_size, 1))
    return Relation(forward, _build_csr(targets, sources, None, target_size))


def build_edge_relation(ends: Endpoints, sizes: tuple[int, int], *, both: bool = False) -> Relation:
    """One entry per stored edge; with `both`, one each way, and a loop once."""
    sources, targets, edges = _list_edges(ends, both=both)
    source_size, target_size = sizes
    return Relation(
        _build_csr(*_sort_pairs(sources, targets, edges, target_size), source_size),
        _build_csr(*_sort_pairs(targets, sources, edges, source_size), target_size),
    )


def select_pairs(
    ends: Endpoints, sizes: tuple[int, int], keep: BoolArray, *, both: bool = False
) -> Pairs:
    """The same of the edges to keep only."""
    sources, targets, edges = _list_edges(ends, both=both)
    wanted = keep[edges]
    return Pairs(sources[wanted], targets[wanted], edges[wanted], sizes)


def _list_edges(ends: Endpoints, *, both: bool) -> tuple[IntArray, IntArray, IntArray]:
    """The whole edges as (source, target, edge), plus the way back of each but loops."""
    whole = np.flatnonzero((ends.sources >= 0) & (ends.targets >= 0))
    sources, targets = ends.sources[whole], ends.targets[whole]
    if not both:
        return sources, targets, whole
    back = sources != targets
    return (
        np.concatenate([sources, targets[back]]),
        np.concatenate([targets, sources[back]]),
        np.concatenate([whole, whole[back]]),
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
