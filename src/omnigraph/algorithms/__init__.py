"""Graph algorithms: NumPy over blocks of vertices, the same functions on both engines.

In: blocks of one graph of nodes and edges of one type each. Out: one value, or a few, a node.

    blocks.py      a range of vertices with its neighbours; `Blocks`, which maps a function over all
    rank.py        PageRank
    labels.py      connected components, communities
    counts.py      degrees, triangles
    distances.py   hops from a set
    run.py         an algorithm by its name, its parameters checked

Vertices are numbered in the order of their ids. Parallel edges are one, as in a traversal. Here one
block holds everything; on Spark (`pipeline/spark_blocks.py`) each task has some.
"""

from omnigraph.algorithms.blocks import Block, Blocks, OneBlock, Way, make_block
from omnigraph.algorithms.run import ALGORITHMS, check_params, run_algorithm

__all__ = [
    "ALGORITHMS",
    "Block",
    "Blocks",
    "OneBlock",
    "Way",
    "check_params",
    "make_block",
    "run_algorithm",
]
