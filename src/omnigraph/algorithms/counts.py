"""Counts: the edges of each node, and the triangles it is in."""

from __future__ import annotations

import numpy as np

from omnigraph.algorithms.blocks import Block, Blocks, Numbers, Pairs, Way

WEDGES_PER_PASS = 4_000_000


def count_degrees(blocks: Blocks) -> dict[str, Numbers]:
    """Incoming and outgoing edges, and both."""
    incoming, outgoing = (blocks.map(way, count_edges) for way in (Way.INCOMING, Way.OUTGOING))
    return {"in_degree": incoming, "out_degree": outgoing, "degree": incoming + outgoing}


def find_triangles(blocks: Blocks) -> dict[str, Numbers]:
    """Triangles that each node is in, whichever way the edges lead."""
    return {"triangles": blocks.count_triangles()}


def count_edges(block: Block) -> Numbers:
    """The edges of each vertex of a block."""
    return block.pairs.count(block.size)


def orient(neighbours: Pairs, degrees: Numbers) -> Pairs:
    """Each edge once, from its end with fewer edges: so no node has many more than a root of all.

    `near` and `far` are vertices of the whole graph here.
    """
    near, far = neighbours.near, neighbours.far
    ahead = (degrees[near] < degrees[far]) | ((degrees[near] == degrees[far]) & (near < far))
    return Pairs(near[ahead], far[ahead])


def count_triangles(neighbours: Pairs, size: int) -> Numbers:
    """Two edges from one node are a triangle when a third joins their ends."""
    edges = orient(neighbours, neighbours.count(size))
    keys = edges.near * size + edges.far  # sorted, as the pairs are
    lengths = np.bincount(edges.near, minlength=size)
    ends = np.cumsum(lengths)[edges.near] if len(edges.near) else edges.near
    # Each edge is paired with those that follow it in the run of its node.
    later = ends - np.arange(len(edges.near)) - 1
    total = np.zeros(size, dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum(later)])
    first = 0
    while first < len(later):
        last = int(np.searchsorted(bounds, bounds[first] + WEDGES_PER_PASS, side="right")) - 1
        last = max(last, first + 1)
        total += _close_wedges(edges, keys, later, slice(first, last), size)
        first = last
    return total


def _close_wedges(edges: Pairs, keys: Numbers, later: Numbers, part: slice, size: int) -> Numbers:
    places = np.arange(part.start, part.stop)
    one = np.repeat(places, later[part])
    starts = np.repeat(np.cumsum(later[part]) - later[part], later[part])
    other = one + 1 + np.arange(len(one)) - starts
    left, right = edges.far[one], edges.far[other]
    is_closed = _is_among(keys, left * size + right) | _is_among(keys, right * size + left)
    corners = (edges.near[one], left, right)
    return sum(
        (np.bincount(corner[is_closed], minlength=size) for corner in corners),
        start=np.zeros(size, dtype=np.int64),
    )


def _is_among(keys: Numbers, wanted: Numbers) -> Numbers:
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=bool)
    found: Numbers = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
    return found
