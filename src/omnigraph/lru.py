"""Lru: a small cache that keeps the entries used most recently. Thread-safe."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from threading import Lock
from typing import Generic, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MISSING = object()


class Lru(Generic[K, V]):
    """At most `maxsize` entries; adding one more evicts the least recently used."""

    def __init__(self, maxsize: int) -> None:
        assert maxsize > 0
        self._maxsize = maxsize
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value of `key`, which now counts as used; None when there is none."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def put(self, key: K, value: V) -> None:
        """Set the value of `key`, which now counts as used."""
        with self._lock:
            self._put(key, value)

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made if it is missing.

        `make` runs outside the lock: threads that miss at the same time each call it, and all of
        them return the value that was put first.
        """
        with self._lock:
            found = self._entries.get(key, _MISSING)
            if found is not _MISSING:
                self._entries.move_to_end(key)
                return cast("V", found)
        made = make()
        with self._lock:
            value = self._entries.get(key, made)
            self._put(key, value)
            return value

    def pop(self, key: K) -> V | None:
        """Remove `key` and return its value; None when there is none."""
        with self._lock:
            return self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove every entry."""
        with self._lock:
            self._entries.clear()

    def _put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._maxsize:
            self._entries.popitem(last=False)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        """The keys, least recently used first, as they are now."""
        with self._lock:
            return iter(list(self._entries))
