"""Tasks: work of other packages as tasks of a runner, where the caller has chosen Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from omnigraph.pipeline.engine import SparkUse, choose_runner
from omnigraph.pipeline.progress import Reporter
from omnigraph.storage.content import Spread

Item = TypeVar("Item")
Result = TypeVar("Result")

_TASKS_PER_CORE = 4


def choose_spread(spark: SparkUse) -> Spread | None:
    """Tasks, when the caller has chosen where Spark runs; None for this process."""
    return partial(_spread_over_tasks, spark) if spark.is_chosen else None


def _spread_over_tasks(
    spark: SparkUse, function: Callable[[Item], Result], items: Sequence[Item]
) -> list[Result]:
    """Call a function for every item, several of them in a task."""
    runner = choose_runner("spark", stays=False, spark=spark)
    count = max(1, min(len(items), runner.parallelism * _TASKS_PER_CORE))
    # Dealt out: neighbours are often alike, and the largest would come together.
    groups = [items[number::count] for number in range(count) if items]
    found = runner.map(partial(_call_each, function), groups, Reporter(None))
    return [found[place % count][place // count] for place in range(len(items))]


def _call_each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [function(item) for item in items]
