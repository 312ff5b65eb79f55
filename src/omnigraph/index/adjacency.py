"""Adjacency: the edges of one table as arrays of node positions, in both directions.

`Csr` holds, for every position, a run of neighbours sorted by position. A distinct relation has
each neighbour once, which is what an unbound traversal means; a relation of stored edges keeps
parallel edges apart and says which edge each neighbour came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from omnigraph.index.arrays import BoolArray, IntArray, sorted_distinct
from omnigraph.index.live import Live

_FEW = 4
"""Runs are few when there is less than one entry for this many positions."""


class Csr:
    """For each position: `targets[offsets[p]:offsets[p + 1]]`, ascending, and their edges."""

    def __init__(self, offsets: IntArray, targets: IntArray, edges: IntArray | None) -> None:
        self.offsets = offsets
        self.targets = targets
        self.edges = edges

    @cached_property
    def degree(self) -> IntArray:
        return np.diff(self.offsets)

    @cached_property
    def degree_max(self) -> int:
        return int(np.max(self.degree, initial=0))

    def runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Where in `targets` the neighbours of each of these positions start and end."""
        return self.offsets[positions], self.offsets[positions + 1]

    def holders(self) -> Live:
        """The positions that have a neighbour."""
        return Live(self.size) if self.is_total else Live(self.size, mask=self.occupied)

    @cached_property
    def occupied(self) -> BoolArray:
        """Whether a position has any neighbour."""
        return np.asarray(self.degree > 0)

    @cached_property
    def is_total(self) -> bool:
        """Whether every position has a neighbour."""
        return bool(self.occupied.all())

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
        # The degrees are counted from the start: nearly every query asks for them.
        return int(self.offsets.nbytes * 2 + self.size * 2 + self.targets.nbytes + edges)


class FewRuns:
    """The same for a few positions only: `sources` and `targets` pair by pair, both ascending."""

    is_total = False
    is_function = False

    def __init__(
        self, sources: IntArray, targets: IntArray, edges: IntArray | None, size: int
    ) -> None:
        self.sources = sources
        self.targets = targets
        self.edges = edges
        self.size = size

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
    def occupied(self) -> BoolArray:
        return self.holders().mask()

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

    def holders(self) -> Live:
        return Live(self.size, positions=sorted_distinct(self.sources))


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

    def keyed_by(self, *, source: bool) -> Csr:
        """The runs of neighbours of the sources, or of the targets."""
        return self.forward if source else self.backward

    def reversed(self) -> Relation:
        return Relation(self.backward, self.forward)


class Pairs:
    """A relation made for one query: each side is sorted when it is first asked for."""

    def __init__(
        self,
        sources: IntArray,
        targets: IntArray,
        edges: IntArray | None,
        sizes: tuple[int, int],
    ) -> None:
        self._sources = sources
        self._targets = targets
        self._edges = edges
        self.sizes = sizes

    @cached_property
    def forward(self) -> Runs:
        return _sorted_runs(self._sources, self._targets, self._edges, *self.sizes)

    @cached_property
    def backward(self) -> Runs:
        source_size, target_size = self.sizes
        return _sorted_runs(self._targets, self._sources, self._edges, target_size, source_size)

    def keyed_by(self, *, source: bool) -> Runs:
        return self.forward if source else self.backward

    def reversed(self) -> Pairs:
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


def distinct_relation(ends: Endpoints, sizes: tuple[int, int], *, both: bool = False) -> Relation:
    """Each (source, target) once; with `both`, each edge also leads back."""
    sources, targets, _ = _edges_of(ends, both=both)
    source_size, target_size = sizes
    keys = sorted_distinct(sources * target_size + targets)
    sources, targets = np.divmod(keys, max(target_size, 1))
    forward = _from_sorted(sources, targets, None, source_size)
    if both:
        return Relation(forward, forward)
    swapped = np.sort(targets * source_size + sources)
    targets, sources = np.divmod(swapped, max(source_size, 1))
    return Relation(forward, _from_sorted(targets, sources, None, target_size))


def stored_relation(ends: Endpoints, sizes: tuple[int, int], *, both: bool = False) -> Relation:
    """One entry per stored edge; with `both`, one each way, and a loop once."""
    sources, targets, edges = _edges_of(ends, both=both)
    source_size, target_size = sizes
    return Relation(
        _from_sorted(*_sorted(sources, targets, edges, target_size), source_size),
        _from_sorted(*_sorted(targets, sources, edges, source_size), target_size),
    )


def kept_pairs(
    ends: Endpoints, sizes: tuple[int, int], keep: BoolArray, *, both: bool = False
) -> Pairs:
    """The same of the edges to keep only."""
    sources, targets, edges = _edges_of(ends, both=both)
    wanted = keep[edges]
    return Pairs(sources[wanted], targets[wanted], edges[wanted], sizes)


def _edges_of(ends: Endpoints, *, both: bool) -> tuple[IntArray, IntArray, IntArray]:
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


def _sorted_runs(
    sources: IntArray, targets: IntArray, edges: IntArray | None, size: int, target_size: int
) -> Runs:
    ordered = _sorted(sources, targets, edges, target_size)
    if len(sources) * _FEW < size:
        return FewRuns(*ordered, size)
    return _from_sorted(*ordered, size)


def _sorted(
    sources: IntArray, targets: IntArray, edges: IntArray | None, target_size: int
) -> tuple[IntArray, IntArray, IntArray | None]:
    """The same pairs, by source and then by target."""
    keys = sources * max(target_size, 1) + targets
    if edges is None:
        sources, targets = np.divmod(np.sort(keys), max(target_size, 1))
        return sources, targets, None
    order = np.argsort(keys, kind="stable")
    return sources[order], targets[order], edges[order]


def _from_sorted(sources: IntArray, targets: IntArray, edges: IntArray | None, size: int) -> Csr:
    offsets = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(sources, minlength=size), out=offsets[1:])
    return Csr(offsets, np.ascontiguousarray(targets), edges)
