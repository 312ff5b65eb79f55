"""Group queue: callers that wait at the same time are served together, by one of them.

    a member            then
    comes first         leads: it takes all that wait, up to a limit, and completes each
    comes meanwhile     waits; it is completed by the leader, or is the next one to lead
    is interrupted      leaves, wherever it is: one that waits is not taken any more, one that was
                        taken has its work done or not, and one that leads lets the next one lead

A leader that comes alone goes on at once. One that follows a group waits for as many as were in it
and came meanwhile, for a fraction of the time that it took: its members have their results, and
most callers come again at once. Without it callers would fall into two halves that take turns, and
pay for two commits where one would do.
An interrupt (Ctrl-C) can come between any two steps, so each step of leaving can be repeated. A
caller waits for a bare lock: an interrupt in an event or a condition of `threading` can have them
release a lock that another thread holds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

GATHER_SHARE = 0.25
"""How long a leader waits for others: this share of what the last group took."""
LOOK_SECONDS = 0.5
"""How often a caller that waits looks for interrupts: one that came just before wakes no thread."""

T = TypeVar("T")
R = TypeVar("R")


class Member(Generic[T, R]):
    """One caller. `complete` or `fail` is called once by the leader that has taken it."""

    def __init__(self, work: T) -> None:
        self.work = work
        self.leads = False
        self.is_done = False
        self.has_left = False
        self.followers: list[Member[T, R]] = []
        """Those whom it leads."""
        self.successor: Member[T, R] | None = None
        """Who leads next."""
        self._result: R | None = None
        self._error: BaseException | None = None
        self._turn = threading.Lock()
        self._turn.acquire()

    def complete(self, result: R) -> None:
        """Give the caller its result."""
        self._result, self.is_done = result, True
        self.wake()

    def fail(self, error: BaseException) -> None:
        """Have the caller raise an error."""
        self._error, self.is_done = error, True
        self.wake()

    def let_lead(self) -> None:
        """It is the turn of the caller to lead."""
        self.leads = True
        self.wake()

    def wake(self) -> None:
        """Let the caller see what it was given."""
        with suppress(RuntimeError):  # it was woken already
            self._turn.release()

    def wait(self) -> None:
        """Wait for the outcome, or for the turn to lead."""
        while not self._turn.acquire(timeout=LOOK_SECONDS):
            pass

    def wait_for_others(self, seconds: float) -> None:
        """Wait, as the leader, until it is woken or for so long."""
        self._turn.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))

    def get_result(self) -> R:
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


class GroupQueue(Generic[T, R]):
    """The members of each key, one group at a time. Thread-safe.

    `lead` is given the members of a group, the leader first, and completes all of them.
    """

    def __init__(self, lead: Callable[[Sequence[Member[T, R]]], None], members_max: int) -> None:
        self._lead = lead
        self._members_max = members_max
        self._waiting: dict[str, list[Member[T, R]]] = {}
        """Those who wait, of every key that has a leader."""
        self._last: dict[str, tuple[int, float]] = {}
        """How many are likely to come again, and the seconds that the last group took."""
        self._gathering: dict[str, Member[T, R]] = {}
        """The leader of each key that waits for others."""
        self._lock = threading.Lock()

    def run(self, key: str, work: T) -> R:
        """Have `work` done in a group; returns, or raises, what its leader completes it with."""
        member = Member[T, R](work)
        try:
            self._enter(key, member)
            member.wait()
            if member.leads:
                self._gather(key, member)
                self._take(key, member)
                start = time.perf_counter()
                self._lead([member, *member.followers])
                self._note(key, 1 + len(member.followers), time.perf_counter() - start)
        finally:
            try:
                self._leave(key, member)
            except BaseException:
                self._leave(key, member)
                raise
        return member.get_result()

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Let callers wait while the block runs; then the first of them leads.

        With it, tests make groups of known members in a known order.
        """
        holder = Member[T, R](None)  # type: ignore[arg-type]
        self._enter(key, holder)
        assert holder.leads
        try:
            yield
        finally:
            self._leave(key, holder)

    def count_waiting(self, key: str) -> int:
        """How many callers wait."""
        with self._lock:
            return len(self._waiting.get(key, []))

    def is_gathering(self, key: str) -> bool:
        """Whether a leader waits for others."""
        with self._lock:
            return key in self._gathering

    def _enter(self, key: str, member: Member[T, R]) -> None:
        with self._lock:
            if key in self._waiting:
                self._waiting[key].append(member)
                if key in self._gathering and self._are_all_here(key):
                    self._gathering[key].wake()
            else:
                member.let_lead()
                self._waiting[key] = []

    def _gather(self, key: str, leader: Member[T, R]) -> None:
        """Wait a moment for as many members as are likely to come."""
        with self._lock:
            if self._are_all_here(key):
                return
            seconds = GATHER_SHARE * self._last[key][1]
            self._gathering[key] = leader
        leader.wait_for_others(seconds)

    def _are_all_here(self, key: str) -> bool:
        return 1 + len(self._waiting[key]) >= self._last.get(key, (1, 0.0))[0]

    def _note(self, key: str, count: int, seconds: float) -> None:
        """Keep how a group went. Callers that stay away are waited for a few times at most."""
        with self._lock:
            here = count + len(self._waiting[key])
            likely = max(min(here, self._members_max), self._last.get(key, (1, 0.0))[0] // 2)
            if likely > 1:
                self._last[key] = likely, seconds
            else:
                self._last.pop(key, None)

    def _take(self, key: str, leader: Member[T, R]) -> None:
        with self._lock:
            self._gathering.pop(key, None)
            waiting = self._waiting[key]
            leader.followers = waiting[: self._members_max - 1]
            del waiting[: self._members_max - 1]

    def _leave(self, key: str, member: Member[T, R]) -> None:
        """Give up the place of a member, and its lead if it has one."""
        with self._lock:
            try:
                self._give_up(key, member)
            except BaseException:
                self._give_up(key, member)
                raise

    def _give_up(self, key: str, member: Member[T, R]) -> None:
        if member.has_left:
            return
        waiting = self._waiting.get(key, [])
        if member.leads:
            self._pass_on(key, member, waiting)
        elif member in waiting:
            waiting.remove(member)
        member.has_left = True

    def _pass_on(self, key: str, leader: Member[T, R], waiting: list[Member[T, R]]) -> None:
        """Let the first of those who wait lead, and those for whom nothing was done wait again."""
        for each in leader.followers:
            if each.is_done:
                each.wake()
        if leader.successor is None:
            waiting[:0] = [each for each in leader.followers if _is_waiting(each, waiting)]
            leader.successor = waiting[0] if waiting else None
        if leader.successor is None:
            self._waiting.pop(key, None)
            return
        leader.successor.let_lead()
        if leader.successor in waiting:
            waiting.remove(leader.successor)


def _is_waiting(member: Member[T, R], known: Sequence[Member[T, R]]) -> bool:
    """Whether the leader of a member was interrupted before it could do anything for it."""
    return not (member.is_done or member.has_left or member in known)
