"""The runtime cache: everything derived from table versions, under one byte budget.

A key names a table version, which never changes, so an entry is never wrong and never invalidated:
it is only evicted, least recently used first. Of one thing only the few versions last used are
kept, or a graph that is written to would fill the whole budget with versions that are gone by.
Deleting the whole cache changes no answer.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, get_ident
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np

from omnigraph.index.derived import DerivedStore
from omnigraph.nonblocking import may_block
from omnigraph.storage.handles import ShownColumns

TOUCHES_MAX = 4_096
RECENT_MAX = 8
VERSIONS_MAX = 4
"""How many versions of one thing are kept: the present one, and a few that are still read."""
UNREAD_MAX = 3
"""How many versions in a row are derived ahead of anybody who asks for one."""
_SMALLEST_BUDGET = 64 * 1024 * 1024
_LARGEST_KERNEL_ARRAY = 31 * 1024 * 1024


class Sized(Protocol):
    """Something that knows how many bytes it keeps in memory."""

    @property
    def nbytes(self) -> int: ...


_T = TypeVar("_T", bound=Sized)
_R = TypeVar("_R")


class TableId(NamedTuple):
    """A table version in its own columns, or in those `shown`.

    Branches that share a version share what is derived from it.

    A tuple, because every look into the cache hashes one.
    """

    path: str
    branch: str | None
    version: int
    transaction: str | None
    shown: ShownColumns | None = None


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
        self._recent: OrderedDict[Hashable, object] = OrderedDict()
        self._versions: dict[Hashable, list[Hashable]] = {}
        self._building: dict[Hashable, Event] = {}
        self._unread: set[Hashable] = set()
        self._threads_ahead: set[int] = set()
        self._nbytes = 0
        self._lock = Lock()
        _keep_freed_memory()

    def get(self, key: Hashable, build: Callable[[], _T]) -> _T:
        """Return the entry, built if it is missing. Who asks while it is being built waits for it.

        Builds depend on one another without cycles, so nobody waits for himself.
        """
        found = self.peek(key)
        if found is None:
            may_block()
        while found is None:
            with self._lock:
                found = self._entries.get(key)
                others = self._building.get(key)
                is_ours = found is None and others is None
                if is_ours:
                    self._building[key] = Event()
            if is_ours:
                return self._built(key, build)
            if others is not None:
                others.wait()
                # It is there now, or evicted already, or its build has failed.
                found = self.peek(key)
        return cast("_T", found)

    def _built(self, key: Hashable, build: Callable[[], _T]) -> _T:
        try:
            built = build()
            with self._lock:
                self._entries[key] = built
                self._nbytes += built.nbytes
                if self._is_ahead():
                    self._unread.add(key)
                self._drop_old_versions(key)
                self._evict()
            return built
        finally:
            with self._lock:
                self._building.pop(key).set()

    def peek(self, key: Hashable) -> Sized | None:
        """The entry if it is there; it counts as used."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                if self._unread and not self._is_ahead():
                    self._unread.discard(key)
            return found

    def other_versions(self, key: Hashable) -> list[Hashable]:
        """The entries that are kept of the same thing at other versions, the last built first."""
        with self._lock:
            versions = self._versions.get(_without_version(key), ())
            return [each for each in reversed(versions) if each != key]

    def kept_of(self, about: Hashable) -> set[tuple[Hashable, ...]]:
        """What is kept of a table, or of several together, at any version: `(kind, ...)`.

        Without what was derived ahead time and again and not been asked for.
        """
        slot = _without_version(about)
        with self._lock:
            return {
                (each[0], *each[2:])
                for each, versions in self._versions.items()
                if isinstance(each, tuple)
                and each[1:2] == (slot,)
                and not self._unread.issuperset(versions[-UNREAD_MAX:])
            }

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """What this thread builds in the block was asked for by nobody yet, nor does it ask."""
        me = get_ident()
        self._threads_ahead.add(me)
        try:
            yield
        finally:
            self._threads_ahead.discard(me)

    def touch(self, key: Hashable) -> int:
        """Count one more use of something that may be worth keeping; returns the uses so far."""
        may_block()  # for what is not kept
        with self._lock:
            uses = self._touches.pop(key, 0) + 1
            self._touches[key] = uses
            if len(self._touches) > TOUCHES_MAX:
                self._touches.popitem(last=False)
            return uses

    def recent(self, key: Hashable, make: Callable[[], _R]) -> _R:
        """One of the few things last asked for, made if it is none of them.

        For what is small in memory but holds something open.
        """
        with self._lock:
            found = self._recent.get(key)
            if found is not None:
                self._recent.move_to_end(key)
                return cast("_R", found)
        made = make()
        with self._lock:
            self._recent[key] = made
            if len(self._recent) > RECENT_MAX:
                self._recent.popitem(last=False)
        return made

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
            self._recent.clear()
            self._versions.clear()
            self._unread.clear()
            self._nbytes = 0

    def _is_ahead(self) -> bool:
        return get_ident() in self._threads_ahead

    def _drop_old_versions(self, key: Hashable) -> None:
        versions = self._versions.setdefault(_without_version(key), [])
        versions.append(key)
        if len(versions) > VERSIONS_MAX:
            self._drop(next(each for each in self._entries if each in versions))

    def _evict(self) -> None:
        # An entry above the whole budget goes at once: its caller still has it for this query.
        while self._nbytes > self.budget_bytes and self._entries:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        self._nbytes -= self._entries.pop(key).nbytes
        self._unread.discard(key)
        slot = _without_version(key)
        self._versions[slot].remove(key)
        if not self._versions[slot]:
            del self._versions[slot]


def _without_version(key: Hashable) -> Hashable:
    """What a key is about, whatever the version."""
    match key:
        case TableId():
            return key.path, key.branch, key.shown
        case ("plan", ir, _):
            return "plan", ir
        case tuple():
            return tuple(_without_version(each) for each in key)
        case _:
            return key
