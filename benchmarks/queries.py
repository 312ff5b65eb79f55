"""What questions cost, beside what other systems need for the same ones in the same run.

Peers take part when they are installed (`duckdb`, `igraph`). For those that are not, the figures of
a run on two quiet cores are at hand, and a ratio with them is marked as such: it means little on
another machine. Every answer is compared with DuckDB's when that is there.

`OMNIGRAPH_BENCH_PEOPLE` sets the size: 100,000 people by default, 2.4 million follows.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph as og
from benchmarks import social
from benchmarks.harness import Figure
from benchmarks.peers import with_numbers
from benchmarks.peers.sql import QUESTIONS as SQL
from omnigraph.compiler import compile_query, require_read
from omnigraph.executor.execute import prepare_query
from omnigraph.index import RuntimeCache

PEOPLE = int(os.environ.get("OMNIGRAPH_BENCH_PEOPLE", str(social.PEOPLE)))
WARM_UP, REPEAT = 6, 31

RECORDED = {
    **dict(zip(social.QUESTIONS, (4.2, 105, 10.1, 5.7, 2.4, 2.1, 3.7, 6.0, 142), strict=True)),
    "geometric mean": 27.5,
    "hop1": 0.98,
    "hop2": 1.15,
    "hop3": 6.1,
}
"""Milliseconds of the best of a dozen systems, each in its own process, on two quiet cores."""


Ask = Callable[[], list[float]]
"""Runs a question; gives the measure of every row, in order."""


def run() -> Iterator[Figure]:
    tables = social.frames(PEOPLE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        graph = og.init(path, schema=social.SCHEMA, durability="process")
        graph.load_dataframes(tables, mode="overwrite", engine="inline")
        graph.ensure_indices()
        time.sleep(0.2)  # files that changed a moment ago are looked at again by every read
        peers = [*_duckdb(tables), *_igraph(tables)]
        yield from _questions(graph, peers)
        yield from _neighbourhoods(graph)
        yield from _look_ups(graph)
        yield from _compiling(graph)
        yield from _after_commits(graph)
        graph.close()
        yield from _opening(path)


def _questions(graph: og.Graph, peers: list[tuple[str, Mapping[str, Ask]]]) -> Iterator[Figure]:
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name, _ in peers}
    for name in social.QUESTIONS:
        cpu, wall, answer = _measured(_asking(graph, name))
        ours.append(cpu)
        yield Figure(name, cpu, "cpu ms")
        yield Figure(name, wall, "wall ms")
        best: dict[str, float] = {}
        for peer, questions in peers:
            if name not in questions:
                continue
            peer_cpu, _, peer_answer = _measured(questions[name], repeat=5)
            assert np.allclose(answer, peer_answer), (name, answer, peer_answer)
            theirs[peer].append(peer_cpu)
            best[peer] = peer_cpu
        yield from _ratio(name, cpu, best)
    geometric = statistics.geometric_mean(ours)
    yield Figure("nine questions, geometric mean", geometric, "cpu ms")
    whole = {
        peer: statistics.geometric_mean(all_nine)
        for peer, all_nine in theirs.items()
        if len(all_nine) == len(social.QUESTIONS)
    }
    yield from _ratio("geometric mean", geometric, whole)


def _ratio(name: str, cpu: float, best: Mapping[str, float]) -> Iterator[Figure]:
    """CPU over CPU: on quiet cores, where the recorded ones were taken, it is the wall time too."""
    for peer, other in best.items():
        yield Figure(f"{name} over {peer}, this run", cpu / other, "x")
    if PEOPLE == social.PEOPLE and name in RECORDED:
        yield Figure(f"{name} over the best recorded", cpu / RECORDED[name], "x")


def _asking(graph: og.Graph, name: str) -> Ask:
    params = dict(social.PARAMS.get(name, {}))
    return lambda: [row["n"] for row in graph.query(social.QUERIES, name, params).rows()]


def _measured(ask: Ask, repeat: int = REPEAT) -> tuple[float, float, list[float]]:
    """The medians of CPU and wall milliseconds, warm, and the answer."""
    for _ in range(WARM_UP if repeat == REPEAT else 1):
        answer = ask()
    cpu, wall = [], []
    for _ in range(repeat):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        ask()
        cpu.append(1_000 * (time.process_time() - cpu_start))
        wall.append(1_000 * (time.perf_counter() - wall_start))
    return statistics.median(cpu), statistics.median(wall), answer


def _neighbourhoods(graph: og.Graph) -> Iterator[Figure]:
    keys = np.random.default_rng(11).integers(0, PEOPLE, 100).tolist()
    for name in ("point", "hop1", "hop2", "hop3"):
        left = iter(keys * 2)

        def ask(name: str = name, left: Iterator[int] = left) -> list[float]:
            rows = graph.query(social.QUERIES, name, {"key": next(left)}).rows()
            return [row.get("n", 0) for row in rows]

        cpu, wall, _ = _measured(ask, repeat=100)
        yield Figure(name, cpu, "cpu ms")
        yield Figure(name, wall, "wall ms")
        yield from _ratio(name, cpu, {})


LOOK_UPS = {
    "one key": "$p.key = $a",
    "two keys by or": "$p.key = $a or $p.key = $b",
    "two keys by in": "$p.key in $both",
}


def _look_ups(graph: og.Graph) -> Iterator[Figure]:
    """Conditions on an indexed property cost by the rows they find, not by those there are."""
    random = np.random.default_rng(13)
    for name, condition in LOOK_UPS.items():
        text = (
            "query q($a: I64, $b: I64, $both: [I64]) "
            f"{{ match {{ $p: Person  {condition} }} return {{ $p.key as n }} }}"
        )

        def ask(text: str = text) -> list[float]:
            a, b = random.integers(0, PEOPLE, 2).tolist()
            rows = graph.query(text, params={"a": a, "b": b, "both": [a, b]}).rows()
            return [row["n"] for row in rows]

        cpu, _, _ = _measured(ask, repeat=100)
        yield Figure(f"look up {name}", cpu, "cpu ms")


COMMITS = {
    "an inserted edge": "query w($a: String, $b: String) { insert Follows { from: $a, to: $b } }",
    "deleted edges": "query w($a: String) { delete Follows where from = $a }",
    "a changed node": "query w($k: I64) { update Person set { age: 40 } where key = $k }",
}
"""A write of a row or a few, after which the first question is measured."""


def _after_commits(graph: og.Graph) -> Iterator[Figure]:
    """The first question after a commit: what it costs must not depend on the size of the graph."""
    random = np.random.default_rng(12)
    for commit, text in COMMITS.items():
        for name in ("q1", "q8", "hop2"):
            cpu = []
            for source, target in random.integers(0, PEOPLE, (5, 2)).tolist():
                values = {"a": str(source), "b": str(target), "k": source}
                params = {each: value for each, value in values.items() if f"${each}:" in text}
                graph.mutate(text, params=params)
                start = time.process_time()
                graph.query(social.QUERIES, name, {"key": target} if name == "hop2" else {}).rows()
                cpu.append(1_000 * (time.process_time() - start))
            yield Figure(f"{name} after {commit}", statistics.median(cpu), "cpu ms")


def _compiling(graph: og.Graph) -> Iterator[Figure]:
    """Parse, check and plan: of a text seen before, and of a new one."""
    catalog, snapshot, cache = graph.catalog, graph.snapshot(), RuntimeCache()
    texts = iter(f"{social.QUERIES}// {number}" for number in range(10_000))

    def prepare(text: str) -> list[float]:
        ir = require_read(compile_query(text, catalog, "q7"))
        prepare_query(ir, snapshot, catalog, cache)
        return []

    cpu, _, _ = _measured(lambda: prepare(social.QUERIES))
    yield Figure("parse, check and plan, seen before", cpu, "cpu ms")
    cpu, _, _ = _measured(lambda: prepare(next(texts)))
    yield Figure("parse, check and plan, a new file of 13 queries", cpu, "cpu ms")


def _opening(path: Path) -> Iterator[Figure]:
    """A process of its own: what importing costs, and then a cold open and its first question."""
    code = (
        "import time; start = time.process_time(), time.perf_counter()\n"
        "import omnigraph as og; from benchmarks import social; og.Graph\n"
        "begun = time.process_time(), time.perf_counter()\n"
        f"og.open({str(path)!r}).query(social.QUERIES, 'q1').rows()\n"
        "ended = time.process_time(), time.perf_counter()\n"
        "print(begun[0] - start[0], ended[0] - begun[0], ended[1] - begun[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    importing, opening, opening_wall = map(float, done.stdout.split())
    yield Figure("import", 1_000 * importing, "cpu ms")
    yield Figure("cold open and first question", 1_000 * opening, "cpu ms")
    yield Figure("cold open and first question", 1_000 * opening_wall, "wall ms")


# Peers


def _duckdb(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, Mapping[str, Ask]]]:
    duckdb = _imported("duckdb")
    if duckdb is None:
        return
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register("incoming", with_numbers(table))
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM incoming')
        connection.unregister("incoming")

    def asking(name: str) -> Ask:
        params = dict(social.PARAMS.get(name, {}))
        return lambda: [row[-1] for row in connection.execute(SQL[name], params).fetchall()]

    yield "duckdb", {name: asking(name) for name in social.QUESTIONS}


def _igraph(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, Mapping[str, Ask]]]:
    igraph = _imported("igraph")
    if igraph is None:
        return
    follows = tables["Follows"]
    ends = [follows.column(end).cast(pa.int64()).to_numpy() for end in ("src", "dst")]
    graph = igraph.Graph(n=PEOPLE, edges=np.stack(ends, axis=1), directed=True)

    def most_followed() -> list[float]:
        return sorted(graph.indegree(), reverse=True)[:3]

    def paths() -> list[float]:
        return [float(np.dot(graph.indegree(), graph.outdegree()))]

    yield "igraph", {"q1": most_followed, "q8": paths}


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        print(f"{name} is not installed: its figures are left out", file=sys.stderr)
        return None
