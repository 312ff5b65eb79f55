"""Threads: what blocks runs outside the event loop, whatever becomes of it or of who asked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from omnigraph.server.threads import Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads(2, "test")
    yield made
    made.close()


def test_results_and_errors_reach_who_asked(threads: Threads) -> None:
    async def ask() -> tuple[int, int]:
        with pytest.raises(ValueError, match="invalid literal"):
            await threads.run(int, "x")
        return await threads.run(int, "7"), await threads.run(int, "11", base=2)

    assert asyncio.run(ask()) == (7, 3)


def test_as_much_runs_at_once_as_there_are_threads(threads: Threads) -> None:
    together = threading.Barrier(2, timeout=30)

    async def ask() -> None:
        await asyncio.gather(threads.run(together.wait), threads.run(together.wait))

    asyncio.run(ask())


def test_the_event_loop_goes_on_meanwhile(threads: Threads) -> None:
    is_open = threading.Event()

    async def ask() -> bool:
        asyncio.get_running_loop().call_later(0.01, is_open.set)
        return await threads.run(is_open.wait, 30)

    assert asyncio.run(ask())


def test_who_no_longer_waits_leaves_the_thread_whole(threads: Threads) -> None:
    is_open = threading.Event()

    async def ask() -> list[int]:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await threads.run(is_open.wait)
        is_open.set()
        return await asyncio.gather(*(threads.run(int, "7") for _ in range(4)))

    assert asyncio.run(ask()) == [7] * 4


def test_closing_waits_for_what_was_given() -> None:
    threads, done = Threads(2, "test"), list[int]()

    def work(number: int) -> None:
        time.sleep(0.01)
        done.append(number)

    for number in range(6):
        threads.give(partial(work, number))
    threads.close()

    assert sorted(done) == list(range(6))
