"""Together: run calls of one graph as the members of one group, in a known order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from omnigraph.graph import Graph
from omnigraph.testing.inside import inside
from omnigraph.write.group_queue import GroupQueue

WAIT_SECONDS = 60.0


def run_together(
    graph: Graph, calls: Sequence[Callable[[], Any]], branch: str = "main"
) -> list[Any]:
    """Run inserts into one branch as one group; returns what each returns, or raises."""
    queue = inside(graph).groups.queue
    outcomes: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        try:
            outcomes[number] = calls[number]()
        except BaseException as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    with queue.hold(branch):
        for number, thread in enumerate(threads):
            thread.start()
            _wait_until(partial(_have_come, queue, branch, threads[: number + 1]))
    for thread in threads:
        thread.join()
    return outcomes


def _have_come(
    queue: GroupQueue[Any, Any], branch: str, threads: Sequence[threading.Thread]
) -> bool:
    """Whether all calls wait, but for those that were refused before they came to wait."""
    return queue.count_waiting(branch) >= sum(each.is_alive() for each in threads)


def _wait_until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError("a call did not come to its group")
        time.sleep(0.001)
