"""Runner: where the functions of the pipeline run. The functions are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from omnigraph.pipeline.progress import Reporter

Item = TypeVar("Item")
Result = TypeVar("Result")


class Runner(Protocol):
    """Maps a function over items, each on its own, and returns the results in order."""

    @property
    def name(self) -> str:
        """What a load result calls the engine."""

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        reporter: Reporter,
        rows_of: Callable[[Result], int] = lambda _: 0,
    ) -> list[Result]:
        """Apply `function`, which can be pickled, to every item.

        Raises:
            OmnigraphError: What the function raised, or that the engine failed.
        """


class InlineRunner:
    """Runs everything in this process, one item after the other."""

    name = "inline"

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
