"""Faults amid the tasks of comparisons, merges, schema changes and upkeep.

Spark's next try gives the right answer, or there is a typed error and nothing is written.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import SparkError
from omnigraph.pipeline import tasks
from omnigraph.storage import content
from omnigraph.write.recovery_actions import RECOVERY_ACTOR
from tests.depth import IS_TORTURE
from tests.spark import test_upkeep_on_spark as upkeep
from tests.spark.test_upkeep_on_spark import notes, scattered

__all__ = ["notes", "scattered"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

MERGE = ("_compare", "_write_taken", "_mark")
SCHEMA = ("_count_group", "rewrite_group")
UPKEEP = ("rewrite_by_task", "_build_by_task", "_compare_file")


@contextmanager
def after_each_task(action: Callable[[str], object]) -> Iterator[None]:
    """Have the workers do something when a task has done its work, by the name of the work."""
    real = tasks.call_each

    def call_each(function: Any, items: Any) -> Any:
        results = real(function, items)
        named = function
        while isinstance(named, partial):
            # The work on a table is the last argument of what opens the table, or what is called.
            named = named.args[-1] if named.func.__name__ == "_work_on" else named.func
        action(named.__name__)
        return results

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "call_each", call_each)
        yield


def once(marks: Path, action: Callable[[], object]) -> Callable[[str], None]:
    """Do something the first time that each kind of work is done; a file is left for each."""

    def act(name: str) -> None:
        try:
            (marks / name).touch(exist_ok=False)
        except FileExistsError:
            return
        action()

    return act


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise RuntimeError("no such luck")


def merge(path: Path, spark: Any = None) -> Any:
    return upkeep.compare_and_merge(path, spark)


def change_schema(path: Path, spark: Any = None) -> Any:
    return upkeep.apply(path, upkeep.NEW_NOTES, spark)


def keep_up(path: Path, spark: Any = None) -> Any:
    with og.open(path, spark=spark, self_care=False) as graph:
        report = graph.optimize()
        assert graph.verify(content=True).is_clean
        counts = [(each.table_key, each.fragments_added) for each in report.tables]
        return counts, upkeep.answers(graph)


WORKS = {"merge": (merge, MERGE), "schema": (change_schema, SCHEMA), "upkeep": (keep_up, UPKEEP)}
FAULTS = {"dies": (die, "a worker process died"), "fails": (fail, "a Spark job failed")}
READS = ("_compare_file",)


def list_faults() -> list[tuple[str, str, str]]:
    """Work, one kind of its tasks that write or decide, and what always happens in those."""
    return [
        (name, stage, fault)
        for name, (_, stages) in WORKS.items()
        for stage in stages
        for fault in FAULTS
        if stage not in READS
    ]


@pytest.fixture
def path(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A graph for some work, and the same once more as `copy.omni`."""
    made: Path = request.getfixturevalue("scattered" if name == "upkeep" else "notes")
    if name == "merge":
        upkeep.change_both(made)
    monkeypatch.setattr(content, "SPREAD_BYTES", 0)
    shutil.rmtree(tmp_path / "copy.omni", ignore_errors=True)
    shutil.copytree(made, tmp_path / "copy.omni")
    return made


@pytest.mark.parametrize("name", [name for name in WORKS if IS_TORTURE or name == "merge"])
def test_a_worker_killed_once_in_each_kind_of_task_changes_no_answer(
    spark: Any, path: Path, name: str, tmp_path: Path
) -> None:
    """It dies when its files are written and its answer is not given yet; another one does it."""
    work, stages = WORKS[name]
    expected = work(tmp_path / "copy.omni")
    marks = tmp_path / "marks"
    marks.mkdir()

    with after_each_task(once(marks, die)):
        found = work(path, spark)

    assert {each.name for each in marks.iterdir()} >= set(stages)
    assert found == expected


@pytest.mark.skipif(not IS_TORTURE, reason="it starts many processes: `make torture`")
@pytest.mark.parametrize(("name", "stage", "fault"), list_faults())
def test_work_whose_tasks_always_fail_writes_nothing_and_says_so(
    spark: Any, path: Path, name: str, stage: str, fault: str, tmp_path: Path
) -> None:
    """Indexes are built over what a compaction has committed, which is undone, and says so."""
    work, _ = WORKS[name]
    action, reason = FAULTS[fault]
    with og.open(path, mode="r") as graph:
        before = list_states(graph)

    with (
        after_each_task(lambda each: action() if each == stage else None),
        pytest.raises(SparkError, match=reason) as caught,
    ):
        work(path, spark)

    assert "nothing was written" in str(caught.value)
    assert "no such luck" not in str(caught.value)
    with og.open(path, mode="r") as graph:
        assert list_states(graph) == before
        assert graph.verify(content=True).is_clean
    assert work(path, spark) == work(tmp_path / "copy.omni")


def list_states(graph: og.Graph) -> Any:
    """Every row, and the commits but those that undo what has failed."""
    commits = [each.commit_id for each in graph.commits() if each.actor != RECOVERY_ACTOR]
    return commits, upkeep.read_all(graph)
