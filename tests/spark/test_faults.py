"""Workers that die, a user who interrupts, a disk that fills: one session, and a whole graph."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import omnigraph as og
from omnigraph.errors import OmnigraphError, SparkError, StorageFull
from omnigraph.pipeline.engine import CONCURRENCY_VARIABLE, PART_BYTES_VARIABLE
from omnigraph.pipeline.stage import stage_range
from tests.depth import depth
from tests.pipeline.conftest import SCHEMA, person, unclaimed_files
from tests.pipeline.test_kills import assert_whole, data, graph_path
from tests.small_disk import disk, resize, used
from tests.suite_spark import SPARK_DAEMON

__all__ = ["data", "disk", "graph_path"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PART_BYTES_VARIABLE, "300")


@contextmanager
def after_each_range(action: Callable[[], object]) -> Iterator[None]:
    """Have the workers do something after each range they have staged."""

    def stage(plan: Any, task: Any) -> Any:
        result = stage_range(plan, task)
        action()
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.pipeline.staged.stage_range", stage)
        yield


def load(path: Path, data: Path) -> og.LoadResult:
    with og.open(path) as graph:
        return graph.load(data, mode="merge", engine="spark")


def test_workers_that_are_killed_are_replaced_and_every_row_is_there_once(
    spark: Any, graph_path: Path, data: Path
) -> None:
    """Each worker process dies with its third range; Spark gives its task to another one."""

    def die_at_the_third() -> None:
        import omnigraph.pipeline.stage as home

        home.ranges_seen = getattr(home, "ranges_seen", 0) + 1  # type: ignore[attr-defined]
        if home.ranges_seen == 3:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGKILL)

    with after_each_range(die_at_the_third):
        result = load(graph_path, data)

    assert result.tables == {"edge:Knows": 20, "node:Person": 20}
    assert assert_whole(graph_path)


def test_a_task_that_always_dies_fails_the_load_with_a_typed_error(
    spark: Any, graph_path: Path, data: Path
) -> None:
    def die_with_the_second() -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.partitionId() == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with (
        after_each_range(die_with_the_second),
        pytest.raises(SparkError, match="a Spark job failed: a worker process died") as caught,
    ):
        load(graph_path, data)

    assert "py4j" not in str(caught.value).lower()
    assert not assert_whole(graph_path)


def test_ctrl_c_cancels_the_load_and_leaves_nothing(
    spark: Any, graph_path: Path, data: Path
) -> None:
    scratch = graph_path / "__load"

    def interrupt() -> None:
        wait_for(lambda: bool(list(scratch.glob("*/nodes/*/data/*.lance"))))
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with after_each_range(lambda: time.sleep(1)), pytest.raises(KeyboardInterrupt):
            load(graph_path, data)
    finally:
        signal.signal(signal.SIGINT, before)

    assert list(scratch.iterdir()) == []
    assert not assert_whole(graph_path)


@pytest.mark.parametrize("seed", range(depth(1, 10)))
def test_worker_processes_killed_at_random_moments_leave_a_whole_graph(
    spark: Any, graph_path: Path, data: Path, seed: int
) -> None:
    """The load goes on with other workers, or fails; the graph is the new one or the old one."""
    chance = random.Random(seed)
    kills = 0

    with (
        suppress(SparkError),
        after_each_range(lambda: time.sleep(0.05)),
        in_background(lambda: load(graph_path, data)) as is_running,
    ):
        wait_for(lambda: bool(worker_processes()))
        assert worker_processes(), "there is none to kill"
        while is_running() and kills < 3:
            time.sleep(chance.random() * 0.5)
            for process in chance.sample(worker_processes(), k=min(1, len(worker_processes()))):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
                    kills += 1

    assert_whole(graph_path)


def worker_processes() -> list[psutil.Process]:
    """The Python processes of the session's executors, not the daemon that forks them."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            parent = process.parent()
            if parent is not None and SPARK_DAEMON in " ".join(parent.cmdline()):
                found.append(process)
    return found


@contextmanager
def in_background(action: Callable[[], object]) -> Iterator[Callable[[], bool]]:
    """Run an action in a thread; gives a way to see whether it runs, and its error at the end."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield thread.is_alive
    thread.join(120)
    assert not thread.is_alive(), "the load hangs"
    if errors:
        raise errors[0]


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def test_a_disk_that_fills_up_during_a_spark_load_leaves_the_graph_as_it_was(
    spark: Any, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first staged part and in the middle: a typed error, no leftovers, then it works."""
    monkeypatch.setenv(PART_BYTES_VARIABLE, "100000")
    resize(disk, 16 << 20)
    records = [person(f"p{n}", tags=[os.urandom(800).hex()]) for n in range(400)]
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, records)))
    with og.init(disk / "graph", schema=SCHEMA, self_care=False) as graph:
        graph.load([person("before")], mode="append")
        for room in (0, 300_000):
            resize(disk, used(disk) + room)
            with pytest.raises(OmnigraphError) as caught:
                graph.load(data, mode="append", engine="spark")
            assert isinstance(caught.value, StorageFull), caught.value
            assert "free some space" in str(caught.value)
            resize(disk, 16 << 20)
            assert unclaimed_files(graph) == []
            assert graph.nodes("Person").count_rows() == 1

        assert graph.load(data, mode="append", engine="spark").tables == {"node:Person": 400}
        assert graph.nodes("Person").count_rows() == 401
        assert unclaimed_files(graph) == []


@pytest.mark.accepts("S-068")
def test_parts_are_written_concurrently_and_commits_take_turns(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`OMNIGRAPH_LOAD_CONCURRENCY` tables are staged at a time, and never two are committed."""
    probe = Probe(monkeypatch)
    names = [f"T{n}" for n in range(6)]
    schema = "\n".join(f"node {name} {{ name: String @key }}" for name in names)
    records = [{"type": name, "data": {"name": "x"}} for name in names]
    most: dict[str, dict[str, int]] = {}
    for limit in ("1", "3"):
        monkeypatch.setenv(CONCURRENCY_VARIABLE, limit)
        with og.init(tmp_path / limit, schema=schema, self_care=False) as graph:
            before = graph.snapshot().manifest_version
            graph.load(records, mode="append", engine="spark")
            assert graph.snapshot().manifest_version == before + 1
        most[limit] = probe.most_at_once()

    assert most["1"] == {"stage_append": 1, "commit_staged": 1}
    assert most["3"] == {"stage_append": 3, "commit_staged": 1}


class Probe:
    """How many calls of the store's steps run at the same time; each is made to last a little."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from omnigraph.storage.tables import TableStorage
        from omnigraph.storage.unattached import UnattachedStaging

        self._lock = threading.Lock()
        self._now: dict[str, int] = {}
        self._most: dict[str, int] = {}
        for kind, name in ((UnattachedStaging, "stage_append"), (TableStorage, "commit_staged")):
            monkeypatch.setattr(kind, name, self._counted(name, getattr(kind, name)))

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                self._now[name] = self._now.get(name, 0) + 1
                self._most[name] = max(self._most.get(name, 0), self._now[name])
            try:
                time.sleep(0.1)
                return real(*arguments, **named)
            finally:
                with self._lock:
                    self._now[name] -= 1

        return call

    def most_at_once(self) -> dict[str, int]:
        found, self._most = self._most, {}
        return found
