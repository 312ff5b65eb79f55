"""What a load costs: rows per CPU second over the whole process tree, and memory.

`OMNIGRAPH_BENCH_ROWS` sets the size: 1,200,000 rows by default, a sixth of them nodes.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import omnigraph as og
from benchmarks.harness import Figure

SCHEMA = """
node Person { key: I64 @key  name: String  age: I64 @index  city: String? }
node Doc { slug: String @key  body: String }
edge Knows: Person -> Person { since: Date }
edge Wrote: Person -> Doc
"""
ROWS = int(os.environ.get("OMNIGRAPH_BENCH_ROWS", "1200000"))
CHANGED = 20_000
SMALL_LOADS = 10


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        data = write_records(top / "data.jsonl", ROWS)
        yield Figure("input of the load", data.stat().st_size / 1e6, "MB")
        og.spark.session().sparkContext.parallelize(range(2), 2).map(str).collect()
        for engine in ("inline", "spark"):
            graph = og.init(top / engine, schema=SCHEMA)
            yield from _big_load(graph, data, engine)
            yield from _small_loads(graph, engine)
        yield from _merge(graph)


def write_records(path: Path, rows: int) -> Path:
    """Nodes before edges, two types of each, one record a line."""
    people, docs = rows * 15 // 100, rows * 2 // 100
    with path.open("w") as file:
        for n in range(people):
            file.write(
                f'{{"type":"Person","data":{{"key":{n},"name":"Person number {n}",'
                f'"age":{n % 90},"city":"London"}}}}\n'
            )
        for n in range(docs):
            file.write(
                f'{{"type":"Doc","data":{{"slug":"d{n}","body":"words of document {n}"}}}}\n'
            )
        for n in range(rows * 66 // 100):
            file.write(
                f'{{"edge":"Knows","from":"{n % people}","to":"{n * 7919 % people}",'
                f'"data":{{"since":"2020-01-{1 + n % 28:02d}"}}}}\n'
            )
        for n in range(rows * 17 // 100):
            file.write(f'{{"edge":"Wrote","from":"{n % people}","to":"d{n % docs}","data":{{}}}}\n')
    return path


def _big_load(graph: og.Graph, data: Path, engine: str) -> Iterator[Figure]:
    with Meter() as meter:
        result = graph.load(data, mode="overwrite", engine=engine)
    rows = sum(result.tables.values())
    yield Figure(f"load, {engine}", rows / meter.cpu_seconds / 1_000, "k rows/cpu s")
    yield Figure(f"memory of a load, {engine}", meter.peak_bytes / 1e6, "MB")


def _small_loads(graph: og.Graph, engine: str) -> Iterator[Figure]:
    start = time.perf_counter()
    for number in range(SMALL_LOADS):
        records = [
            {"type": "Doc", "data": {"slug": f"{number}-{n}", "body": "x"}} for n in range(100)
        ]
        graph.load(records, mode="append", engine=engine)
    elapsed = 1_000 * (time.perf_counter() - start) / SMALL_LOADS
    yield Figure(f"load of 100 rows, {engine}", elapsed, "ms")


def _merge(graph: og.Graph) -> Iterator[Figure]:
    records = (
        {"type": "Person", "data": {"key": n, "name": "new", "age": 1}} for n in range(CHANGED)
    )
    with Meter() as meter:
        graph.load(records, mode="merge", engine="inline")
    yield Figure(f"merge of {CHANGED:,} changed nodes", meter.cpu_seconds, "cpu s")


@dataclass
class Meter:
    """CPU and memory of this process and all it started, sampled while the block runs."""

    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    _seen: dict[int, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Meter:
        self._sample()
        self._before = sum(self._seen.values())
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()
        self.cpu_seconds = sum(self._seen.values()) - self._before

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self._sample()

    def _sample(self) -> None:
        me = psutil.Process()
        total = 0
        for process in [me, *me.children(recursive=True)]:
            try:
                times = process.cpu_times()
                total += process.memory_info().rss
            except psutil.Error:
                continue
            self._seen[process.pid] = times.user + times.system
        self.peak_bytes = max(self.peak_bytes, total)
