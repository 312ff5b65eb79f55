"""A small searchable table in three states of its indexes, with the same rows in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from omnigraph.index import RuntimeCache, TableView
from omnigraph.index.arrays import IntArray
from omnigraph.manifest.model import TableEntry
from omnigraph.storage.handles import IndexKind, IndexSpec, StagedTransaction, TableHandle
from omnigraph.storage.location import TableLocation, graph_root
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.tables import TableStorage

State = Literal["no index", "whole index", "index with a tail"]
STATES: tuple[State, ...] = ("no index", "whole index", "index with a tail")

WIDTH = 7
"""Not a multiple of anything, so that vectors in a batch start at odd addresses."""

SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("body", pa.utf8()),
        pa.field("vector", pa.list_(pa.field("item", pa.float32()), WIDTH)),
    ]
)
SPECS = (IndexSpec("body", IndexKind.INVERTED), IndexSpec("vector", IndexKind.VECTOR))


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    body: str | None = None
    vector: Sequence[float | None] | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A table and how its positions and entity ids go together."""

    tables: TableStorage
    handle: TableHandle

    def view(self, cache: RuntimeCache | None = None) -> TableView:
        location, version = self.handle.location, self.handle.version
        path = location.uri.removeprefix(f"{self.tables.root}/")
        entry = TableEntry("node:Text", path, version, location.branch, self.handle.row_count)
        return TableView(self.tables, entry, RuntimeCache(2**20) if cache is None else cache)

    def ids(self, positions: IntArray) -> list[str]:
        every = self.tables.reads.scan(self.handle, ["id"]).column("id").to_pylist()
        return [str(every[each]) for each in positions]

    def positions(self, ids: Sequence[str]) -> IntArray:
        every = self.tables.reads.scan(self.handle, ["id"]).column("id").to_pylist()
        return np.array([place for place, each in enumerate(every) if each in ids], dtype=np.int64)


def rows_table(rows: Sequence[Row]) -> pa.Table:
    columns = {
        "id": [row.id for row in rows],
        "body": [row.body for row in rows],
        "vector": [None if row.vector is None else list(row.vector) for row in rows],
    }
    return pa.table(columns, schema=SCHEMA)


def store(
    directory: Path,
    state: State,
    early: Sequence[Row],
    late: Sequence[Row] = (),
    gone: Sequence[str] = (),
) -> Stored:
    """Store `early`, upsert `late` over it, and take `gone` away again.

    The index with a tail is built between `early` and `late`, the whole one at the end.
    """
    root = graph_root(str(directory / state.replace(" ", "_")))
    tables = TableStorage(root, durability="process")
    table = _Table(tables, root.table("nodes/texts"))
    tables.create_table(table.location, SCHEMA)
    table.commit(tables.rows.stage_append(table.head, rows_table(early)))
    if state == "index with a tail":
        table.build_indexes()
    if late:
        table.commit(tables.rows.stage_merge_insert(table.head, rows_table(late)))
    if gone:
        removed = tables.rows.stage_delete(table.head, IsIn("id", pa.array(gone, pa.utf8())))
        assert removed is not None
        table.commit(removed)
    if state == "whole index":
        table.build_indexes()
    return Stored(tables, table.head)


@dataclass(frozen=True, slots=True)
class _Table:
    tables: TableStorage
    location: TableLocation

    @property
    def head(self) -> TableHandle:
        return self.tables.open_at(self.location, self.tables.head_version(self.location))

    def commit(self, staged: StagedTransaction) -> None:
        self.tables.commit_staged(staged)

    def build_indexes(self) -> None:
        built = self.tables.indexes.stage_create(self.head, SPECS).transaction
        assert built is not None
        self.commit(built)
