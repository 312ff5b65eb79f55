"""What outgrows a machine: a load by Spark, two questions and PageRank on it, at a size you set.

    OMNIGRAPH_BENCH_SCALE_ROWS="5000000 50000000" python -m benchmarks scale

A tenth of the rows are people, the others follow each other, from Parquet files that are written
some rows at a time. Every size has a process of its own. Memory is the greatest of the driver, of
Java, and of the largest worker: with `local[2]` the executors are threads of Java and its workers.
Files of a size are removed before the next one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import TracebackType

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og
from benchmarks.harness import Figure, is_quick

SCHEMA = "node Person { key: I64 @key  age: I64 }\nedge Follows: Person -> Person"
QUERIES = """
query followed() { match { $p: Person  $p follows $q } return { count($q) as n } }
query adults() { match { $p: Person { age: 40 }  $p follows $q } return { count($q) as n } }
"""
DEFAULT_SIZES = "1000 2000" if is_quick() else "1000000 5000000"
SIZES = [int(n) for n in os.environ.get("OMNIGRAPH_BENCH_SCALE_ROWS", DEFAULT_SIZES).split()]
ROWS_PER_WRITE = 500_000
PERSON_SHARE = 10
AGES = 90


def run() -> Iterator[Figure]:
    found = {size: _measure_alone(size) for size in SIZES}
    for size, figures in found.items():
        for name, (value, unit) in figures.items():
            yield Figure(f"{name}, {size:,} rows", value, unit)
    for less, more in pairwise(SIZES):
        for name, (value, unit) in found[more].items():
            if unit == "cpu s":
                per_row = value / more / (found[less][name][0] / less)
                yield Figure(f"{name}, CPU per row for {more / less:.0f}x the rows", per_row, "x")


def _measure_alone(size: int) -> dict[str, tuple[float, str]]:
    command = [sys.executable, "-m", "benchmarks.scale", str(size)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, tuple[float, str]] = json.loads(ran.stdout.splitlines()[-1])
    return figures


def measure(size: int) -> dict[str, tuple[float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        files = write_files(top, size)
        graph = og.init(top / "graph", schema=SCHEMA)
        og.spark.session().range(4).mapInArrow(lambda rows: rows, "id long").count()
        figures: dict[str, tuple[float, str]] = {}
        works: dict[str, Callable[[], object]] = {
            "load": lambda: graph.load(files, mode="append", engine="spark"),
            "count over one hop": lambda: _ask(graph, "followed", size - size // PERSON_SHARE),
            "filtered count": lambda: _ask(graph, "adults"),
            "PageRank": lambda: _rank(graph, size // PERSON_SHARE),
        }
        for name, work in works.items():
            with Watch() as watch:
                work()
            figures |= {f"{name} on Spark{what}": each for what, each in watch.list_figures()}
            print(name, watch.list_figures(), file=sys.stderr, flush=True)
        og.spark.session().stop()
        return figures


def write_files(top: Path, size: int) -> dict[str, Path]:
    people = size // PERSON_SHARE
    chance = np.random.default_rng(21)

    def make_people(first: int, count: int) -> pa.Table:
        keys = np.arange(first, first + count)
        return pa.table({"key": keys, "age": keys % AGES})

    def make_follows(first: int, count: int) -> pa.Table:
        ends = (np.arange(first, first + count) % people, chance.integers(0, people, count))
        return pa.table({"from": ends[0], "to": ends[1]})

    counts = {"Person": (make_people, people), "Follows": (make_follows, size - people)}
    files = {}
    for name, (make, count) in counts.items():
        files[name] = top / f"{name}.parquet"
        with pq.ParquetWriter(files[name], make(0, 1).schema) as writer:
            for first in range(0, count, ROWS_PER_WRITE):
                writer.write_table(make(first, min(ROWS_PER_WRITE, count - first)))
    return files


def _ask(graph: og.Graph, name: str, limit: int | None = None) -> None:
    [row] = graph.query(QUERIES, name, engine="spark").rows()
    # A pair that was drawn twice counts once.
    assert row["n"] > 0, row
    assert limit is None or row["n"] <= limit, row


def _rank(graph: og.Graph, people: int) -> None:
    found = graph.algorithm("pagerank", node="Person", edge="Follows", engine="spark")
    assert len(found.to_arrow()) == people


class Watch:
    """CPU of this process and all it started, and the memory of each kind of process."""

    def __enter__(self) -> Watch:
        self._seconds: dict[int, float] = {}
        self.peaks: dict[str, int] = {}
        self._sample()
        self._before = sum(self._seconds.values())
        self._start = time.perf_counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()
        self._wall = time.perf_counter() - self._start

    @property
    def cpu_seconds(self) -> float:
        return sum(self._seconds.values()) - self._before

    def list_figures(self) -> list[tuple[str, tuple[float, str]]]:
        memory = [(f", memory of {n}", (b / 1e6, "MB")) for n, b in self.peaks.items()]
        return [("", (self.cpu_seconds, "cpu s")), (", wall", (self._wall, "wall s")), *memory]

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self._sample()

    def _sample(self) -> None:
        me = psutil.Process()
        for process in [me, *me.children(recursive=True)]:
            try:
                times, rss = process.cpu_times(), process.memory_info().rss
                is_java = process.name() == "java"
            except psutil.Error:
                continue
            self._seconds[process.pid] = times.user + times.system
            kind = "driver" if process.pid == me.pid else "Java" if is_java else "a worker"
            self.peaks[kind] = max(self.peaks.get(kind, 0), rss)


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
