"""What a process costs from its start to its end: a first query in a program, and commands.

CPU seconds of the whole process, beside those of importing NumPy and Arrow, which every one needs
that touches data. What is measured is a program that has run before: its modules are compiled.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import omnigraph as og
from benchmarks.harness import Figure, is_quick

SCHEMA = "node Person { slug: String @key  name: String }\n"
QUERY = 'query q() { match { $p: Person { slug: "a" } } return { $p.name } }'
FIRST_QUERY = "import omnigraph as og; og.open({path!r}).query({query!r}).rows()"
COMMAND = "import sys; from omnigraph.cli import main; sys.argv = ['omnigraph', *{words!r}]; main()"
DO_NOT_COMPILE = "PYTHONDONTWRITEBYTECODE"
REPEAT = 3 if is_quick() else 9


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        graph = og.init(path, schema=SCHEMA)
        graph.load([{"type": "Person", "data": {"slug": "a", "name": "Ada"}}], mode="append")
        graph.close()
        file = Path(folder) / "q.gq"
        file.write_text(QUERY)
        store = ["--store", str(path)]
        asking = ["query", "q", "--query", str(file), *store]
        processes = {
            "python": "pass",
            "import numpy, pyarrow": "import numpy, pyarrow",
            "import, open, first query": FIRST_QUERY.format(path=str(path), query=QUERY),
            "omnigraph query": COMMAND.format(words=asking),
            "omnigraph branch list": COMMAND.format(words=["branch", "list", *store]),
            "omnigraph --help": COMMAND.format(words=["--help"]),
        }
        # In turn, so that a busy moment meets all of them.
        spans: dict[str, list[tuple[float, float]]] = {name: [] for name in processes}
        for _ in range(REPEAT + 1):
            for name, code in processes.items():
                spans[name].append(_measure(code))
        for name, found in spans.items():
            yield from _figures(name, found[1:])  # the first one compiles the modules


def _measure(code: str) -> tuple[float, float]:
    """CPU and wall milliseconds of a process."""
    environment = {name: value for name, value in os.environ.items() if name != DO_NOT_COMPILE}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", code]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return 1_000 * cpu, 1_000 * wall


def _figures(name: str, spans: list[tuple[float, float]]) -> Iterator[Figure]:
    for values, unit in zip(zip(*spans, strict=True), ("cpu ms", "wall ms"), strict=True):
        middle = statistics.median(values)
        yield Figure(name, middle, unit, min(values), max(values), len(values))
