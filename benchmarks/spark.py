"""What the nine questions cost on Spark, and how that grows with the edges.

    OMNIGRAPH_BENCH_SPARK_PEOPLE="100000 563000" python -m benchmarks spark

CPU of everything that runs: this process, Java and its Python workers. Every size is measured in a
process of its own, with a session that has answered every question once on a small graph, so that
Java has compiled what it needs; `first` also looks for repeated pairs, later ones remember them.
Memory is the greatest of the driver, of Java, and of the largest worker.

100,000 people have 2.4 million follows, 259,000 have 11.8 million and 563,000 have 49 million.
Answers are compared with the local engine's while that has room, and two of them with plain sums
over the follows at every size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph as og
from benchmarks import social
from benchmarks.harness import Figure
from benchmarks.scale import Watch

SIZES = os.environ.get("OMNIGRAPH_BENCH_SPARK_PEOPLE", "100000 259000").split()
SMALL = 2_000
ROUNDS = ("first", "again")
ROWS_PER_LOAD = 5_000_000
LOCAL_FOLLOWS = 20_000_000
"""More are not asked of the local engine, which would have them all in memory."""


def run() -> Iterator[Figure]:
    found: dict[str, dict[str, float]] = {}
    for size in SIZES:
        figures = found[size] = _measure_alone(size)
        follows = int(figures["follows"])
        for name, value in figures.items():
            if name.startswith("memory"):
                yield Figure(f"{name}, {follows:,} follows", value / 1e6, "MB")
            elif name != "follows":
                yield Figure(f"{name} on Spark, {follows:,} follows", value, "cpu ms")
    for less, more in pairwise(SIZES):
        grown = found[more]["follows"] / found[less]["follows"]
        for name in social.QUESTIONS:
            key = f"{name}, {ROUNDS[-1]}"
            ratio = found[more][key] / found[less][key]
            yield Figure(f"{name} on Spark, CPU for {grown:.1f}x the follows", ratio, "x")


def _measure_alone(size: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.spark", size]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return figures


def measure(people: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        tables = social.frames(people)
        follows = tables["Follows"]
        warm = _make(Path(folder) / "small", social.frames(SMALL))
        graph = _make(Path(folder) / "graph", tables)
        figures: dict[str, float] = {"follows": follows.num_rows}
        for name in social.QUESTIONS:
            _ask(warm, name, "spark")
        for number in ROUNDS:
            for name in social.QUESTIONS:
                with Watch() as watch:
                    rows = _ask(graph, name, "spark")
                figures[f"{name}, {number}"] = 1_000 * watch.cpu_seconds
                for kind, size in watch.peaks.items():
                    key = f"memory of {kind}"
                    figures[key] = max(figures.get(key, 0), size)
                print(number, name, watch.list_figures(), file=sys.stderr, flush=True)
                if number == ROUNDS[-1]:
                    _check(graph, name, rows, follows)
        og.spark.session().stop()
        return figures


def _make(path: Path, tables: dict[str, pa.Table]) -> og.Graph:
    """A graph of these tables; the follows of a large one are loaded in several parts."""
    graph = og.init(path, schema=social.SCHEMA, durability="process", self_care=False)
    others = {name: table for name, table in tables.items() if name != "Follows"}
    graph.load_dataframes(others, mode="overwrite", engine="inline")
    follows = tables["Follows"]
    for first in range(0, follows.num_rows, ROWS_PER_LOAD):
        part = follows.slice(first, ROWS_PER_LOAD)
        graph.load_dataframe(part, edge="Follows", mode="append", engine="inline")
    if follows.num_rows <= LOCAL_FOLLOWS:
        graph.ensure_indices()
    return graph


def _ask(graph: og.Graph, name: str, engine: str) -> list[dict[str, object]]:
    params = dict(social.PARAMS.get(name, {}))
    return graph.query(social.QUERIES, name, params, engine=engine).rows()


def _check(graph: og.Graph, name: str, rows: list[dict[str, object]], follows: pa.Table) -> None:
    if follows.num_rows <= LOCAL_FOLLOWS:
        assert rows == _ask(graph, name, "local"), name
    if name in ("q1", "q8"):
        people = graph.nodes("Person").count_rows()
        outgoing, incoming = (
            np.bincount(follows[end].cast(pa.int64()).to_numpy(), minlength=people)
            for end in ("src", "dst")
        )
        most = sorted(incoming.tolist(), reverse=True)[: len(rows)]
        expected = most if name == "q1" else [int(outgoing @ incoming)]
        assert [row["n"] for row in rows] == expected, name


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
