"""SparkRunner: the functions of the pipeline, on the executors of a Spark session.

Spark only schedules: a task reads its own input and writes its own files, and what crosses to the
JVM is small. Worker processes import Lance themselves; a process that forks must never hold it.
"""

from __future__ import annotations

import gc
import logging
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from omnigraph.errors import OmnigraphError, SparkError
from omnigraph.pipeline.exchange import BLOCK_BYTES, Block
from omnigraph.pipeline.failure_reasons import OUT_OF_MEMORY, find_reason
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
        task = _task(function, rows_of, rows)

        def collect() -> list[Any]:
            return context.parallelize(wanted, len(wanted)).map(task).collect()  # type: ignore[no-any-return]

        def tell(done: int) -> None:
            reporter.update(done, rows.value or None)

        answers = _run(context, collect, tell, reporter)
        tell(len(wanted))
        return answers

    @property
    def parallelism(self) -> int:
        return int(self._spark.sparkContext.defaultParallelism)

    def exchange(
        self,
        emit: Callable[[Item], Iterable[Block]],
        reduce: Callable[[Iterable[Block]], Result],
        items: Iterable[Item],
        count: int,
        reporter: Reporter,
        spill: str | None = None,
    ) -> list[Result]:
        wanted = list(items)
        collect = partial(_exchange, self._spark, emit, reduce, wanted, count)
        return _run(self._spark.sparkContext, collect, reporter.update, reporter)


def exchange_blocks(
    spark: Any,
    emit: Callable[[Item], Iterable[Block]],
    reduce: Callable[[Iterable[Block]], Result],
    items: list[Item],
    count: int,
) -> list[Result]:
    """The exchange of a runner, as jobs of the calling thread: its job group cancels them."""
    return _without_errors(_exchange(spark, emit, reduce, items, count))


def _exchange(
    spark: Any,
    emit: Callable[[Item], Iterable[Block]],
    reduce: Callable[[Iterable[Block]], Result],
    items: list[Item],
    count: int,
) -> list[Any]:
    if not items:
        return []
    numbers = spark.range(0, len(items), 1, len(items))
    blocks = numbers.mapInArrow(_scatter(emit, items), _BLOCK_COLUMNS)
    # Bucket n is partition n; hashing the number would put several into one partition.
    reduced = blocks.repartitionById(count, "bucket").mapInArrow(_gather(reduce), _RESULT)
    return [pickle.loads(row["result"]) for row in reduced.collect()]


def _run(
    context: Any,
    collect: Callable[[], list[Any]],
    tell: Callable[[int], None],
    reporter: Reporter,
) -> list[Any]:
    """Run a job and raise the first of our errors among its answers."""
    # Asking Spark how far it is costs as much as a small job.
    return _without_errors(_Job(context, collect).run(tell if reporter.is_heard else None))


def _without_errors(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if isinstance(answer, OmnigraphError):
            raise answer
    return answers


class _Job:
    """One Spark job in a thread of its own, so that this one can watch it and be interrupted."""

    def __init__(self, context: Any, collect: Callable[[], list[Any]]) -> None:
        self._context = context
        self._collect_answers = collect
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
            self._answers = self._collect_answers()
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


_BLOCK_COLUMNS = "bucket int, kind string, block binary"
_BLOCK_SCHEMA = pa.schema([("bucket", pa.int32()), ("kind", pa.utf8()), ("block", pa.binary())])
_RESULT = "result binary"
_ERROR = "error"
"""The kind of a block that is an error of ours: as a value, for the same reason as in `_task`."""

Batches = Iterator[pa.RecordBatch]


def _scatter(
    emit: Callable[[Item], Iterable[Block]], items: list[Item]
) -> Callable[[Batches], Batches]:
    """The blocks of the items whose numbers come in, several in a batch."""

    def blocks_of(batches: Batches) -> Iterator[Block]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    yield from emit(items[number])
                except OmnigraphError as error:
                    yield Block(0, _ERROR, pickle.dumps(error))
        freeze_modules()

    def scatter(batches: Batches) -> Batches:
        pending: list[Block] = []
        size = 0
        for block in blocks_of(batches):
            pending.append(block)
            size += len(block.data)
            if size >= BLOCK_BYTES:
                yield _to_batch(pending)
                pending, size = [], 0
        if pending:
            yield _to_batch(pending)

    return scatter


def _to_batch(blocks: list[Block]) -> pa.RecordBatch:
    columns = [[b.bucket for b in blocks], [b.kind for b in blocks], [b.data for b in blocks]]
    arrays = [
        pa.array(each, field.type) for each, field in zip(columns, _BLOCK_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_BLOCK_SCHEMA)


def _gather(reduce: Callable[[Iterable[Block]], Result]) -> Callable[[Batches], Batches]:
    """What a function makes of the blocks of one bucket, if there are any."""

    def blocks_of(batches: Batches) -> Iterator[Block]:
        for batch in batches:
            bucket, kind, data = batch.columns
            for row in range(batch.num_rows):
                block = Block(bucket[row].as_py(), kind[row].as_py(), data[row].as_py())
                if block.kind == _ERROR:
                    raise pickle.loads(block.data)
                yield block

    def gather(batches: Batches) -> Batches:
        blocks = blocks_of(batches)
        try:
            first = next(blocks, None)
            if first is None:
                return
            answer: Result | OmnigraphError = reduce(chain([first], blocks))
        except OmnigraphError as error:
            answer = error
        freeze_modules()
        yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(answer)]})

    return gather


def _failure(text: str) -> str:
    """Why a job failed, by the text of Spark's error."""
    reason = find_reason(text)
    if reason == OUT_OF_MEMORY:
        reason += " or set OMNIGRAPH_LOAD_PART_BYTES lower"
    return f"a Spark job failed: {reason} — nothing was written"
