"""The runtime cache: everything derived from table versions, under one byte budget.

A key names a table version, which never changes, so an entry is never wrong and never invalidated:
it is only evicted, least recently used first. Deleting the whole cache changes no answer.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Protocol, TypeVar, cast

import numpy as np

from omnigraph.index.derived import DerivedStore

TOUCHES_MAX = 65_536
_SMALLEST_BUDGET = 64 * 1024 * 1024
_LARGEST_KERNEL_ARRAY = 31 * 1024 * 1024


class Sized(Protocol):
    """Something that knows how many bytes it keeps in memory."""

    @property
    def nbytes(self) -> int: ...


_T = TypeVar("_T", bound=Sized)


@dataclass(frozen=True, slots=True)
class TableId:
    """A physical table version. Branches that share a version share what is derived from it."""

    path: str
    branch: str | None
    version: int
    transaction: str | None


def default_budget() -> int:
    """A quarter of the memory of this machine."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _SMALLEST_BUDGET
    return max(total // 4, _SMALLEST_BUDGET)


def _keep_freed_memory() -> None:
    """Let the allocator keep what kernels free, for the next query to use.

    The C library of Linux gives a block back to the system when it is larger than any it has seen
    freed, and the next query then pays a page fault for every 4 KB of its arrays (three times the
    run time of a small query). Freeing one block that is never touched costs nothing and raises
    the bound; elsewhere it does no harm.
    """
    np.empty(_LARGEST_KERNEL_ARRAY, dtype=np.uint8)


class RuntimeCache:
    """Derived arrays by key, under a byte budget. Thread-safe; builds run outside the lock.

    With `derived`, adjacency is also kept on disk and mapped when a graph is opened again.
    """

    def __init__(
        self, budget_bytes: int | None = None, derived: DerivedStore | None = None
    ) -> None:
        self.budget_bytes = default_budget() if budget_bytes is None else budget_bytes
        self.derived = derived
        self._entries: OrderedDict[Hashable, Sized] = OrderedDict()
        self._touches: OrderedDict[Hashable, int] = OrderedDict()
        self._nbytes = 0
        self._lock = Lock()
        _keep_freed_memory()

    def get(self, key: Hashable, build: Callable[[], _T]) -> _T:
        """Return the entry, built if it is missing. Of two builds at once, the first one stays."""
        found = self.peek(key)
        if found is not None:
            return cast("_T", found)
        built = build()
        with self._lock:
            kept = self._entries.setdefault(key, built)
            if kept is built:
                self._nbytes += built.nbytes
                self._evict()
        return cast("_T", kept)

    def peek(self, key: Hashable) -> Sized | None:
        """The entry if it is there; it counts as used."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def touch(self, key: Hashable) -> int:
        """Count one more use of something that may be worth keeping; returns the uses so far."""
        with self._lock:
            uses = self._touches.pop(key, 0) + 1
            self._touches[key] = uses
            if len(self._touches) > TOUCHES_MAX:
                self._touches.popitem(last=False)
            return uses

    @property
    def nbytes(self) -> int:
        """What the entries add up to; at most the budget."""
        with self._lock:
            return self._nbytes

    def kept(self) -> list[Hashable]:
        """What is kept now, least recently used first."""
        with self._lock:
            return list(self._entries)

    def clear(self) -> None:
        """Forget everything. Answers do not change; the next ones are cold."""
        with self._lock:
            self._entries.clear()
            self._touches.clear()
            self._nbytes = 0

    def _evict(self) -> None:
        # An entry above the whole budget goes at once: its caller still has it for this query.
        while self._nbytes > self.budget_bytes and self._entries:
            _, dropped = self._entries.popitem(last=False)
            self._nbytes -= dropped.nbytes
