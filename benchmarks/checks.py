"""What the checks between rows of a large load cost, by exchange: CPU per row as rows grow.

A fifth of the rows are nodes, the others edges with ids and `@card`; nothing is wrong with them.
Every size is measured in a process of its own, after a small one that warms Spark up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

import omnigraph as og
from benchmarks.harness import Figure
from benchmarks.load import Meter
from omnigraph.catalog import arrow_schema
from omnigraph.pipeline.columns import CheckPlan
from omnigraph.pipeline.engine import SparkUse, choose_runner
from omnigraph.pipeline.model import LoadMode, StagedPart
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.run_checks import LoadChecks
from omnigraph.storage.scratch import open_scratch
from omnigraph.storage.unattached import write_unattached
from omnigraph.testing.inside import inside

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person @card(0..1000)
"""
SIZES = [int(size) for size in os.environ.get("OMNIGRAPH_BENCH_SIZES", "1000000 4000000").split()]
PART_ROWS = 200_000
WARM_ROWS = 50_000


def run() -> Iterator[Figure]:
    for engine in ("inline", "spark"):
        for mode in ("append", "merge"):
            for size in SIZES:
                command = [sys.executable, "-m", "benchmarks.checks", engine, mode, str(size)]
                variables = {"OMNIGRAPH_LOAD_CHECK_ROWS": "1"}
                ran = subprocess.run(
                    command, env=os.environ | variables, capture_output=True, text=True, check=True
                )
                found = json.loads(ran.stdout.splitlines()[-1])
                name = f"checks by exchange, {engine}, {mode}, {size // 1000:,}k rows"
                yield Figure(name, size / found["cpu"] / 1_000, "k rows/cpu s")
                yield Figure(f"{name}, driver grew by", found["grew"] / 1e6, "MB")


def measure(engine: str, mode: str, size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(Path(folder) / "graph", schema=SCHEMA)
        _check(graph, engine, mode, WARM_ROWS)
        cpu, grew = _check(graph, engine, mode, size)
        return {"cpu": cpu, "grew": grew}


def _check(graph: og.Graph, engine: str, mode: str, size: int) -> tuple[float, int]:
    """CPU of both rounds over everything that runs, and by how much this process grew."""
    tables = inside(graph).store.tables
    scratch = open_scratch(tables, {})
    catalog, entries = graph.catalog, graph.snapshot().entries
    parts = tuple(_stage(graph, scratch.uri, size))
    plan = CheckPlan(catalog, LoadMode(mode), parts, entries, {}, str(tables.root))
    runner = choose_runner(engine, stays=False, spark=SparkUse())
    before = psutil.Process().memory_info().rss
    peak = [before]
    checks = LoadChecks(tables, runner, Reporter(lambda _: _note(peak)), 100, scratch.uri)
    # A bucket of the size that a load of this size has.
    os.environ["OMNIGRAPH_LOAD_CHECK_ROWS"] = str(min(size - 1, 1_000_000))
    with Meter() as meter:
        ids = checks.check_ids(plan)
        found, _ = checks.check_rules(plan, ids)
    assert not found
    assert not ids.has_lost
    _note(peak)
    scratch.close()
    return meter.cpu_seconds, peak[0] - before


def _note(peak: list[int]) -> None:
    peak[0] = max(peak[0], psutil.Process().memory_info().rss)


def _stage(graph: og.Graph, uri: str, size: int) -> Iterator[StagedPart]:
    nodes = size // 5
    chance = np.random.default_rng(0)
    for key, count in (("node:Person", nodes), ("edge:Knows", size - nodes)):
        entity = graph.catalog.entity(key)
        schema = arrow_schema(entity)
        for first in range(0, count, PART_ROWS):
            rows = min(PART_ROWS, count - first)
            columns = {"id": _texts("e", np.arange(first, first + rows))}
            if key == "node:Person":
                columns = {"id": _texts("p", np.arange(first, first + rows))}
                columns["name"] = columns["id"]
            else:
                columns["src"] = _texts("p", chance.integers(0, nodes, rows))
                columns["dst"] = _texts("p", chance.integers(0, nodes, rows))
            table = pa.table(columns).select(schema.names).cast(schema)
            fragments = tuple(write_unattached(f"{uri}/{entity.name}", table, schema))
            yield StagedPart(0, key, rows, False, first_ordinal=first, fragments=fragments)


def _texts(prefix: str, numbers: np.ndarray) -> pa.Array:
    """Ids of 26 characters, as long as a ULID."""
    return pa.array(np.char.add(prefix, np.char.zfill(numbers.astype("U"), 25)))


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
