"""The queue of groups: an interrupt at any step blocks no other caller."""

from __future__ import annotations

import _thread
import linecache
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from threading import Event
from types import FrameType
from typing import Any

import pytest

from omnigraph.write import group_queue
from omnigraph.write.group_queue import GroupQueue, Member

WAIT_SECONDS = 5.0
Queue = GroupQueue[int, int]


def double_all(members: Sequence[Member[int, int]]) -> None:
    for each in members:
        each.complete(2 * each.work)


@contextmanager
def interrupt_at(step: int) -> Iterator[list[int]]:
    """Raise at one of the lines of the queue that this thread runs; counts them."""
    seen = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != group_queue.__file__:
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        # Python looks for interrupts after calls: not at a `try`, nor when it leaves a `with`.
        if event == "line" and not line.startswith(("with ", "try")):
            seen[0] += 1
            if seen[0] == step:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(None)


def run_interrupted(queue: Queue, step: int) -> int:
    """Run a caller and interrupt it at one of its steps; returns how many it took."""
    with interrupt_at(step) as seen, suppress(KeyboardInterrupt):
        assert queue.run("key", 9) == 18
    return seen[0]


class Others:
    """Callers in threads of their own."""

    def __init__(self, queue: Queue, works: Sequence[int]) -> None:
        self._queue, self._found = queue, list[int]()
        self._threads = [
            threading.Thread(target=self._run, args=(work,), daemon=True) for work in works
        ]

    def _run(self, work: int) -> None:
        self._found.append(self._queue.run("key", work))

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def list_results(self) -> list[int]:
        """What each has got; one that is blocked has got nothing."""
        for each in self._threads:
            each.join(WAIT_SECONDS)
        return sorted(self._found)


@pytest.mark.parametrize("comes_first", [True, False])
@pytest.mark.parametrize("members_max", [2, 8])
def test_an_interrupt_at_any_step_blocks_no_other_caller(
    members_max: int, comes_first: bool
) -> None:
    """Neither of a member that waits, nor of one that leads and has taken the others already."""
    for step in count(1):
        queue, is_held, is_over = Queue(double_all, members_max), Event(), Event()
        others = Others(queue, [1, 2, 3])

        def hold(queue: Queue = queue, others: Others = others, *events: Event) -> None:
            """Hold the queue until all have come to wait, or the interrupted one is gone."""
            is_held, is_over = events
            with queue.hold("key"):
                if not comes_first:
                    others.start()
                    wait_until(lambda: queue.count_waiting("key") == 3)
                is_held.set()
                wait_until(lambda: queue.count_waiting("key") > 3 * (not comes_first), is_over)
                if comes_first:
                    others.start()
                    wait_until(lambda: queue.count_waiting("key") >= 3)

        holder = threading.Thread(target=hold, args=(queue, others, is_held, is_over))
        holder.start()
        is_held.wait()
        steps = run_interrupted(queue, step)
        is_over.set()
        holder.join()

        assert others.list_results() == [2, 4, 6], f"interrupted at step {step}"
        late = Others(queue, [4])
        late.start()
        assert late.list_results() == [8]
        assert queue.count_waiting("key") == 0
        if steps < step:
            break
    assert step > 15


def test_an_interrupt_that_comes_just_before_a_caller_waits_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a one wakes no thread: Python only notes it, as `interrupt_main` does."""
    monkeypatch.setattr(group_queue, "LOOK_SECONDS", 0.02)
    queue, is_held = Queue(double_all, 8), Event()

    def hold() -> None:
        with queue.hold("key"):
            is_held.set()
            wait_until(lambda: queue.count_waiting("key") == 1)
            _thread.interrupt_main()
            limit = time.monotonic() + WAIT_SECONDS
            wait_until(lambda: queue.count_waiting("key") == 0 or time.monotonic() > limit)
            found.append(queue.count_waiting("key"))

    found = list[int]()
    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    with pytest.raises(KeyboardInterrupt):
        queue.run("key", 1)
    holder.join()

    assert found == [0]
    assert queue.run("key", 2) == 4


def wait_until(is_done: Callable[[], bool], is_over: Event | None = None) -> None:
    while not is_done() and not (is_over and is_over.is_set()):
        time.sleep(0.0001)


def test_a_leader_waits_for_the_members_of_the_last_group_and_never_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With no limit to the wait, a caller that waited for nobody would be blocked."""
    monkeypatch.setattr(group_queue, "GATHER_SHARE", 1e9)
    sizes = list[int]()

    def lead(members: Sequence[Member[int, int]]) -> None:
        sizes.append(len(members))
        double_all(members)

    queue = Queue(lead, 8)
    for _ in range(2):
        assert queue.run("key", 1) == 2
    for _ in range(2):
        others = Others(queue, [1, 2, 3])
        with queue.hold("key") if sizes == [1, 1] else nullcontext():
            others.start()
            if sizes == [1, 1]:
                wait_until(lambda: queue.count_waiting("key") == 3)
        assert others.list_results() == [2, 4, 6]

    assert sizes == [1, 1, 3, 3]
    assert queue.run("other key", 1) == 2


def test_callers_do_not_fall_into_two_halves_that_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those who came while a group was led wait for its members, who come again at once."""
    monkeypatch.setattr(group_queue, "GATHER_SHARE", 1e9)
    sizes, is_led = list[int](), Event()

    def lead(members: Sequence[Member[int, int]]) -> None:
        sizes.append(len(members))
        if len(sizes) == 1:
            is_led.set()
            wait_until(lambda: queue.count_waiting("key") == 2)
        double_all(members)

    queue = Queue(lead, 8)
    first, meanwhile, again = Others(queue, [1]), Others(queue, [2, 3]), Others(queue, [4])
    first.start()
    is_led.wait()
    meanwhile.start()
    assert first.list_results() == [2]
    wait_until(lambda: queue.is_gathering("key") or len(sizes) > 1)
    again.start()

    assert meanwhile.list_results() == [4, 6]
    assert again.list_results() == [8]
    assert sizes == [1, 3]
