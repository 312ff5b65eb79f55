"""QueryRunner: on the event loop, or in a thread; equal queries share one thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from omnigraph.nonblocking import may_block
from omnigraph.server import query_runner
from omnigraph.server.query_runner import QueryRunner
from omnigraph.server.worker_pool import WorkerPool


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(8, "test")
    yield made
    made.close()


class Query:
    """Blocks on its first run."""

    def __init__(self, *, is_ready: bool = True, seconds: float = 0.0) -> None:
        self.is_ready = is_ready
        self.seconds = seconds
        self.threads: list[str] = []

    def run(self) -> str:
        if not self.is_ready:
            may_block()
            time.sleep(self.seconds)
            self.is_ready = True
        self.threads.append(threading.current_thread().name)
        return "answer"


def in_loop(pool: WorkerPool, work: Callable[[QueryRunner], object]) -> None:
    async def run() -> None:
        await work(QueryRunner(pool))  # type: ignore[misc]

    asyncio.run(run())


def test_a_query_that_does_not_block_runs_on_the_event_loop(pool: WorkerPool) -> None:
    query = Query()

    async def use(runner: QueryRunner) -> None:
        assert await runner.run("q", query.run) == "answer"

    in_loop(pool, use)
    assert query.threads == [threading.current_thread().name]


def test_a_query_that_blocks_runs_in_a_thread(pool: WorkerPool) -> None:
    query = Query(is_ready=False)

    async def use(runner: QueryRunner) -> None:
        assert await runner.run("q", query.run) == "answer"

    in_loop(pool, use)
    assert [name[:4] for name in query.threads] == ["test"]


def test_equal_queries_share_one_thread(pool: WorkerPool) -> None:
    query = Query()

    async def use(runner: QueryRunner) -> None:
        await runner.run("q", query.run)
        query.is_ready, query.seconds = False, 0.05
        query.threads.clear()
        assert await asyncio.gather(*(runner.run("q", query.run) for _ in range(8)))

    in_loop(pool, use)
    assert len(query.threads) == 8
    assert sum(name.startswith("test") for name in query.threads) == 1


def test_queries_that_always_block_do_not_wait_for_each_other(pool: WorkerPool) -> None:
    together = threading.Barrier(8, timeout=30)

    def run_slowly() -> int:
        may_block()
        return together.wait()

    async def use(runner: QueryRunner) -> None:
        found = await asyncio.gather(*(runner.run("q", run_slowly) for _ in range(8)))
        assert sorted(found) == list(range(8))

    in_loop(pool, use)


def test_a_waiting_query_runs_alone_when_the_shared_one_fails(pool: WorkerPool) -> None:
    """The shared run failed, or its values were evicted again."""
    query = Query()
    fails = [True]

    def fail_first() -> str:
        may_block()
        if fails.pop():
            fails.extend([False] * 8)
            time.sleep(0.05)
            raise ValueError("no")
        return "answer"

    async def use(runner: QueryRunner) -> None:
        await runner.run("q", query.run)
        runs = (runner.run("q", fail_first) for _ in range(8))
        found = await asyncio.gather(*runs, return_exceptions=True)
        assert [str(each) for each in found] == ["no", *["answer"] * 7]
        assert await runner.run("q", fail_first) == "answer"

    in_loop(pool, use)


def test_a_bounded_number_of_query_keys_is_remembered(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_runner, "NONBLOCKING_MAX", 3)
    query = Query()

    async def use(runner: QueryRunner) -> None:
        for number in (0, 1, 2, 0, 3):
            await runner.run(number, query.run)
        assert list(runner._nonblocking) == [2, 0, 3]

    in_loop(pool, use)
