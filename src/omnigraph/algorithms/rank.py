"""PageRank: how likely a walk along edges, which starts anew now and then, is at each node."""

from __future__ import annotations

import numpy as np

from omnigraph.algorithms.blocks import Block, Blocks, Numbers, Way
from omnigraph.algorithms.counts import count_edges


def pagerank(
    blocks: Blocks, *, damping: float = 0.85, iterations: int = 20, tolerance: float = 1e-9
) -> dict[str, Numbers]:
    """Ranks add up to 1. What reaches a node without outgoing edges is spread over all nodes."""
    size = blocks.size
    out = blocks.map(Way.OUTGOING, count_edges)
    rank = np.full(size, 1.0 / max(size, 1))
    for _ in range(iterations):
        shares = np.divide(rank, out, out=np.zeros(size), where=out > 0)
        spread = (1.0 - damping + damping * rank[out == 0].sum()) / max(size, 1)
        before, rank = rank, spread + damping * blocks.map(Way.INCOMING, _sum_shares, shares)
        if np.abs(rank - before).sum() < tolerance:
            break
    return {"rank": rank}


def _sum_shares(block: Block, shares: Numbers) -> Numbers:
    pairs = block.pairs
    sums: Numbers = np.bincount(pairs.near, shares[pairs.far], block.size)
    return sums
