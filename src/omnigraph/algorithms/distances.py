"""Distances: how many hops each node is from the nearest of a set."""

from __future__ import annotations

import numpy as np

from omnigraph.algorithms.blocks import Block, Blocks, Numbers

NOT_REACHED = -1


def find_distances(
    blocks: Blocks, *, starts: Numbers, direction: str = "out", max_hops: int | None = None
) -> dict[str, Numbers]:
    """Hops from the nearest start, -1 where none leads. `direction` is `out`, `in` or `both`."""
    distance = np.full(blocks.size, NOT_REACHED, dtype=np.int64)
    distance[starts] = 0
    frontier = distance == 0
    step = _STEPS[direction]
    hops = 0
    while frontier.any() and (max_hops is None or hops < max_hops):
        hops += 1
        frontier = blocks.map(step, frontier) & (distance == NOT_REACHED)
        distance[frontier] = hops
    return {"distance": distance}


def _follow_out(block: Block, frontier: Numbers) -> Numbers:
    return _touched(block, block.incoming.near, block.incoming.far, frontier)


def _follow_in(block: Block, frontier: Numbers) -> Numbers:
    return _touched(block, block.outgoing.near, block.outgoing.far, frontier)


def _follow_both(block: Block, frontier: Numbers) -> Numbers:
    return _touched(block, block.neighbours.near, block.neighbours.far, frontier)


def _touched(block: Block, near: Numbers, far: Numbers, frontier: Numbers) -> Numbers:
    """The vertices of the block that an edge joins to the frontier."""
    touched = np.zeros(block.size, dtype=bool)
    touched[near[frontier[far]]] = True
    return touched


_STEPS = {"out": _follow_out, "in": _follow_in, "both": _follow_both}
