"""Rows in bulk: straight from Arrow to one commit, so that only the merge costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import omnigraph as og
from omnigraph.manifest import Snapshot, TableEntry
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.testing.inside import inside
from omnigraph.write.commit import WriteRequest, run_write
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.touched import TouchedTables

Stage = Callable[[TableStorage, TableHandle], StagedTransaction]


@dataclass(frozen=True)
class _Bulk:
    tables: TableStorage
    entry: TableEntry
    stage_rows: Stage
    is_strict: bool = True

    @property
    def read_versions(self) -> Mapping[str, int]:
        return {self.entry.table_key: self.entry.version}

    def list_pins(self) -> Mapping[str, TableEntry]:
        return {self.entry.table_key: self.entry}

    def stage(self, handles: Mapping[str, TableHandle]) -> Mapping[str, StagedTransaction]:
        return {key: self.stage_rows(self.tables, handle) for key, handle in handles.items()}


def write_bulk(graph: og.Graph, table_key: str, stage: Stage, branch: str = "main") -> None:
    """Commit one staged change of one table."""
    environment = inside(graph).environment()

    def prepare(snapshot: Snapshot) -> _Bulk:
        return _Bulk(environment.tables, snapshot.entries[table_key], stage)

    touched = TouchedTables(frozenset([table_key]), frozenset())
    run_write(environment, WriteRequest(WriterKind.LOAD, branch, None, touched, prepare))


def appending(batches: Iterable[pa.RecordBatch]) -> Stage:
    return lambda tables, handle: tables.rows.stage_append_stream(handle, batches)


def upserting(rows: pa.Table) -> Stage:
    return lambda tables, handle: tables.rows.stage_merge_insert(handle, rows)


def vectors(start: int, stop: int, width: int, size: int = 512) -> Iterable[pa.RecordBatch]:
    """Docs with a key and a vector, a batch at a time."""
    random = np.random.default_rng(start)
    for first in range(start, stop, size):
        ids = [f"d{number:07d}" for number in range(first, min(first + size, stop))]
        floats = pa.array(random.random(len(ids) * width, dtype=np.float32))
        vector = pa.FixedSizeListArray.from_arrays(floats, width)
        yield pa.record_batch({"id": ids, "slug": ids, "vector": vector})
