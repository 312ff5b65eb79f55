"""Runner: where the functions of the pipeline run. The functions are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    """Runs everything in this process, one item after the other."""

    name = "inline"
    parallelism = 1

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        reporter: Reporter,
        rows_of: Callable[[Result], int] = lambda _: 0,
    ) -> list[Result]:
        results: list[Result] = []
        rows = 0
        for item in items:
            result = function(item)
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
            for done, item in enumerate(items, 1):
                for block in emit(item):
                    assert block.bucket < count, block.bucket
                    blocks.write(block)
                reporter.update(done)
            blocks.flush()
            return [reduce(blocks.read(bucket)) for bucket in blocks.list_buckets()]
