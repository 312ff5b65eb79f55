"""Distances: how many hops each node is from the nearest of a set."""

from __future__ import annotations

import numpy as np

from omnigraph.algorithms.blocks import Block, Blocks, Numbers, Way

NOT_REACHED = -1


def find_distances(
    blocks: Blocks, *, starts: Numbers, direction: str = "out", max_hops: int | None = None
) -> dict[str, Numbers]:
    """Hops from the nearest start, -1 where none leads. `direction` is `out`, `in` or `both`."""
    distance = np.full(blocks.size, NOT_REACHED, dtype=np.int64)
    distance[starts] = 0
    frontier = distance == 0
    # A vertex that is reached along an edge finds the frontier against it.
    way = _WAYS[direction]
    hops = 0
    while frontier.any() and (max_hops is None or hops < max_hops):
        hops += 1
        frontier = blocks.map(way, _touched, frontier) & (distance == NOT_REACHED)
        distance[frontier] = hops
    return {"distance": distance}


def _touched(block: Block, frontier: Numbers) -> Numbers:
    """The vertices of the block that an edge joins to the frontier."""
    pairs = block.pairs
    touched = np.zeros(block.size, dtype=bool)
    touched[pairs.near[frontier[pairs.far]]] = True
    return touched


_WAYS = {"out": Way.INCOMING, "in": Way.OUTGOING, "both": Way.NEIGHBOURS}
