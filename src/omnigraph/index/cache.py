"""The runtime cache: everything derived from table versions, under one byte budget.

A key names a table version, which never changes, so an entry is never wrong and never invalidated:
it is only evicted, least recently used first. Of each slot (see keys.py) only the few versions used
last are kept, or a graph that is written to would fill the budget with versions that are read no
more. Deleting the whole cache changes no answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Lock, get_ident
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from omnigraph.index.background import Background
from omnigraph.index.derived import DerivedStore
from omnigraph.index.keys import Key
from omnigraph.lru import Lru
from omnigraph.machine import measure_memory
from omnigraph.nonblocking import may_block

TOUCHES_MAX = 4_096
RECENT_MAX = 8
VERSIONS_MAX = 4
"""How many versions of one slot are kept: the present one, and a few that are still read."""
UNREAD_MAX = 3
"""How many versions in a row are prefetched without a query that reads one."""
_SMALLEST_BUDGET = 64 * 1024 * 1024
_LARGEST_KERNEL_ARRAY = 31 * 1024 * 1024


class Sized(Protocol):
    """Something that knows how many bytes it keeps in memory.

    What several entries have in common is not counted there: they list it as `shared`, and it
    counts once for as long as one of them is cached.
    """

    @property
    def nbytes(self) -> int: ...


_T = TypeVar("_T", bound=Sized)
_K = TypeVar("_K", bound=Key)


def default_budget() -> int:
    """A quarter of the memory of this machine."""
    return max(measure_memory() // 4, _SMALLEST_BUDGET)


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

    With `derived`, adjacency and text indexes are also kept on disk, and mapped when a graph is
    opened again. In `background`, what queries will want is made without any waiting for it.
    `recent` holds what is small in memory but keeps something open.
    """

    def __init__(
        self, budget_bytes: int | None = None, derived: DerivedStore | None = None
    ) -> None:
        self.budget_bytes = default_budget() if budget_bytes is None else budget_bytes
        self.derived = derived
        self.background = Background()
        self.recent: Lru[Hashable, Any] = Lru(RECENT_MAX)
        self._entries: OrderedDict[Key, Sized] = OrderedDict()
        self._touches: Lru[Key, int] = Lru(TOUCHES_MAX)
        self._versions: dict[Hashable, list[Key]] = {}
        self._building: dict[Key, Event] = {}
        self._unread: set[Key] = set()
        self._prefetching_threads: set[int] = set()
        self._shared: dict[int, tuple[Sized, int]] = {}
        self._nbytes = 0
        self._lock = Lock()
        _keep_freed_memory()

    def get(self, key: Key, build: Callable[[], _T]) -> _T:
        """Return the entry, built if it is missing. Other threads wait for one that builds it.

        Builds depend on one another without cycles, so no thread waits for itself.
        """
        return cast("_T", self.get_if(key, build))

    def get_if(self, key: Key, build: Callable[[], _T | None]) -> _T | None:
        """The same with a build that may decline: then None is returned, and nothing is cached."""
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
                return self._build(key, build)
            if others is not None:
                others.wait()
                # It is there now, or evicted already, or its build has failed or declined.
                found = self.peek(key)
        return cast("_T", found)

    def _build(self, key: Key, build: Callable[[], _T | None]) -> _T | None:
        try:
            built = build()
            if built is None:
                return None
            with self._lock:
                self._entries[key] = built
                self._count_in(built)
                if self._is_prefetching():
                    self._unread.add(key)
                self._drop_old_versions(key)
                self._evict()
            return built
        finally:
            with self._lock:
                self._building.pop(key).set()

    def peek(self, key: Key) -> Sized | None:
        """The entry if it is there; it counts as used."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                if self._unread and not self._is_prefetching():
                    self._unread.discard(key)
            return found

    def other_versions(self, key: _K) -> list[_K]:
        """The keys of the same slot that are cached at other versions, the last built first."""
        with self._lock:
            versions = self._versions.get(key.slot, ())
            return [cast("_K", each) for each in reversed(versions) if each != key]

    def is_in_use(self, key: Key) -> bool:
        """Whether the slot of a key has an entry, and not only ones that no query has read."""
        with self._lock:
            versions = self._versions.get(key.slot, [])
            return bool(versions) and not self._unread.issuperset(versions[-UNREAD_MAX:])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in use, as before the first query."""
        return not self._entries

    @contextmanager
    def prefetching(self) -> Iterator[None]:
        """What this thread builds and looks at in the block does not count as read."""
        me = get_ident()
        self._prefetching_threads.add(me)
        try:
            yield
        finally:
            self._prefetching_threads.discard(me)

    def touch(self, key: Key) -> int:
        """Count one more use of something that may be worth caching; returns the uses so far."""
        may_block()  # only what is not cached is counted
        with self._lock:
            uses = (self._touches.get(key) or 0) + 1
            self._touches.put(key, uses)
            return uses

    @property
    def nbytes(self) -> int:
        """What the entries add up to; at most the budget."""
        with self._lock:
            return self._nbytes

    def list_keys(self) -> list[Key]:
        """The keys of all entries, least recently used first."""
        with self._lock:
            return list(self._entries)

    def forget_slot(self, key: Key) -> None:
        """Forget every version of what a key names."""
        with self._lock:
            for each in list(self._versions.get(key.slot, ())):
                self._drop(each)

    def clear(self) -> None:
        """Forget everything. Answers do not change; the next ones are cold."""
        with self._lock:
            self._entries.clear()
            self._touches.clear()
            self.recent.clear()
            self._versions.clear()
            self._unread.clear()
            self._shared.clear()
            self._nbytes = 0

    def _is_prefetching(self) -> bool:
        return get_ident() in self._prefetching_threads

    def _drop_old_versions(self, key: Key) -> None:
        versions = self._versions.setdefault(key.slot, [])
        versions.append(key)
        if len(versions) > VERSIONS_MAX:
            self._drop(next(each for each in self._entries if each in versions))

    def _count_in(self, entry: Sized) -> None:
        self._nbytes += entry.nbytes
        for part in _shared_parts(entry):
            _, users = self._shared.get(id(part), (part, 0))
            self._shared[id(part)] = (part, users + 1)
            if users == 0:
                self._nbytes += part.nbytes

    def _count_out(self, entry: Sized) -> None:
        self._nbytes -= entry.nbytes
        for part in _shared_parts(entry):
            _, users = self._shared.pop(id(part))
            if users > 1:
                self._shared[id(part)] = (part, users - 1)
            else:
                self._nbytes -= part.nbytes

    def _evict(self) -> None:
        # An entry above the whole budget goes at once: its caller still has it for this query.
        while self._nbytes > self.budget_bytes and self._entries:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> None:
        self._count_out(self._entries.pop(key))
        self._unread.discard(key)
        versions = self._versions[key.slot]
        versions.remove(key)
        if not versions:
            del self._versions[key.slot]


def _shared_parts(entry: Sized) -> Sequence[Sized]:
    return cast("Sequence[Sized]", getattr(entry, "shared", ()))
