"""Query runner: run a query on the event loop if it does not block, otherwise in a thread.

Looking up a node in memory costs less than handing it to a thread, and a query that would block
raises `WouldBlock` before it begins. After a write, equal queries all miss the same cached values:
one of them loads these in a thread, the others wait for it here and try again. In threads of their
own they would compete for the interpreter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from omnigraph.lru import Lru
from omnigraph.nonblocking import WouldBlock, nonblocking
from omnigraph.server.worker_pool import WorkerPool

Result = TypeVar("Result")

NONBLOCKING_MAX = 1_024
"""How many keys of queries that ran without blocking are remembered."""


class QueryRunner:
    """Runs queries for one event loop. Queries of equal keys need the same values in memory."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._nonblocking = Lru[Hashable, None](NONBLOCKING_MAX)
        self._in_flight: dict[Hashable, asyncio.Future[Any]] = {}

    async def run(self, query_key: Hashable, work: Callable[[], Result]) -> Result:
        """Run a query, here or in a thread; the result is the same."""
        try:
            return self._try(query_key, work)
        except WouldBlock:
            first = self._in_flight.get(query_key)
        if first is not None:
            await asyncio.wait([first])
            try:
                return self._try(query_key, work)
            except WouldBlock:
                pass
        answer = self._pool.run(work)
        if query_key in self._nonblocking and query_key not in self._in_flight:
            self._in_flight[query_key] = answer
            answer.add_done_callback(lambda _: self._in_flight.pop(query_key))
        return await answer

    def _try(self, query_key: Hashable, work: Callable[[], Result]) -> Result:
        with nonblocking():
            answer = work()
        self._nonblocking.put(query_key, None)
        return answer
