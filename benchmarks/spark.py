"""What the nine questions cost on Spark, and how that grows with the edges.

CPU of everything that runs: this process, Java and its Python workers. Every size is measured in a
process of its own, with a session that has answered every question once on a small graph, so that
Java has compiled what it needs; `first` also looks for repeated pairs, later ones remember them.
Every answer is compared with the local engine's.

`OMNIGRAPH_BENCH_SPARK_PEOPLE` sets the sizes: 100,000 people have 2.4 million follows, 259,000
have 11.8 million.
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

import omnigraph as og
from benchmarks import social
from benchmarks.harness import Figure
from benchmarks.load import Meter

SIZES = os.environ.get("OMNIGRAPH_BENCH_SPARK_PEOPLE", "100000 259000").split()
SMALL = 2_000
ROUNDS = ("first", "again")


def run() -> Iterator[Figure]:
    found = {size: _measure_alone(size) for size in SIZES}
    for figures in found.values():
        follows = int(figures["follows"])
        for name, value in figures.items():
            if name not in ("follows", "peak"):
                yield Figure(f"{name} on Spark, {follows:,} follows", value, "cpu ms")
        yield Figure(f"all processes, {follows:,} follows", figures["peak"] / 1e6, "MB")
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
        warm, _ = _make(Path(folder) / "small", SMALL)
        graph, follows = _make(Path(folder) / "graph", people)
        figures: dict[str, float] = {"follows": follows, "peak": 0}
        for name in social.QUESTIONS:
            _ask(warm, name, "spark")
        for number in ROUNDS:
            for name in social.QUESTIONS:
                with Meter() as meter:
                    rows = _ask(graph, name, "spark")
                figures[f"{name}, {number}"] = 1_000 * meter.cpu_seconds
                figures["peak"] = max(figures["peak"], meter.peak_bytes)
                assert number != ROUNDS[-1] or rows == _ask(graph, name, "local"), name
        og.spark.session().stop()
        return figures


def _make(path: Path, people: int) -> tuple[og.Graph, int]:
    tables = social.frames(people)
    graph = og.init(path, schema=social.SCHEMA, durability="process")
    graph.load_dataframes(tables, mode="overwrite", engine="inline")
    graph.ensure_indices()
    return graph, tables["Follows"].num_rows


def _ask(graph: og.Graph, name: str, engine: str) -> list[dict[str, object]]:
    params = dict(social.PARAMS.get(name, {}))
    return graph.query(social.QUERIES, name, params, engine=engine).rows()


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
