"""What branches and merges cost: flat where they should be, and following the change elsewhere."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from tests.branch.bulk import appending, upserting, vectors, write_bulk

import omnigraph as og
from benchmarks.harness import Figure

WIDTH = 256
ROWS = 100_000


def run() -> Iterator[Figure]:
    yield from _creating_branches()
    yield from _fast_forward()
    yield from _three_way()


def _creating_branches() -> Iterator[Figure]:
    for tables in (2, 20, 100):
        with tempfile.TemporaryDirectory() as path:
            types = "\n".join(f"node N{number} {{ key: String @key }}" for number in range(tables))
            graph = og.init(Path(path) / "graph", schema=types)
            yield _creating(graph, f"create branch, {tables} tables")
            if tables > 2:
                continue
            for number in range(95):
                graph.create_branch(f"b{number}")
            yield _creating(graph, "create branch, 100 siblings")


def _creating(graph: og.Graph, name: str) -> Figure:
    walls = []
    for number in range(5):
        started = time.perf_counter()
        graph.create_branch(f"{name.replace(' ', '').replace(',', '')}{number}")
        walls.append(1_000 * (time.perf_counter() - started))
    return Figure(name, statistics.median(walls), "wall ms")


def _fast_forward() -> Iterator[Figure]:
    """Beside a bare append of the same rows, each in a process of its own."""
    for name in ("append", "merge"):
        command = [sys.executable, "-m", "benchmarks.merge", name]
        found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        label = "bare Lance append" if name == "append" else "fast forward"
        yield Figure(f"{label}, {ROWS:,} × {WIDTH} floats", found["seconds"] * 1_000, "wall ms")
        yield Figure(f"{label}, {ROWS:,} × {WIDTH} floats", found["mib"], "MB")


def _three_way() -> Iterator[Figure]:
    """The same 1,000-row change in a small and in a large type, a few times over."""
    medians: list[float] = []
    for rows in (10_000, 1_000_000):
        with tempfile.TemporaryDirectory() as path:
            schema = "node Doc { slug: String @key  x: I64? }"
            graph = og.init(Path(path) / "graph", schema=schema)
            write_bulk(graph, "node:Doc", appending(plain_rows(np.arange(rows), 0)))
            walls, cpus = zip(*(_one_merge(graph, rows, each) for each in range(5)), strict=True)
            name = f"three-way, 1,000 of {rows:,} rows"
            yield Figure(name, statistics.median(walls), "wall ms")
            yield Figure(name, statistics.median(cpus), "cpu ms")
            medians.append(statistics.median(walls))
    yield Figure("three-way in a type a hundred times as large", medians[1] / medians[0], "x")


def _one_merge(graph: og.Graph, rows: int, number: int) -> tuple[float, float]:
    """Wall and CPU milliseconds of a merge of 1,000 rows into a branch that changed 100 others."""
    chosen = np.random.default_rng(number).choice(rows, 1_100, replace=False)
    branch = f"change{number}"
    graph.create_branch(branch)
    write_bulk(graph, "node:Doc", upserting(to_table(plain_rows(chosen[:1_000], number))), branch)
    write_bulk(graph, "node:Doc", upserting(to_table(plain_rows(chosen[1_000:], -number))))
    wall, cpu = time.perf_counter(), time.process_time()
    graph.merge(branch)
    return 1_000 * (time.perf_counter() - wall), 1_000 * (time.process_time() - cpu)


def plain_rows(numbers: np.ndarray, x: int) -> Iterator[pa.RecordBatch]:
    for piece in np.array_split(numbers, max(1, len(numbers) // 8_192)):
        ids = [f"d{number:07d}" for number in piece.tolist()]
        yield pa.record_batch({"id": ids, "slug": ids, "x": piece.astype(np.int64) + x})


def to_table(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches)


def _child(what: str) -> None:
    """One measured step; prints seconds and how far memory rose above what was there before."""
    with tempfile.TemporaryDirectory() as path:
        if what == "append":
            first = pa.Table.from_batches(vectors(0, 16, WIDTH))
            lance.write_dataset(first, f"{path}/bare", data_storage_version="2.2")
            reader = pa.RecordBatchReader.from_batches(first.schema, vectors(16, ROWS, WIDTH))

            def action() -> object:
                return lance.write_dataset(reader, f"{path}/bare", mode="append")
        else:
            schema = f"node Doc {{ slug: String @key  vector: Vector({WIDTH})? }}"
            graph = og.init(Path(path) / "graph", schema=schema)
            write_bulk(graph, "node:Doc", appending(vectors(0, 16, WIDTH)))
            graph.create_branch("more")
            write_bulk(graph, "node:Doc", appending(vectors(16, ROWS, WIDTH)), "more")

            def action() -> object:
                return graph.merge("more")

        _forget_peak()
        before = _status("VmRSS")
        started = time.perf_counter()
        action()
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "mib": (_status("VmHWM") - before) / 1_024}))


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    """A line of /proc/self/status, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    _child(sys.argv[1])
