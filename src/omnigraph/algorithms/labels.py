"""Labels: nodes that belong together get the same one, the least id among them at first.

components    whatever way edges lead, each node takes the least label that reaches it
communities   each node takes the label that most of its neighbours have, the least of a tie
"""

from __future__ import annotations

import numpy as np

from omnigraph.algorithms.blocks import Block, Blocks, Numbers, Way


def find_components(blocks: Blocks) -> dict[str, Numbers]:
    """The least node of each connected part, for every node in it."""
    labels = np.arange(blocks.size)
    while True:
        least = blocks.map(Way.NEIGHBOURS, _least_label, labels)
        # A label is a node of the same part, and so is that node's label.
        while not np.array_equal(jumped := least[least], least):
            least = jumped
        if np.array_equal(least, labels):
            return {"component": labels}
        labels = least


def find_communities(blocks: Blocks, *, rounds: int = 10) -> dict[str, Numbers]:
    """Labels after so many rounds, or as soon as a round changes none."""
    labels = np.arange(blocks.size)
    for _ in range(rounds):
        before = labels
        labels = blocks.map(Way.NEIGHBOURS, _most_frequent_label, labels)
        if np.array_equal(labels, before):
            break
    return {"community": labels}


def _least_label(block: Block, labels: Numbers) -> Numbers:
    pairs = block.pairs
    least = block.own(labels).copy()
    if len(pairs.near):
        starts = np.flatnonzero(np.diff(pairs.near, prepend=-1))
        found = np.minimum.reduceat(labels[pairs.far], starts)
        nodes = pairs.near[starts]
        least[nodes] = np.minimum(least[nodes], found)
    return least


def _most_frequent_label(block: Block, labels: Numbers) -> Numbers:
    pairs = block.pairs
    width = len(labels)
    keys, counts = np.unique(pairs.near * width + labels[pairs.far], return_counts=True)
    nodes, found = np.divmod(keys, max(width, 1))
    order = np.lexsort((found, -counts, nodes))
    firsts = order[np.flatnonzero(np.diff(nodes[order], prepend=-1))]
    chosen = block.own(labels).copy()
    chosen[nodes[firsts]] = found[firsts]
    return chosen
