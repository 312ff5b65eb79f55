"""What a one-row commit costs, and whether that grows with history."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import omnigraph as og
from benchmarks.harness import Figure
from omnigraph.storage.counters import counting

SCHEMA = "node Person { slug: String @key  name: String? }\n"
INSERT = 'query add($slug: String) { insert Person { slug: $slug, name: "new" } }'
ROWS = 100_000
COMMITS = 1_050
WINDOW = 50
THREADS = (1, 4, 16, 32)
INSERTS_AT_ONCE = 192


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        graph = og.init(path, schema=SCHEMA, durability="process")
        records = ({"type": "Person", "data": {"slug": f"p{n}"}} for n in range(ROWS))
        graph.load(records, mode="overwrite")
        cpu = [_insert(graph, number) for number in range(COMMITS)]
        early = _mean(cpu[WINDOW : 2 * WINDOW])
        late = _mean(cpu[-WINDOW:])
        yield Figure("insert one keyed row at commit 50", early, "cpu ms")
        yield Figure("insert one keyed row at commit 1,000", late, "cpu ms")
        yield Figure("cost at commit 1,000 over cost at commit 50", late / early, "x")
        with counting() as counters:
            graph.mutate(INSERT, "add", {"slug": "counted"})
        yield Figure(
            "Lance commits of one insert", counters.commits + counters.control_merges, "count"
        )
        with counting() as counters:
            og.open(path).close()
        yield Figure("control tables read by an open", counters.control_reads, "count")
    for threads in THREADS:
        yield from _at_once(threads)


def _at_once(threads: int) -> Iterator[Figure]:
    """Durable inserts into one table from several threads."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(threads) as pool:
        graph = og.init(Path(folder) / "graph", schema=SCHEMA)
        _insert(graph, -1)
        start, cpu = time.perf_counter(), time.process_time()
        list(pool.map(partial(_insert, graph), range(INSERTS_AT_ONCE)))
        seconds, spent = time.perf_counter() - start, time.process_time() - cpu
        graph.close()
    name = f"durable inserts from {threads} threads"
    yield Figure(name, INSERTS_AT_ONCE / seconds, "1/s")
    yield Figure(f"{name}, each", 1_000 * spent / INSERTS_AT_ONCE, "cpu ms")


def _insert(graph: og.Graph, number: int) -> float:
    start = time.process_time()
    graph.mutate(INSERT, "add", {"slug": f"new{number}"})
    return 1_000 * (time.process_time() - start)


def _mean(values: list[float]) -> float:
    return statistics.fmean(values)
