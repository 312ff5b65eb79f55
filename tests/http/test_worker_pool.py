"""WorkerPool: blocking calls run outside the event loop, whatever their outcome or their waiter."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from omnigraph.server.worker_pool import WorkerPool


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(2, "test")
    yield made
    made.close()


def test_results_and_errors_reach_the_caller(pool: WorkerPool) -> None:
    async def ask() -> tuple[int, int]:
        with pytest.raises(ValueError, match="invalid literal"):
            await pool.run(int, "x")
        return await pool.run(int, "7"), await pool.run(int, "11", base=2)

    assert asyncio.run(ask()) == (7, 3)


def test_all_threads_run_concurrently(pool: WorkerPool) -> None:
    together = threading.Barrier(2, timeout=30)

    async def ask() -> None:
        await asyncio.gather(pool.run(together.wait), pool.run(together.wait))

    asyncio.run(ask())


def test_the_event_loop_is_not_blocked(pool: WorkerPool) -> None:
    is_open = threading.Event()

    async def ask() -> bool:
        asyncio.get_running_loop().call_later(0.01, is_open.set)
        return await pool.run(is_open.wait, 30)

    assert asyncio.run(ask())


def test_a_cancelled_waiter_does_not_lose_the_thread(pool: WorkerPool) -> None:
    is_open = threading.Event()

    async def ask() -> list[int]:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await pool.run(is_open.wait)
        is_open.set()
        return await asyncio.gather(*(pool.run(int, "7") for _ in range(4)))

    assert asyncio.run(ask()) == [7] * 4


def test_close_waits_for_all_submitted_calls() -> None:
    pool, done = WorkerPool(2, "test"), list[int]()

    def work(number: int) -> None:
        time.sleep(0.01)
        done.append(number)

    for number in range(6):
        pool.submit(partial(work, number))
    pool.close()

    assert sorted(done) == list(range(6))
