"""What a load costs: rows per CPU second over the whole process tree, memory, and how it scales.

`OMNIGRAPH_BENCH_ROWS` sets the size: 1,200,000 rows by default, a sixth of them nodes. A merge is
measured in a table of that size and in one of a tenth, memory also for four times the input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import pyarrow as pa

import omnigraph as og
from benchmarks.harness import Figure

SCHEMA = """
node Person { key: I64 @key  name: String  age: I64 @index  city: String? }
node Doc { slug: String @key  body: String }
edge Knows: Person -> Person { since: Date }
edge Wrote: Person -> Doc
"""
ROWS = int(os.environ.get("OMNIGRAPH_BENCH_ROWS", "1200000"))
CHANGED_SHARE = 50
"""One row in so many of the larger table is changed."""

SMALL_LOADS = 10
CORES_VARIABLE = "OMNIGRAPH_BENCH_CORES"
"""To how many cores a process of its own keeps."""


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
        yield from _merges(top)
        yield from _processes(top, data)


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


def _merges(top: Path) -> Iterator[Figure]:
    """The same change in a table and in one ten times as large: its cost follows the change."""
    costs: list[float] = []
    for size in (ROWS // 10, ROWS):
        graph = og.init(top / f"merge-{size}", schema=SCHEMA)
        graph.load_dataframe(_people(size), type="Person", mode="append", engine="inline")
        graph.optimize()
        changed = ROWS // CHANGED_SHARE
        records = [
            {"type": "Person", "data": {"key": n * (size // changed), "name": "new", "age": 1}}
            for n in range(changed)
        ]
        with Meter() as meter:
            graph.load(records, mode="merge", engine="inline")
        costs.append(meter.cpu_seconds)
        yield Figure(f"merge of {changed:,} into {size:,} nodes", meter.cpu_seconds, "cpu s")
    yield Figure("merge into a table ten times as large", costs[1] / costs[0], "x")


def _people(count: int) -> pa.Table:
    return pa.table(
        {
            "key": range(count),
            "name": [f"Person number {n}" for n in range(count)],
            "age": [n % 90 for n in range(count)],
            "city": ["London"] * count,
        }
    )


def _processes(top: Path, data: Path) -> Iterator[Figure]:
    """Loads by processes that do nothing else: cores, memory, and the start of Spark."""
    one = _run_alone(top, data, "local[1]", cores=1)
    two = _run_alone(top, data, "local[2]", cores=2)
    yield Figure("load on two cores, wall time of one core over it", one.wall / two.wall, "x")
    large = _run_alone(top, write_records(top / "large.jsonl", 4 * ROWS), "local[2]")
    yield Figure("memory of all processes of a load", two.peak_bytes / 1e6, "MB")
    yield Figure("memory for an input four times as large", large.peak_bytes / two.peak_bytes, "x")
    yield Figure("load, parse to publish, alone", two.rows / two.cpu / 1_000, "k rows/cpu s")
    for choice in ("off", "use"):
        cold = _run_alone(top, None, "local[2]", choice)
        yield Figure(f"first load of a process, class archive {choice}", cold.start, "wall s")


@dataclass(frozen=True, slots=True)
class Alone:
    """What a process of its own has measured; `start` is from its first line to a small load."""

    start: float
    wall: float
    cpu: float
    peak_bytes: int
    rows: int


def _run_alone(
    top: Path,
    data: Path | None,
    master: str,
    archive: str = "use",
    cores: int | None = None,
) -> Alone:
    graph = top / f"alone-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "benchmarks.load", str(graph), str(data or "")]
    variables = {"OMNIGRAPH_SPARK_MASTER": master, "OMNIGRAPH_SPARK_ARCHIVE": archive}
    if cores is not None:
        variables[CORES_VARIABLE] = str(cores)
    ran = subprocess.run(
        command,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return Alone(**json.loads(ran.stdout.splitlines()[-1]))


def _alone(graph_path: str, data: str) -> None:
    if CORES_VARIABLE in os.environ:
        os.sched_setaffinity(0, range(int(os.environ[CORES_VARIABLE])))
    started = time.perf_counter()
    graph = og.init(graph_path, schema=SCHEMA)
    graph.load([{"type": "Doc", "data": {"slug": "first", "body": "x"}}], mode="append")
    start = time.perf_counter() - started
    _warm(graph, Path(graph_path).with_suffix(".warm"))
    rows = 0
    with Meter() as meter:
        before = time.perf_counter()
        if data:
            rows = sum(graph.load(data, mode="overwrite").tables.values())
        wall = time.perf_counter() - before
    found = Alone(start, wall, meter.cpu_seconds, meter.peak_bytes, rows)
    print(json.dumps(asdict(found)))


def _warm(graph: og.Graph, folder: Path) -> None:
    """Give every core its worker: a worker reads its code when it gets its first task."""
    folder.mkdir()
    files = [write_records(folder / f"{number}.jsonl", 2_000) for number in range(4)]
    graph.load(files, mode="merge")


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


if __name__ == "__main__":
    _alone(*sys.argv[1:])
