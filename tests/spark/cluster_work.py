"""Work of a driver whose executors die, in a process of its own.

A merge is checked by exchange, where an executor dies with a block and one with a bucket; then
there is a walk of two hops, where one dies while it reads edges.

Called as a module: GRAPH MARKS, where MARKS is a folder for what has died.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

import omnigraph as og
from omnigraph.pipeline.spark_query import source, walk
from omnigraph.pipeline.spark_runner import SparkRunner

WALK = "query q() { match { $p: Person $p knows{1,2} $f } return { count($f) as n } }"


def make_records(age: int) -> list[dict[str, Any]]:
    """Forty people, each of them twice, and an edge from each to the next."""
    people = [{"type": "Person", "data": {"name": f"p{n % 40}", "age": age}} for n in range(80)]
    edges: list[dict[str, Any]] = [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{(n + 1) % 40}", "data": {"id": f"k{n}"}}
        for n in range(40)
    ]
    return people + edges


def kill_once(marks: str, stage: str) -> None:
    """Kill the executor of this worker, and the worker with it; only the first one to come."""
    try:
        os.close(os.open(os.path.join(marks, stage), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    for each in psutil.Process().parents():
        if each.name() == "java":
            each.kill()
            break
    os.kill(os.getpid(), signal.SIGKILL)


def _check_and_kill(graph: og.Graph, marks: str) -> None:
    real: Callable[..., Any] = SparkRunner.exchange

    def exchange(self: Any, emit: Any, reduce: Any, *rest: Any, **named: Any) -> Any:
        def emit_and_die(item: Any) -> Any:
            for block in emit(item):
                yield block
                kill_once(marks, "emit")

        def reduce_and_die(blocks: Any) -> Any:
            result = reduce(blocks)
            kill_once(marks, "reduce")
            return result

        return real(self, emit_and_die, reduce_and_die, *rest, **named)

    SparkRunner.exchange = exchange  # type: ignore[method-assign]
    print(dict(graph.load(make_records(2), mode="merge", engine="spark").tables), flush=True)


def _read_and_kill(graph: og.Graph, marks: str) -> None:
    real = source.read_parts

    def read(*given: Any) -> Any:
        kill_once(marks, "read")
        return real(*given)

    source.read_parts = read  # type: ignore[assignment]
    walk.LOOKED_UP_PAIRS = 0  # every hop is a job of its own
    print(graph.query(WALK, engine="spark").rows(), flush=True)


def main(path: str, marks: str) -> None:
    # Blocks that went with an executor are asked for again before they are made again.
    og.spark.session({"spark.shuffle.io.retryWait": "200ms"})
    with og.open(path) as graph:
        _check_and_kill(graph, marks)
        _read_and_kill(graph, marks)
    deadline = time.monotonic() + 30
    tracker = og.spark.session().sparkContext.statusTracker()
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.05)
    print("jobs left:", len(tracker.getActiveJobsIds()), flush=True)


if __name__ == "__main__":
    # Under the name of the module: workers look up its functions by that name.
    from tests.spark.cluster_work import main as work

    work(*sys.argv[1:])
