"""Adjacency: the edges of one table as arrays of node positions, in both directions.

`Csr` holds, for every position, a run of neighbours sorted by position. A distinct relation has
each neighbour once, which is what an unbound traversal means; a relation of stored edges keeps
parallel edges apart and says which edge each neighbour came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omnigraph.index.columns import BoolArray, IntArray


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

    def reversed(self) -> Relation:
        return Relation(self.backward, self.forward)


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
    keys = np.unique(sources * target_size + targets)
    sources, targets = np.divmod(keys, max(target_size, 1))
    forward = _from_sorted(sources, targets, None, source_size)
    if both:
        return Relation(forward, forward)
    swapped = np.sort(targets * source_size + sources)
    targets, sources = np.divmod(swapped, max(source_size, 1))
    return Relation(forward, _from_sorted(targets, sources, None, target_size))


def stored_relation(
    ends: Endpoints, sizes: tuple[int, int], *, both: bool = False, keep: BoolArray | None = None
) -> Relation:
    """One entry per stored edge (of those to `keep`); with `both`, one each way, a loop once."""
    sources, targets, edges = _edges_of(ends, both=both)
    if keep is not None:
        wanted = keep[edges]
        sources, targets, edges = sources[wanted], targets[wanted], edges[wanted]
    return pair_relation(sources, targets, edges, sizes)


def pair_relation(
    sources: IntArray, targets: IntArray, edges: IntArray | None, sizes: tuple[int, int]
) -> Relation:
    """The relation of these pairs, repeated as they are given."""
    return Relation(
        _sorted_csr(sources, targets, edges, sizes[0], sizes[1]),
        _sorted_csr(targets, sources, edges, sizes[1], sizes[0]),
    )


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
