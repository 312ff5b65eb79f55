"""Blocks: ranges of vertices with all of their neighbours, and functions mapped over them.

A function sees one block and some arrays with a number for every vertex, and gives a number for
each vertex of the block. Since a block has all edges of its vertices, nothing is left to combine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.dataclass import dataclass

Numbers: TypeAlias = npt.NDArray[Any]
Step: TypeAlias = Callable[..., Numbers]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Edges by `near`, counted from the first vertex of the block, then by `far`; each once."""

    near: Numbers
    far: Numbers

    def count(self, size: int) -> Numbers:
        """How many edges each vertex of the block has."""
        return np.bincount(self.near, minlength=size)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Vertices `first` to `last`, without it. `neighbours` are both ways, without loops."""

    first: int
    last: int
    incoming: Pairs
    outgoing: Pairs
    neighbours: Pairs

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

    def map(self, step: Step, *state: Numbers) -> Numbers:
        """What the function gives for every vertex."""
        ...

    def count_triangles(self) -> Numbers:
        """In how many triangles each vertex is, whichever way the edges lead."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class OneBlock:
    """A graph that is one block, in this process."""

    block: Block

    @property
    def size(self) -> int:
        return self.block.size

    def map(self, step: Step, *state: Numbers) -> Numbers:
        return step(self.block, *state)

    def count_triangles(self) -> Numbers:
        from omnigraph.algorithms.counts import count_triangles

        return count_triangles(self.block.neighbours, self.size)


def make_block(first: int, last: int, outgoing: Pairs, incoming: Pairs) -> Block:
    """A block of the edges that leave its vertices, and of those that reach them.

    Ends are vertices of the whole graph, in any order, as often as there are edges.
    """
    reaching, leaving = (_tidy(each.near - first, each.far) for each in (incoming, outgoing))
    near = np.concatenate([reaching.near, leaving.near])
    far = np.concatenate([reaching.far, leaving.far])
    others = near + first != far
    return Block(first, last, reaching, leaving, _tidy(near[others], far[others]))


def _tidy(near: Numbers, far: Numbers) -> Pairs:
    width = int(far.max(initial=0)) + 1
    keys = np.unique(near.astype(np.int64) * width + far)
    return Pairs(keys // width, keys % width)
