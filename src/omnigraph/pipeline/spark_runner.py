"""SparkRunner: the functions of the pipeline, on the executors of a Spark session.

Spark only schedules: a task reads its own input and writes its own files, and what crosses to the
JVM is small. Worker processes import Lance themselves; a process that forks must never hold it.
"""

from __future__ import annotations

import gc
import logging
import re
import threading
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar
from uuid import uuid4

from omnigraph.errors import OmnigraphError, SparkError
from omnigraph.pipeline.progress import Reporter

Item = TypeVar("Item")
Result = TypeVar("Result")

_POLL_SECONDS = 0.1
_CANCEL_SECONDS = 20.0

log = logging.getLogger("omnigraph.spark")


class SparkRunner:
    """Runs functions as Spark tasks, one task per item."""

    name = "spark"

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        reporter: Reporter,
        rows_of: Callable[[Result], int] = lambda _: 0,
    ) -> list[Result]:
        wanted = list(items)
        if not wanted:
            return []
        context = self._spark.sparkContext
        rows = context.accumulator(0)
        job = _Job(context, _task(function, rows_of, rows), wanted)

        def tell(done: int) -> None:
            reporter.update(done, rows.value or None)

        # Asking Spark how far it is costs as much as a small job.
        answers = job.run(tell if reporter.is_heard else None)
        tell(len(wanted))
        for answer in answers:
            if isinstance(answer, OmnigraphError):
                raise answer
        return answers


class _Job:
    """One Spark job in a thread of its own, so that this one can watch it and be interrupted."""

    def __init__(self, context: Any, task: Callable[[Any], Any], items: list[Any]) -> None:
        self._context = context
        self._task = task
        self._items = items
        self._group = f"omnigraph-{uuid4()}"
        self._answers: list[Any] = []
        self._error: BaseException | None = None

    def run(self, on_progress: Callable[[int], None] | None) -> list[Any]:
        thread = threading.Thread(target=self._collect, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                if on_progress is not None and thread.is_alive():
                    on_progress(self._count_completed())
        except BaseException:
            self._context.cancelJobGroup(self._group)
            thread.join(_CANCEL_SECONDS)
            raise
        if self._error is not None:
            log.debug("a Spark job failed", exc_info=self._error)
            raise SparkError(_failure(str(self._error))) from None
        return self._answers

    def _collect(self) -> None:
        try:
            self._context.setJobGroup(self._group, "omnigraph", interruptOnCancel=True)
            parallel = self._context.parallelize(self._items, len(self._items))
            self._answers = parallel.map(self._task).collect()
        except BaseException as error:
            self._error = error

    def _count_completed(self) -> int:
        tracker = self._context.statusTracker()
        done = 0
        for job_id in tracker.getJobIdsForGroup(self._group):
            job = tracker.getJobInfo(job_id)
            for stage_id in job.stageIds if job is not None else []:
                stage = tracker.getStageInfo(stage_id)
                done += stage.numCompletedTasks if stage is not None else 0
        return done


@cache
def freeze_modules() -> None:
    """Exclude all imported modules from garbage collection, once per process.

    Spark makes a worker collect garbage after every task; scanning Lance, Arrow and our own modules
    each time took ten times as long as a small task.
    """
    gc.freeze()


def _task(
    function: Callable[[Item], Result], rows_of: Callable[[Result], int], rows: Any
) -> Callable[[Item], Result | OmnigraphError]:
    """The function with our errors as values: Spark would retry a raised one and lose its type."""

    def run(item: Item) -> Result | OmnigraphError:
        try:
            result = function(item)
        except OmnigraphError as error:
            return error
        rows.add(rows_of(result))
        freeze_modules()
        return result

    return run


def _failure(text: str) -> str:
    """Why a job failed, by the text of Spark's error."""
    if re.search(r"OutOfMemoryError|Java heap space|MemoryError", text):
        reason = "it ran out of memory; give it more or set OMNIGRAPH_LOAD_PART_BYTES lower"
    elif re.search(r"Python worker exited|worker.*crashed|EOFException", text):
        reason = "a worker process died repeatedly"
    elif re.search(r"ExecutorLostFailure|executor.*(lost|exited)", text, re.IGNORECASE):
        reason = "an executor was lost repeatedly"
    elif re.search(r"cancelled|canceled|SparkContext was shut down|stopped SparkContext", text):
        reason = "the job was cancelled or the session was stopped"
    elif re.search(r"No module named '?(omnigraph|lance|pyarrow)", text):
        reason = "a worker cannot import omnigraph; install it on every machine of the cluster"
    else:
        reason = "a task failed repeatedly; set OMNIGRAPH_SPARK_LOG=warn to see its log"
    return f"a Spark job failed: {reason} — nothing was written"
