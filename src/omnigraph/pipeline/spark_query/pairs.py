"""Pairs: which pairs of ends occur on several edges of a version, found once and remembered.

A traversal without an edge variable sees each pair once. Most edges are the only ones between
their ends, so removing repeated pairs from all of them would be the dearest part of a read. The
hashes of all pairs tell which edges may repeat another: only those are compared as texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import BoolArray
from omnigraph.pipeline.exchange import Block, cut_blocks, join_blocks
from omnigraph.pipeline.hashes import combine_hashes, hash_texts
from omnigraph.pipeline.scan import Part, Pin
from omnigraph.pipeline.spark_query.source import TableRead
from omnigraph.pipeline.spark_runner import exchange_blocks

Hashes: TypeAlias = npt.NDArray[np.uint64]

SUSPECTS_MAX = 100_000
"""So many repeated pairs are named to every task; beyond that all edges are compared."""
LOCAL_ROWS = 500_000
"""Up to so many edges are hashed in the calling process: starting tasks would cost more."""
BUCKET_ROWS = 2_000_000
_ENDS = ("src", "dst")


@dataclass(frozen=True, slots=True)
class PairCheck:
    """Edges whose pair of ends is one of the repeated, or is none. `both`: in either direction."""

    repeated: Hashes
    both: bool
    is_repeated: bool

    def columns(self) -> list[str]:
        return list(_ENDS)

    def holds(self, column: Callable[[str], pa.Array], rows: int) -> BoolArray:
        hashes = _hash_pairs(*(column(name) for name in _ENDS), both=self.both)
        return np.isin(hashes, self.repeated, invert=not self.is_repeated)


def find_repeated_pairs(
    spark: Any, read: TableRead, parts: list[Part], rows: int, *, both: bool
) -> Hashes:
    """The hashes that several edges have: all of them, or more than `SUSPECTS_MAX`."""
    if rows <= LOCAL_ROWS:
        found = [_hash_part(read, both, part) for part in parts]
        return _find_repeated(np.concatenate([np.empty(0, np.uint64), *found]))
    count = max(spark.sparkContext.defaultParallelism, -(-rows // BUCKET_ROWS))
    emit = partial(_emit_hashes, read, both, count)
    found = exchange_blocks(spark, emit, _reduce_hashes, parts, count)
    return np.concatenate([np.empty(0, np.uint64), *found])


def read_pairs(pin: Pin) -> TableRead:
    """Both ends of every edge of a version."""
    schema = pa.schema([(name, pa.utf8()) for name in _ENDS])
    return TableRead(pin, tuple((name, name) for name in _ENDS), schema)


def _emit_hashes(read: TableRead, both: bool, count: int, part: Part) -> Iterator[Block]:
    hashes = _hash_part(read, both, part)
    buckets = (hashes % np.uint64(count)).astype(np.int64)
    return cut_blocks("hashes", pa.table({"hash": hashes}), buckets)


def _reduce_hashes(blocks: Iterable[Block]) -> Hashes:
    return _find_repeated(join_blocks(blocks)["hashes"].column("hash").to_numpy())


def _hash_part(read: TableRead, both: bool, part: Part) -> Hashes:
    found = [_hash_pairs(*batch.columns, both=both) for batch in read.batches(part)]
    return np.concatenate([np.empty(0, np.uint64), *found])


def _hash_pairs(sources: pa.Array, targets: pa.Array, *, both: bool) -> Hashes:
    one, other = hash_texts(sources), hash_texts(targets)
    if both:
        one, other = np.minimum(one, other), np.maximum(one, other)
    return combine_hashes(one, other)


def _find_repeated(hashes: Hashes) -> Hashes:
    ordered = np.sort(hashes)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return repeated[: SUSPECTS_MAX + 1]
