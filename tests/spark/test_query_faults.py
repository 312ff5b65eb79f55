"""Reads on Spark whose workers die, or that are interrupted: the right answer, or an error."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import SparkError
from omnigraph.pipeline.spark_query import failures, pairs, source, walk
from tests.depth import IS_TORTURE, depth
from tests.spark.test_faults import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person
"""
WALK = """query q() { match { $p: Person $p knows{1,2} $f } return { count($f) as n } }"""
HOP = """query q() { match { $p: Person $p knows $f } return { count($f) as n } }"""
SHORTEST = """
query q() {
    match { $a: Person { name: "p0" } $b: Person { name: "p2" } $a $t:shortest knows $b }
    return { hops($t) as n, nodes($t) as way }
}
"""
DEATHS = depth(1, 3)
in_torture = pytest.mark.skipif(not IS_TORTURE, reason="it starts many processes: `make torture`")
read_parts = source.read_parts


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("faults") / "g.omni", schema=SCHEMA)
    records: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": f"p{n}"}} for n in range(20)
    ]
    # Rings of four: a search for paths ends when a level leads to no new node.
    ring = [(n, n - n % 4 + (n + 1) % 4) for n in range(20)]
    records += [{"edge": "Knows", "from": f"p{n}", "to": f"p{next_}"} for n, next_ in ring]
    graph.load(records, mode="append")
    return graph


@contextmanager
def before_each_read(action: Callable[[], object]) -> Iterator[None]:
    """Have tasks do something before they read a part of a table."""

    def read(*arguments: Any) -> Any:
        action()
        return read_parts(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "read_parts", read)
        # Every hop is a job of its own, and its frame is kept.
        patch.setattr(walk, "LOOKED_UP_PAIRS", 0)
        yield


def die_once(marks: Path) -> Callable[[], None]:
    """Kill this process, up to so many times in all."""

    def die() -> None:
        for number in range(DEATHS):
            try:
                (marks / str(number)).touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def assert_nothing_left(spark: Any) -> None:
    context = spark.sparkContext
    # Spark lists a job until the last of its tasks has ended.
    wait_for(lambda: context.statusTracker().getActiveJobsIds() == [])
    assert context._jsc.getPersistentRDDs().isEmpty()


def test_a_read_whose_workers_are_killed_gives_the_right_answer(
    spark: Any, graph: og.Graph, tmp_path: Path
) -> None:
    """Workers die one after the other while the hops of a walk are joined."""
    with before_each_read(die_once(tmp_path)):
        result = graph.query(WALK, engine="spark")
        rows = result.rows()
    del result

    assert sorted(path.name for path in tmp_path.iterdir()) == [str(n) for n in range(DEATHS)]
    assert rows == [{"n": 40}]
    assert_nothing_left(spark)


@in_torture
@pytest.mark.parametrize("stage", ["_emit_hashes", "_reduce_hashes"])
def test_a_worker_killed_while_repeated_pairs_are_looked_for_changes_no_answer(
    spark: Any, graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    real, die = getattr(pairs, stage), die_once(tmp_path)

    def die_and_work(*given: Any) -> Any:
        die()
        return real(*given)

    monkeypatch.setattr(pairs, stage, die_and_work)
    monkeypatch.setattr(pairs, "LOCAL_ROWS", 0)
    with og.open(graph.uri, mode="r") as again:
        rows = again.query(HOP, engine="spark").rows()

    assert len(list(tmp_path.iterdir())) == DEATHS
    assert rows == [{"n": 20}]
    assert_nothing_left(spark)


def test_what_spark_says_is_told_in_our_words() -> None:
    full = "java.io.IOException: No space left on device at sun.nio.ch.FileDispatcherImpl.write0"

    assert "no space left on the disk of an executor" in str(failures.to_error(full))
    assert "sun.nio" not in str(failures.to_error(full))
    assert str(failures.to_error("org.x.Unheard")).endswith("LOG=warn to see its log")


@in_torture
def test_a_task_that_always_dies_fails_the_read_with_a_typed_error(
    spark: Any, graph: og.Graph
) -> None:
    with (
        before_each_read(lambda: os.kill(os.getpid(), signal.SIGKILL)),
        pytest.raises(SparkError, match="a worker process died repeatedly"),
    ):
        graph.query(WALK, engine="spark")

    assert_nothing_left(spark)


@in_torture
def test_an_interrupt_cancels_the_jobs_of_a_read(spark: Any, graph: og.Graph) -> None:
    running = threading.Timer(2.0, _thread.interrupt_main)
    with before_each_read(lambda: time.sleep(60)):
        running.start()
        with pytest.raises(KeyboardInterrupt):
            graph.query(WALK, engine="spark")

    assert_nothing_left(spark)


def test_a_shortest_path_leaves_no_rows_with_the_executors(spark: Any, graph: og.Graph) -> None:
    """Every level is cut off from the ones before, and its rows are let go with the answer."""
    before = set(spark.sparkContext._jsc.getPersistentRDDs().keySet())

    rows = graph.query(SHORTEST, engine="spark").rows()

    assert rows == [{"n": 2, "way": ["p0", "p1", "p2"]}]
    assert set(spark.sparkContext._jsc.getPersistentRDDs().keySet()) <= before
