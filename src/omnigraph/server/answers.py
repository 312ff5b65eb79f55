"""Answers: queries that are answered at once on the event loop, all others in threads.

A query that looks up a node in memory costs less than the way to a thread and back, and one that
would take time says so before it begins. After a write all clients find the same things not in
memory yet. One of them gets these in a thread; the others wait for it here and try again, for in
threads of their own they would take turns at the interpreter and hold each other up.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from omnigraph.nonblocking import WouldBlock, nonblocking
from omnigraph.server.threads import Threads

Result = TypeVar("Result")

QUICK_MAX = 1_024
"""How many questions are remembered of those that were answered at once."""


class Answers:
    """Runs queries for one event loop. Questions of one key need the same things in memory."""

    def __init__(self, readers: Threads) -> None:
        self._readers = readers
        self._quick: OrderedDict[Hashable, None] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Future[Any]] = {}

    async def run(self, key: Hashable, work: Callable[[], Result]) -> Result:
        """Run a query, here or in a thread; the result is the same."""
        try:
            return self._tried(key, work)
        except WouldBlock:
            first = self._under_way.get(key)
        if first is not None:
            await asyncio.wait([first])
            try:
                return self._tried(key, work)
            except WouldBlock:
                pass
        answer = self._readers.run(work)
        if key in self._quick and key not in self._under_way:
            self._under_way[key] = answer
            answer.add_done_callback(lambda _: self._under_way.pop(key))
        return await answer

    def _tried(self, key: Hashable, work: Callable[[], Result]) -> Result:
        with nonblocking():
            answer = work()
        self._quick[key] = None
        self._quick.move_to_end(key)
        if len(self._quick) > QUICK_MAX:
            self._quick.popitem(last=False)
        return answer
