"""Blocks: ranges of vertices with their neighbours of one way, and functions mapped over them.

A function sees one block and some arrays with a number for every vertex, and gives a number for
each vertex of the block. Since a block has all edges of its vertices, nothing is left to combine.
A way is made when an algorithm first asks for it: most of them ask for one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.dataclass import dataclass

Numbers: TypeAlias = npt.NDArray[Any]
Step: TypeAlias = Callable[..., Numbers]


class Way(Enum):
    """Which neighbours a vertex has: those it leads to, those that lead to it, or both."""

    OUTGOING = "outgoing"
    INCOMING = "incoming"
    NEIGHBOURS = "neighbours"
    """Without loops."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Edges by `near`, then by `far`; each once."""

    near: Numbers
    far: Numbers

    def count(self, size: int) -> Numbers:
        """How many edges each vertex has, if `near` counts from 0 to `size`."""
        return np.bincount(self.near, minlength=size)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Vertices `first` to `last`, without it. `near` of its pairs counts from `first`."""

    first: int
    last: int
    pairs: Pairs

    @property
    def size(self) -> int:
        return self.last - self.first

    def own(self, numbers: Numbers) -> Numbers:
        """The numbers of the vertices of the block."""
        own: Numbers = numbers[self.first : self.last]
        return own


class Blocks(Protocol):
    """All vertices of a graph."""

    @property
    def size(self) -> int: ...

    def map(self, way: Way, step: Step, *state: Numbers) -> Numbers:
        """What the function gives for every vertex, from blocks with the neighbours of one way."""
        ...

    def count_triangles(self) -> Numbers:
        """In how many triangles each vertex is, whichever way the edges lead."""
        ...


class OneBlock:
    """A graph that is one block, in this process. Edges are in any order, as often as they are."""

    def __init__(self, size: int, source: Numbers, target: Numbers) -> None:
        self._size = size
        self._ends = (source, target)
        self._made: dict[Way, Block] = {}

    @property
    def size(self) -> int:
        return self._size

    def map(self, way: Way, step: Step, *state: Numbers) -> Numbers:
        return step(self._block(way), *state)

    def count_triangles(self) -> Numbers:
        from omnigraph.algorithms.counts import count_triangles

        return count_triangles(self._block(Way.NEIGHBOURS).pairs, self._size)

    def _block(self, way: Way) -> Block:
        if way not in self._made:
            self._made[way] = make_block(0, self._size, *turn(way, *self._ends))
        return self._made[way]


def turn(way: Way, source: Numbers, target: Numbers) -> tuple[Numbers, Numbers]:
    """Edges as a vertex and its neighbour."""
    match way:
        case Way.OUTGOING:
            return source, target
        case Way.INCOMING:
            return target, source
        case Way.NEIGHBOURS:
            others = source != target
            ends = (source[others], target[others])
            return np.concatenate(ends), np.concatenate(ends[::-1])


def make_block(first: int, last: int, near: Numbers, far: Numbers) -> Block:
    """A block of all edges of its vertices, in any order, as often as there are.

    Both ends are vertices of the whole graph.
    """
    width = int(far.max(initial=0)) + 1
    keys = np.unique((near.astype(np.int64) - first) * width + far)
    return Block(first, last, Pairs(*np.divmod(keys, width)))
