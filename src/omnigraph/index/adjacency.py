"""Adjacency: the edges of one table as arrays of node positions, in both directions.

`Csr` holds, for every position, a run of neighbours sorted by position. A distinct relation has
each neighbour once, which is what an unbound traversal means; a relation of stored edges keeps
parallel edges apart and says which edge each neighbour came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omnigraph.index.arrays import BoolArray, IntArray, sorted_distinct


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


@dataclass(frozen=True, slots=True)
class Relation:
    """Pairs of positions, reachable from either side."""

    forward: Csr
    backward: Csr

    @property
    def nbytes(self) -> int:
        return self.forward.nbytes + self.backward.nbytes

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
        self._sizes = sizes

    @cached_property
    def forward(self) -> Csr:
        return _sorted_csr(self._sources, self._targets, self._edges, *self._sizes)

    @cached_property
    def backward(self) -> Csr:
        source_size, target_size = self._sizes
        return _sorted_csr(self._targets, self._sources, self._edges, target_size, source_size)

    def keyed_by(self, *, source: bool) -> Csr:
        return self.forward if source else self.backward

    def reversed(self) -> Pairs:
        source_size, target_size = self._sizes
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
    pairs = Pairs(*_edges_of(ends, both=both), sizes)
    return Relation(pairs.forward, pairs.backward)


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


def _sorted_csr(
    sources: IntArray, targets: IntArray, edges: IntArray | None, size: int, target_size: int
) -> Csr:
    keys = sources * max(target_size, 1) + targets
    if edges is None:
        sources, targets = np.divmod(np.sort(keys), max(target_size, 1))
        return _from_sorted(sources, targets, None, size)
    order = np.argsort(keys, kind="stable")
    return _from_sorted(sources[order], targets[order], edges[order], size)


def _from_sorted(sources: IntArray, targets: IntArray, edges: IntArray | None, size: int) -> Csr:
    offsets = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(sources, minlength=size), out=offsets[1:])
    return Csr(offsets, np.ascontiguousarray(targets), edges)
