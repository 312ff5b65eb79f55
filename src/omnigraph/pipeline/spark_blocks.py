"""Blocks of vertices on Spark: made from the edges, kept on the executors, mapped each round.

Every task gets the numbers of all vertices and gives those of its own; the edges, which are many
more, stay where they are. A block is one binary row, and what is lost is made again. The tasks that
read edges number their ends and cut them by block, so that no text of them leaves a task.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.algorithms.blocks import Block, Numbers, Pairs, Step, Way, make_block, turn
from omnigraph.algorithms.counts import count_edges, orient
from omnigraph.pipeline.numbering import NO_NUMBER, Numbering, number_ids
from omnigraph.pipeline.scan import cut_parts, pin_handle
from omnigraph.pipeline.spark_query.execute import in_job_group
from omnigraph.pipeline.spark_query.pairs import read_pairs
from omnigraph.pipeline.spark_query.session import query_session
from omnigraph.pipeline.spark_query.source import Batches, map_parts
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage

EDGES_PER_BLOCK = 2_000_000
EDGES_PER_PART = 1_000_000
_BINARY = "block int, data binary"
_BINARY_SCHEMA = pa.schema([("block", pa.int32()), ("data", pa.binary())])


class SparkBlocks:
    """All vertices of a graph, in blocks on the executors. A context manager: it lets them go."""

    def __init__(
        self, spark: Any, tables: TableStorage, edges: TableHandle, ids: pa.StringArray
    ) -> None:
        self._spark = query_session(spark, edges.row_count)
        self._size = len(ids)
        self._read = read_pairs(pin_handle(tables, edges))
        self._parts = cut_parts(tables, edges, EDGES_PER_PART)
        cores = spark.sparkContext.defaultParallelism
        self._count = max(cores, -(-edges.row_count // EDGES_PER_BLOCK))
        self._width = max(-(-self._size // self._count), 1)
        # As long as blocks: one that is lost is made again.
        self._numbering = spark.sparkContext.broadcast(number_ids(ids))
        self._made: dict[Way, DataFrame] = {}

    def __enter__(self) -> SparkBlocks:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in self._made.values():
            frame.unpersist()
        self._numbering.destroy()

    @property
    def size(self) -> int:
        return self._size

    def map(self, way: Way, step: Step, *state: Numbers) -> Numbers:
        frame = self._frame(way)
        # A worker reads it once for all of its tasks.
        sent = self._spark.sparkContext.broadcast(state)
        try:
            mapped = frame.mapInArrow(partial(_map_blocks, self._bounds(), step, sent), _BINARY)
            found = in_job_group(self._spark, mapped.toArrow)
        finally:
            sent.destroy()
        return self._put_together(step, state, found)

    def _frame(self, way: Way) -> DataFrame:
        """The blocks of a way, which the first job over them makes."""
        if way not in self._made:
            cut = partial(_cut_edges, self._numbering, way, self._width)
            edges = map_parts(self._spark, self._read, self._parts, cut, _BINARY_SCHEMA)
            blocks = edges.repartitionById(self._count, "block").mapInArrow(
                partial(_join_edges, self._bounds()), _BINARY
            )
            self._made[way] = blocks.persist(StorageLevel.DISK_ONLY)
        return self._made[way]

    def _bounds(self) -> tuple[int, int]:
        return self._width, self._size

    def _put_together(self, step: Step, state: tuple[Numbers, ...], found: pa.Table) -> Numbers:
        """The numbers of all blocks; of a range without edges those of an empty block."""
        parts = {row["block"]: row["data"] for row in found.to_pylist()}
        numbers = []
        for number in range(-(-self._size // self._width)):
            data = parts.get(number)
            if data is None:
                nothing = np.zeros(0, np.int64)
                block = make_block(*_range_of(number, self._bounds()), nothing, nothing)
                numbers.append(step(block, *state))
            else:
                numbers.append(pickle.loads(data))
        return np.concatenate(numbers) if numbers else np.zeros(0)

    def count_triangles(self) -> Numbers:
        """Each edge once, from its end with fewer; two of one node and a third that joins them."""
        counts = self.map(Way.NEIGHBOURS, count_edges)
        frame = self._frame(Way.NEIGHBOURS)
        triangles = _triangles(frame, self._bounds(), counts)
        found = in_job_group(self._spark, triangles.toArrow)
        total = np.zeros(self._size, dtype=np.int64)
        total[found.column("node").to_numpy()] = found.column("count").to_numpy()
        return total


def _cut_edges(
    numbering: Broadcast[Numbering], way: Way, width: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """The edges of one part by block: the numbers of their near ends, then of their far ends."""
    rows = [batch.columns for batch in batches]
    if not rows:
        return
    ends = (np.concatenate([numbering.value.find(each[end]) for each in rows]) for end in (0, 1))
    source, target = ends
    # As in this process, an edge that leads nowhere is left out.
    whole = (source != NO_NUMBER) & (target != NO_NUMBER)
    near, far = turn(way, source[whole], target[whole])
    block = near // width
    order = np.argsort(block, kind="stable")
    near, far = near[order], far[order]
    sizes = np.bincount(block)
    ends_at = np.cumsum(sizes)
    for number in np.flatnonzero(sizes).tolist():
        here = slice(int(ends_at[number] - sizes[number]), int(ends_at[number]))
        yield _to_batch(number, np.concatenate([near[here], far[here]]).tobytes())


def _join_edges(bounds: tuple[int, int], batches: Iterator[pa.RecordBatch]) -> Batches:
    """The blocks of one task: it has all edges of each. Only the far ends are kept as they are."""
    held: dict[int, list[Numbers]] = {}
    for number, data in _rows(batches):
        held.setdefault(number, []).append(np.frombuffer(data, np.int32).reshape(2, -1))
    for number, parts in held.items():
        block = make_block(*_range_of(number, bounds), *np.concatenate(parts, axis=1))
        counts, far = block.pairs.count(block.size), block.pairs.far
        yield _pickled(number, (counts.astype(np.int32), far.astype(np.int32)))


def _map_blocks(
    bounds: tuple[int, int],
    step: Step,
    state: Broadcast[tuple[Numbers, ...]],
    batches: Iterator[pa.RecordBatch],
) -> Batches:
    for number, block in _blocks(bounds, batches):
        yield _pickled(number, step(block, *state.value))


def _blocks(
    bounds: tuple[int, int], batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, Block]]:
    for number, data in _rows(batches):
        counts, far = pickle.loads(data)
        near = np.repeat(np.arange(len(counts)), counts)
        yield number, Block(*_range_of(number, bounds), Pairs(near, far))


def _range_of(number: int, bounds: tuple[int, int]) -> tuple[int, int]:
    width, size = bounds
    return number * width, min((number + 1) * width, size)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        for number, data in zip(*batch.columns, strict=True):
            yield number.as_py(), data.as_buffer()


def _pickled(number: int, value: object) -> pa.RecordBatch:
    return _to_batch(number, pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def _to_batch(number: int, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([data], pa.binary())], schema=_BINARY_SCHEMA
    )


def _triangles(blocks: DataFrame, bounds: tuple[int, int], degrees: Numbers) -> DataFrame:
    edges = blocks.mapInArrow(partial(_oriented, bounds, degrees), "near int, far int")
    one = edges.toDF("node", "left")
    other = edges.toDF("node", "right")
    third = edges.select(
        fn.least("near", "far").alias("left"), fn.greatest("near", "far").alias("right")
    )
    wedges = one.join(other, ["node"]).where(fn.col("left") < fn.col("right"))
    closed = wedges.join(third, ["left", "right"])
    corners = fn.explode(fn.array("node", "left", "right")).alias("node")
    return closed.select(corners).groupBy("node").count()


def _oriented(
    bounds: tuple[int, int], degrees: Numbers, batches: Iterator[pa.RecordBatch]
) -> Batches:
    for _, block in _blocks(bounds, batches):
        pairs = block.pairs
        edges = orient(Pairs(pairs.near + block.first, pairs.far), degrees)
        columns = [pa.array(ends, pa.int32()) for ends in (edges.near, edges.far)]
        yield pa.RecordBatch.from_arrays(columns, names=["near", "far"])
