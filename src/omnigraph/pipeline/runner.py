"""Runner: where the functions of the pipeline run. The functions are the same everywhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from omnigraph.pipeline.exchange import Block, Spill
from omnigraph.pipeline.progress import Reporter

Item = TypeVar("Item")
Result = TypeVar("Result")


class Runner(Protocol):
    """Maps a function over items, each on its own, or exchanges blocks between two functions."""

    @property
    def name(self) -> str:
        """What a load result calls the engine."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at a time."""

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        reporter: Reporter,
        rows_of: Callable[[Result], int] = lambda _: 0,
    ) -> list[Result]:
        """Apply `function`, which can be pickled, to every item: the results in order.

        Raises:
            OmnigraphError: What the function raised, or that the engine failed.
        """

    def exchange(
        self,
        emit: Callable[[Item], Iterable[Block]],
        reduce: Callable[[Iterable[Block]], Result],
        items: Iterable[Item],
        count: int,
        reporter: Reporter,
        spill: str | None = None,
    ) -> list[Result]:
        """Cut every item into blocks of `count` buckets, and reduce each bucket that has blocks.

        Both functions may run several times for one item or bucket. Blocks wait on the disk of the
        engine; in this process, in the directory `spill`.

        Raises:
            OmnigraphError: What a function raised, or that the engine failed.
        """


class InlineRunner:
    """Runs everything in this process, in some threads: Arrow and Lance work outside the lock."""

    name = "inline"

    def __init__(self, threads: int = 1) -> None:
        self.parallelism = threads

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        reporter: Reporter,
        rows_of: Callable[[Result], int] = lambda _: 0,
    ) -> list[Result]:
        results: list[Result] = []
        rows = 0
        for result in map_in_order(self.parallelism, function, items):
            results.append(result)
            rows += rows_of(result)
            reporter.update(len(results), rows or None)
        return results

    def exchange(
        self,
        emit: Callable[[Item], Iterable[Block]],
        reduce: Callable[[Iterable[Block]], Result],
        items: Iterable[Item],
        count: int,
        reporter: Reporter,
        spill: str | None = None,
    ) -> list[Result]:
        with Spill(spill) as blocks:

            def write(item: Item) -> None:
                for block in emit(item):
                    assert block.bucket < count, block.bucket
                    blocks.write(block)

            def read(bucket: int) -> Result:
                return reduce(blocks.read(bucket))

            for done, _ in enumerate(map_in_order(self.parallelism, write, items), 1):
                reporter.update(done)
            blocks.flush()
            return list(map_in_order(self.parallelism, read, blocks.list_buckets()))


def map_in_order(
    threads: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """The results in the order of the items, which are taken as threads become free.

    What the first item that fails raises is raised here, once no thread is at work any more.
    """
    if threads <= 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads, "load")
    running: deque[Future[Result]] = deque()
    try:
        for item in items:
            running.append(pool.submit(function, item))
            # One that waits for each that runs: no thread is idle while the first one takes long.
            if len(running) == 2 * threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
