"""Group queue: callers that wait at the same time are served together, by one of them.

    a member            then
    comes first         leads: it takes all that wait, up to a limit, and completes each
    comes meanwhile     waits; it is completed by the leader, or is the next one to lead
    is interrupted      leaves while it waits; once a leader has taken it, it waits for its outcome

No member waits longer than for the group before its own: a leader does not wait for others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Member(Generic[T, R]):
    """One caller. `complete` or `fail` is called once by the leader that has taken it."""

    def __init__(self, work: T) -> None:
        self.work = work
        self.leads = False
        self.is_done = False
        self._result: R | None = None
        self._error: BaseException | None = None
        self._turn = threading.Event()

    def complete(self, result: R) -> None:
        """Give the caller its result."""
        self._result, self.is_done = result, True
        self._turn.set()

    def fail(self, error: BaseException) -> None:
        """Have the caller raise an error."""
        self._error, self.is_done = error, True
        self._turn.set()

    def let_lead(self) -> None:
        """It is the turn of the caller to lead."""
        self.leads = True
        self._turn.set()

    def wait(self) -> None:
        """Wait for the outcome, or for the turn to lead."""
        self._turn.wait()

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
        self._lock = threading.Lock()

    def run(self, key: str, work: T) -> R:
        """Have `work` done in a group; returns, or raises, what its leader completes it with."""
        member = Member[T, R](work)
        self._enter(key, member)
        try:
            member.wait()
        except BaseException:
            self._leave(key, member)
            raise
        if member.leads:
            try:
                self._lead([member, *self._take(key)])
            finally:
                self._pass_on(key)
        return member.get_result()

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Let callers wait while the block runs; then the first of them leads.

        With it, tests make groups of known members in a known order.
        """
        with self._lock:
            assert key not in self._waiting
            self._waiting[key] = []
        try:
            yield
        finally:
            self._pass_on(key)

    def count_waiting(self, key: str) -> int:
        """How many callers wait."""
        with self._lock:
            return len(self._waiting.get(key, []))

    def _enter(self, key: str, member: Member[T, R]) -> None:
        with self._lock:
            if key in self._waiting:
                self._waiting[key].append(member)
            else:
                self._waiting[key] = []
                member.let_lead()

    def _take(self, key: str) -> list[Member[T, R]]:
        with self._lock:
            waiting = self._waiting[key]
            taken = waiting[: self._members_max - 1]
            del waiting[: self._members_max - 1]
            return taken

    def _pass_on(self, key: str) -> None:
        """Let the first of those who wait lead."""
        with self._lock:
            waiting = self._waiting[key]
            if waiting:
                waiting.pop(0).let_lead()
            else:
                del self._waiting[key]

    def _leave(self, key: str, member: Member[T, R]) -> None:
        with self._lock:
            waiting = self._waiting.get(key, [])
            if member in waiting:
                waiting.remove(member)
                return
        member.wait()
        if member.leads:
            self._pass_on(key)
