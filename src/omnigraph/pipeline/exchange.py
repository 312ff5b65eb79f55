"""Exchange: keys of a whole load, gathered by bucket, as blocks of columns.

A runner lets one function cut each item into blocks and another see all blocks of a bucket. A
block is a table as Arrow IPC: it travels as bytes, through Spark's shuffle or a file, and no row of
it is looked at on the way.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Lock
from typing import BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.storage.lance_errors import lance_errors

BLOCK_BYTES = 4 << 20
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
"""Blocks are packed by threads and tasks already: those of Arrow would wait for the same cores."""

Buckets: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one bucket. `kind` tells the tables of an exchange apart."""

    bucket: int
    kind: str
    data: bytes


def cut_blocks(kind: str, rows: pa.Table, buckets: Buckets) -> Iterator[Block]:
    """Cut rows into blocks of bounded size by the bucket of each; their order is kept."""
    if rows.num_rows == 0:
        return
    # Small integers are sorted by radix: in linear time.
    order = np.argsort(buckets.astype(np.uint16), kind="stable")
    sizes = np.bincount(buckets)
    cut = rows.take(pa.array(order)).combine_chunks()
    step = max(1, BLOCK_BYTES * rows.num_rows // max(1, rows.nbytes))
    start = 0
    for bucket in np.flatnonzero(sizes).tolist():
        end = start + int(sizes[bucket])
        for at in range(start, end, step):
            yield Block(bucket, kind, encode_table(cut.slice(at, min(step, end - at))))
        start = end


def join_blocks(blocks: Iterable[Block]) -> dict[str, pa.Table]:
    """The rows of one bucket by kind; in no particular order."""
    tables: dict[str, list[pa.Table]] = defaultdict(list)
    for block in blocks:
        tables[block.kind].append(decode_table(block.data))
    return {
        kind: pa.concat_tables(parts, promote_options="default").combine_chunks()
        for kind, parts in tables.items()
    }


def encode_table(rows: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSED) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def decode_table(data: bytes) -> pa.Table:
    """The table that bytes are."""
    with pa.ipc.open_stream(data, options=_ONE_THREAD) as reader:
        return reader.read_all()


class Spill:
    """Blocks of an exchange within one process, in a file without a name: it ends with us."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory or tempfile.gettempdir()
        self._places: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
        self._size = 0
        self._lock = Lock()
        with lance_errors("exchanging keys", self._directory):
            self._file: BinaryIO = tempfile.TemporaryFile(  # noqa: SIM115, closed on exit
                dir=self._directory
            )

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        # On a full disk closing tries again what has failed.
        with suppress(OSError):
            self._file.close()

    def write(self, block: Block) -> None:
        with self._lock, lance_errors("exchanging keys", self._directory):
            self._file.write(block.data)
            self._places[block.bucket].append((block.kind, self._size, len(block.data)))
            self._size += len(block.data)

    def flush(self) -> None:
        with lance_errors("exchanging keys", self._directory):
            self._file.flush()

    def list_buckets(self) -> list[int]:
        return sorted(self._places)

    def read(self, bucket: int) -> Iterator[Block]:
        for kind, start, size in self._places[bucket]:
            with self._lock, lance_errors("exchanging keys", self._directory):
                self._file.seek(start)
                data = self._file.read(size)
            yield Block(bucket, kind, data)
