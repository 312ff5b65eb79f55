"""Rows are taken by their places in a scan, whatever was deleted before them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset

from omnigraph.storage.handles import TableHandle
from omnigraph.storage.location import graph_root
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.tables import TableStorage

SCHEMA = pa.schema([pa.field("id", pa.utf8(), nullable=False), ("age", pa.int64())])
ROWS = 300


def make_table(storage: TableStorage) -> TableHandle:
    """Three fragments; of the first a few rows are deleted, of the second nearly all."""
    location = storage.root.table("nodes/people")
    storage.create_table(location, SCHEMA)
    handle = storage.open_at(location, 1)
    for first in range(0, ROWS, 100):
        numbers = range(first, first + 100)
        rows = pa.table({"id": [f"p{n}" for n in numbers], "age": list(numbers)}, schema=SCHEMA)
        staged = storage.rows.stage_append(handle, rows)
        handle = storage.open_at(location, storage.commit_staged(staged).version)
    gone = pa.array([f"p{n}" for n in (0, 1, 50, 99, *range(101, 199))])
    deleted = storage.rows.stage_delete(handle, IsIn("id", gone))
    assert deleted is not None
    return storage.open_at(location, storage.commit_staged(deleted).version)


def test_places_behind_deleted_rows_are_taken_without_a_look_at_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance takes places of a whole table in milliseconds for each one, once rows are deleted."""
    storage = TableStorage(graph_root(str(tmp_path)), durability="process")
    handle = make_table(storage)
    every = storage.reads.scan(handle, ["age", "id"])

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Lance was asked for places of the whole table")

    monkeypatch.setattr(LanceDataset, "take", refuse)
    for seed in range(20):
        random = np.random.default_rng(seed)
        places = random.choice(len(every), random.integers(1, len(every)), replace=True)

        found = storage.reads.take_places(handle, places.tolist(), ["age", "id"])

        assert found.equals(every.take(pa.array(places)).combine_chunks())
