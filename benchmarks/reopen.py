"""What the first reads of a process cost: hops and whole-graph questions, with and without files.

Each case is a process of its own that opens a graph of random edges, finds a node, and then asks
six times. CPU is that of the calling thread: what is made in the background meanwhile is not waited
for. Memory is what the process has grown by (on Linux). `OMNIGRAPH_BENCH_EDGES` sets the size: 5
million edges between a million nodes by default.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph as og
from benchmarks.harness import Figure, is_quick

EDGES = int(os.environ.get("OMNIGRAPH_BENCH_EDGES", "40000" if is_quick() else "5000000"))
NODES = max(EDGES // 5, 10)
SCHEMA = "node Person { key: I64 @key }\nedge Follows: Person -> Person\n"
QUERIES = """
query node() { match { $p: Person { key: 0 } } return { $p.key } }
query hop($key: I64) {
    match { $p: Person { key: $key }  $p follows $q } return { count($q) as n }
}
query paths() { match { $a: Person  $a follows $b  $b follows $c } return { count($a) as n } }
query follow($a: String, $b: String) { insert Follows { from: $a, to: $b } }
"""
CHILD = """
import json, os, sys, time
import omnigraph as og
from benchmarks.reopen import NODES, QUERIES
path, name = sys.argv[1:]
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
graph, spans = og.open(path), []
graph.query(QUERIES, "node").rows()
before = resident()
for number in range(6):
    params = {"key": 7919 * number % NODES} if name == "hop" else {}
    start = time.thread_time()
    graph.query(QUERIES, name, params).rows()
    spans.append(1000 * (time.thread_time() - start))
print(json.dumps([*spans, max(resident() - before, 0)]))
"""


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        _make(path)
        yield from _measure("hop", path, "nothing saved")
        yield from _measure("paths", path, "nothing saved")
        yield from _measure("hop", path, "saved")
        yield from _measure("paths", path, "saved")
        with og.open(path, durability="process") as graph:
            for number in range(3):
                ends = {"a": str(number), "b": str(NODES - 1 - number)}
                graph.mutate(QUERIES, "follow", ends)
        yield from _measure("hop", path, "saved before three commits")
        shutil.rmtree(path / "__derived")
        yield from _measure("hop", path, "deleted")


def _make(path: Path) -> None:
    random = np.random.default_rng(1)
    ends = {
        name: pa.array(random.integers(0, NODES, EDGES)).cast("string") for name in ("src", "dst")
    }
    with og.init(path, schema=SCHEMA, durability="process") as graph:
        tables = {"Person": pa.table({"key": np.arange(NODES)}), "Follows": pa.table(ends)}
        graph.load_dataframes(tables, mode="overwrite", engine="inline")
        graph.ensure_indices()


def _measure(name: str, path: Path, case: str) -> Iterator[Figure]:
    command = [sys.executable, "-c", CHILD, str(path), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *spans, grown = json.loads(done.stdout)
    for which, value in zip(
        ("first", "second", "sixth"), (spans[0], spans[1], spans[-1]), strict=True
    ):
        yield Figure(f"{which} {name}, {case}", value, "cpu ms")
    yield Figure(f"memory of six {name}, {case}", grown, "MB")
