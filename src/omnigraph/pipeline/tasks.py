"""Tasks: work of other packages as tasks of a runner, where the caller has chosen Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from omnigraph.pipeline.engine import SparkUse, choose_runner
from omnigraph.pipeline.progress import Reporter
from omnigraph.storage.content import Spread
from omnigraph.storage.work_progress import begin_stage

Item = TypeVar("Item")
Result = TypeVar("Result")

_TASKS_PER_CORE = 4


def choose_spread(spark: SparkUse) -> Spread | None:
    """Tasks, when the caller has chosen where Spark runs; None for this process."""
    return partial(_spread_over_tasks, spark) if spark.is_chosen else None


def _spread_over_tasks(
    spark: SparkUse,
    function: Callable[[Item], Result],
    items: Sequence[Item],
    /,
    stage: str | None = None,
    rows_of: Callable[[Result], int] = lambda _: 0,
) -> list[Result]:
    """Call a function for every item, several of them in a task."""
    runner = choose_runner("spark", stays=False, spark=spark)
    count = max(1, min(len(items), runner.parallelism * _TASKS_PER_CORE))
    # Dealt out: neighbours are often alike, and the largest would come together.
    groups = [items[number::count] for number in range(count) if items]
    call = partial(call_each, function)
    found = runner.map(call, groups, _report(stage, len(groups)), partial(_sum_rows, rows_of))
    return [found[place % count][place // count] for place in range(len(items))]


def _report(stage: str | None, tasks: int) -> Reporter:
    """What passes the figures of a job on to the listener of the call."""
    listener = None if stage is None else begin_stage(stage, tasks)
    if listener is None:
        return Reporter(None)
    return Reporter(lambda job: listener.update(job.done, job.rows))


def _sum_rows(rows_of: Callable[[Result], int], results: Sequence[Result]) -> int:
    return sum(map(rows_of, results))


def call_each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [function(item) for item in items]
