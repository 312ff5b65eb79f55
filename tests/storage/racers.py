"""What the processes of the race tests run."""

from __future__ import annotations

import time
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.errors import RowLevelCasContention
from omnigraph.storage.control import ControlTable
from omnigraph.storage.location import graph_root
from omnigraph.storage.queues import writer_queues

ROWS = pa.schema([pa.field("object_id", pa.utf8()), pa.field("writer", pa.int64())])


def row(object_id: str, writer: int) -> pa.Table:
    return pa.table({"object_id": [object_id], "writer": [writer]}, schema=ROWS)


class Unfenced(ControlTable):
    """A control table that forgets the mark of the primary key: what the fence stands on."""

    def _refuse_unfenced(self, dataset: Any) -> None:
        pass


def control(root: str, options: dict[str, str], *, fenced: bool = True) -> ControlTable:
    kind = ControlTable if fenced else Unfenced
    return kind(graph_root(root), "__manifest", key="object_id", storage_options=options)


def merge_each_round(
    root: str,
    options: dict[str, str],
    fenced: bool,
    writer: int,
    rounds: int,
    barrier: Barrier,
    kind: str,
    out: Any,
) -> None:
    """In each round all writers read, meet, and then merge one new key.

    Of the kind "same" it is the same key, of the others one of their own; when they also replace
    the row "a", that alone is what they contend for.
    """
    table = control(root, options, fenced=fenced)
    wins = []
    for number in range(rounds):
        version = table.latest_version()
        rows = row(f"k{number}" if kind == "same" else f"k{number}-{writer}", writer)
        replaced = "a" if kind == "replaced" else None
        if replaced is not None:
            rows = pa.concat_tables([rows, row(replaced, writer)])
        barrier.wait(60)
        try:
            table.merge_rows(rows, read_version=version, replaced=replaced)
            wins.append(number)
        except RowLevelCasContention:
            pass
        barrier.wait(60)
    out.put((writer, wins))


def count_up(root: str, counter: str, rounds: int) -> None:
    """Read, wait a little, write one more: loses updates unless the queue keeps others out."""
    queues = writer_queues(graph_root(root))
    path = Path(counter)
    for _ in range(rounds):
        with queues.acquire_many([("node:A", None)]):
            value = int(path.read_text())
            time.sleep(0.001)
            path.write_text(str(value + 1))


def hold(root: str, held: Event) -> None:
    """Take a queue and never give it back."""
    guard = writer_queues(graph_root(root)).acquire_many([("node:A", None), ("node:B", "x")])
    held.set()
    time.sleep(600)
    guard.release()
