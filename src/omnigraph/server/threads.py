"""Threads: run what blocks outside the event loop.

With a pool of `concurrent.futures` a served point query costs a fifth more: its results can be
waited for from any thread, and here only the event loop waits for them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Threads:
    """A fixed number of threads that run what they are given, in order."""

    def __init__(self, count: int, name: str) -> None:
        self._work = SimpleQueue[Callable[[], object] | None]()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}_{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> asyncio.Future[Result]:
        """Run something in one of the threads, for the event loop to wait for."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def run() -> None:
            settle: tuple[Callable[[Any], None], Any]
            try:
                settle = future.set_result, work(*args, **kwargs)
            except BaseException as error:
                settle = future.set_exception, error
            with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
                loop.call_soon_threadsafe(_settle, future, *settle)

        self.give(run)
        return future

    def give(self, work: Callable[[], object]) -> None:
        """Run something when a thread is free; nobody asks what became of it."""
        self._work.put(work)

    def close(self) -> None:
        """Wait for what was given, and end."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # what was asked for must not live until the next question


def _settle(future: asyncio.Future[Any], settle: Callable[[Any], None], outcome: Any) -> None:
    if not future.done():  # else whoever waited for it has gone
        settle(outcome)
