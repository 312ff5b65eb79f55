"""Blocks of vertices on Spark: made once from the edges, kept on the executors, mapped each round.

Every task gets the numbers of all vertices and gives those of its own; the edges, which are many
more, stay where they are. A block is one binary row, and what is lost is made again.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.algorithms.blocks import Block, Numbers, Pairs, Step, make_block
from omnigraph.pipeline.spark_query.execute import in_job_group
from omnigraph.pipeline.spark_query.session import query_session

EDGES_PER_BLOCK = 1_000_000
_ENDS = "block int, is_incoming boolean, near int, far int"
_BINARY = "block int, data binary"


class SparkBlocks:
    """All vertices of a graph, in blocks on the executors. A context manager: it lets them go."""

    def __init__(self, spark: Any, edges: DataFrame, ids: pa.Array, rows: int) -> None:
        self._spark = query_session(spark, rows)
        self._size = len(ids)
        cores = spark.sparkContext.defaultParallelism
        count = max(cores, -(-2 * rows // EDGES_PER_BLOCK))
        self._width = max(-(-self._size // count), 1)
        ends = edges.mapInArrow(partial(_to_ends, ids, self._width), _ENDS)
        blocks = ends.repartitionById(count, "block").mapInArrow(
            partial(_to_blocks, self._width, self._size), _BINARY
        )
        self._blocks = blocks.persist(StorageLevel.DISK_ONLY)

    def __enter__(self) -> SparkBlocks:
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.unpersist()

    @property
    def size(self) -> int:
        return self._size

    def map(self, step: Step, *state: Numbers) -> Numbers:
        frame = self._blocks.mapInArrow(partial(_map_blocks, step, state), _BINARY)
        found = in_job_group(self._spark, frame.toArrow)
        return self._put_together(step, state, found)

    def _put_together(self, step: Step, state: tuple[Numbers, ...], found: pa.Table) -> Numbers:
        """The numbers of all blocks; of a range without edges those of an empty block."""
        parts = {row["block"]: row["data"] for row in found.to_pylist()}
        numbers = []
        for number in range(-(-self._size // self._width)):
            data = parts.get(number)
            if data is None:
                numbers.append(step(_empty_block(number, self._width, self._size), *state))
            else:
                numbers.append(pickle.loads(data))
        return np.concatenate(numbers) if numbers else np.zeros(0)

    def count_triangles(self) -> Numbers:
        """Each edge once, from its end with fewer; two of one node and a third that joins them."""
        counts = self.map(_count_neighbours)
        found = in_job_group(self._spark, lambda: _triangles(self._blocks, counts).toArrow())
        total = np.zeros(self._size, dtype=np.int64)
        total[found.column("node").to_numpy()] = found.column("count").to_numpy()
        return total


def _to_ends(
    ids: pa.Array, width: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Both ends of each edge as numbers, once for each of them."""
    for batch in batches:
        source, target = (
            pc.index_in(batch.column(place), value_set=ids).to_numpy() for place in (0, 1)
        )
        for is_incoming, near, far in ((False, source, target), (True, target, source)):
            columns = [near // width, np.full(len(near), is_incoming), near, far]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(column, type_)
                    for column, type_ in zip(
                        columns, (pa.int32(), pa.bool_(), pa.int32(), pa.int32()), strict=True
                    )
                ],
                names=["block", "is_incoming", "near", "far"],
            )


def _to_blocks(
    width: int, size: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The blocks of one task: it has all edges of each."""
    held = list(batches)
    if not held:
        return
    ends = pa.Table.from_batches(held)
    for number in pc.unique(ends.column("block")).to_pylist():
        own = ends.filter(pc.equal(ends.column("block"), number))
        yield from _to_block(number, width, size, own).to_batches()


def _to_block(number: int, width: int, size: int, ends: pa.Table) -> pa.Table:
    is_incoming = ends.column("is_incoming").to_numpy()
    near, far = (ends.column(name).to_numpy().astype(np.int64) for name in ("near", "far"))
    ways = [Pairs(near[here], far[here]) for here in (~is_incoming, is_incoming)]
    first = number * width
    block = make_block(first, min(first + width, size), *ways)
    return _binary(number, block)


def _binary(number: int, value: object) -> pa.Table:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return pa.table({"block": pa.array([number], pa.int32()), "data": pa.array([data])})


def _empty_block(number: int, width: int, size: int) -> Block:
    nothing = Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64))
    first = number * width
    return make_block(first, min(first + width, size), nothing, nothing)


def _map_blocks(
    step: Step, state: tuple[Numbers, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield from _binary(number, step(pickle.loads(data), *state)).to_batches()


def _count_neighbours(block: Block) -> Numbers:
    return block.neighbours.count(block.size)


def _triangles(blocks: DataFrame, degrees: Numbers) -> DataFrame:
    edges = blocks.mapInArrow(partial(_oriented, degrees), "near int, far int")
    one = edges.toDF("node", "left")
    other = edges.toDF("node", "right")
    third = edges.select(
        fn.least("near", "far").alias("left"), fn.greatest("near", "far").alias("right")
    )
    wedges = one.join(other, ["node"]).where(fn.col("left") < fn.col("right"))
    closed = wedges.join(third, ["left", "right"])
    corners = fn.explode(fn.array("node", "left", "right")).alias("node")
    return closed.select(corners).groupBy("node").count()


def _oriented(degrees: Numbers, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from omnigraph.algorithms.counts import orient

    for batch in batches:
        for data in batch.column(1).to_pylist():
            block: Block = pickle.loads(data)
            pairs = block.neighbours
            edges = orient(Pairs(pairs.near + block.first, pairs.far), degrees)
            columns = [pa.array(ends, pa.int32()) for ends in (edges.near, edges.far)]
            yield pa.RecordBatch.from_arrays(columns, names=["near", "far"])
