"""Faults amid a check by exchange: the right answer or a typed error, and no leftovers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import SparkError, StorageFull
from omnigraph.pipeline.engine import CHECK_ROWS_VARIABLE, PART_BYTES_VARIABLE
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.spark_runner import SparkRunner
from tests.depth import IS_TORTURE
from tests.pipeline.conftest import SCHEMA, SPARK, knows, person, unclaimed_files
from tests.small_disk import disk, full, resize, used
from tests.spark.cluster_work import WALK, make_records
from tests.spark.test_cluster_faults import assert_ages
from tests.spark.test_faults import wait_for
from tests.suite_spark import SPARK_DISK_SIZE

__all__ = ["disk"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

STAGES = ("emit", "reduce")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PART_BYTES_VARIABLE, "1500")
    monkeypatch.setenv(CHECK_ROWS_VARIABLE, "10")


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "graph", schema=SCHEMA, self_care=False) as made:
        made.load([person(f"p{n}", age=0) for n in range(20)], mode="append", engine="inline")
        yield made


def records() -> str:
    """Forty people, half of them known and each of them twice, and edges."""
    people = [person(f"p{n % 40}", age=1 + n // 40) for n in range(80)]
    edges = [knows("p0", f"p{n}", id=f"k{n}") for n in range(40)]
    return "//\n" + "\n".join(map(json.dumps, people + edges))


@contextmanager
def around_each_stage(action: Callable[[str], None]) -> Iterator[None]:
    """Have the workers do something whenever they have a block or a bucket in hand."""
    real, number = SparkRunner.exchange, [0]

    def exchange(self: Any, emit: Any, reduce: Any, *rest: Any, **named: Any) -> Any:
        number[0] += 1
        stage = f"exchange {number[0]}"

        def emit_and_act(item: Any) -> Any:
            for block in emit(item):
                yield block
                action(f"{stage} emit")

        def reduce_and_act(blocks: Any) -> Any:
            result = reduce(blocks)
            action(f"{stage} reduce")
            return result

        return real(self, emit_and_act, reduce_and_act, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkRunner, "exchange", exchange)
        yield


def test_a_worker_killed_once_at_each_stage_of_a_check_changes_no_answer(
    spark: Any, graph: og.Graph, tmp_path: Path
) -> None:
    """Five exchanges: ids and regrouping, once more without the losing records, and rules."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def die_once(stage: str) -> None:
        try:
            os.close(os.open(marks / stage, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    with around_each_stage(die_once):
        result = graph.load(records(), mode="merge", engine="spark")

    killed = sorted(path.name for path in marks.iterdir())
    assert killed == [f"exchange {n} {stage}" for n in range(1, 6) for stage in STAGES]
    assert dict(result.tables) == {"edge:Knows": 40, "node:Person": 40}
    ages = {row["id"]: row["age"] for row in graph.nodes("Person").to_arrow().to_pylist()}
    assert ages == {f"p{n}": 2 for n in range(40)}
    assert graph.edges("Knows").count_rows() == 40
    assert unclaimed_files(graph) == []
    assert graph.verify().is_clean


@pytest.mark.skipif(not IS_TORTURE, reason="it starts many processes: `make torture`")
def test_a_bucket_that_always_kills_its_worker_fails_the_load(spark: Any, graph: og.Graph) -> None:
    def die(stage: str) -> None:
        if stage == "exchange 1 reduce":
            os.kill(os.getpid(), signal.SIGKILL)

    with around_each_stage(die), pytest.raises(SparkError, match="a worker process died") as caught:
        graph.load(records(), mode="merge", engine="spark")

    assert "py4j" not in str(caught.value).lower()
    assert unclaimed_files(graph) == []
    assert graph.nodes("Person").count_rows() == 20


@pytest.mark.parametrize("engine", ["inline", SPARK])
def test_a_disk_that_is_full_when_keys_are_exchanged_leaves_the_graph_as_it_was(
    engine: str, disk: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process blocks are on the disk of the graph; on Spark, what is replaced."""
    resize(disk, 16 << 20)
    runner: Any = SparkRunner if engine == "spark" else InlineRunner
    real = runner.exchange

    def fill_and_exchange(*given: Any, **named: Any) -> Any:
        resize(disk, used(disk))
        return real(*given, **named)

    with og.init(disk / "graph", schema=SCHEMA, self_care=False) as graph:
        graph.load([person(f"p{n}") for n in range(20)], mode="append", engine="inline")
        monkeypatch.setattr(runner, "exchange", fill_and_exchange)
        with pytest.raises(StorageFull, match="free some space"):
            graph.load(records(), mode="merge", engine=engine)
        monkeypatch.setattr(runner, "exchange", real)
        resize(disk, 16 << 20)

        assert unclaimed_files(graph) == []
        assert graph.nodes("Person").count_rows() == 20
        assert graph.load(records(), mode="merge", engine="inline").tables["node:Person"] == 40


def test_a_full_scratch_disk_of_spark_fails_with_its_reason_until_there_is_room(
    spark: Any, spark_disk: Path, tmp_path: Path
) -> None:
    """The load and the read say why, nothing is written, and both work on the same Spark later."""
    if not spark_disk.is_mount():
        pytest.skip("Spark has no disk of its own: this machine lets none be mounted")
    with og.init(tmp_path / "graph", schema=SCHEMA, self_care=False) as graph:
        graph.load(make_records(1), mode="merge", engine="inline")
        # Before the disk is full, so that what Spark keeps of the programs themselves is there.
        assert graph.query(WALK, engine="spark").rows() == [{"n": 80}]
        with full(spark_disk, SPARK_DISK_SIZE):
            with pytest.raises(SparkError) as of_load:
                graph.load(make_records(3), mode="merge", engine="spark")
            with pytest.raises(SparkError) as of_read:
                graph.query(WALK, engine="spark").rows()
        assert_ages(tmp_path / "graph", 1)

        again = graph.load(make_records(3), mode="merge", engine="spark")
        rows = graph.query(WALK, engine="spark").rows()

    reason = "there is no space left on the disk of an executor"
    assert f"a Spark job failed: {reason}" in str(of_load.value)
    assert "nothing was written" in str(of_load.value)
    assert "the read failed on Spark: there is no space left on the disk" in str(of_read.value)
    assert again.tables == {"edge:Knows": 40, "node:Person": 40}
    assert rows == [{"n": 80}]
    assert_ages(tmp_path / "graph", 3)
    wait_for(lambda: spark.sparkContext.statusTracker().getActiveJobsIds() == [])
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
