"""Lru: what is evicted, what counts as use, and sharing it between threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from omnigraph.lru import Lru


def test_the_least_recently_used_entry_is_evicted() -> None:
    """Reading an entry counts as use, so it outlives one that was put later."""
    cache: Lru[str, int] = Lru(2)
    cache.put("a", 1)
    cache.put("b", 2)

    assert cache.get("a") == 1
    cache.put("c", 3)

    assert list(cache) == ["a", "c"]
    assert cache.get("b") is None
    assert len(cache) == 2


def test_putting_a_key_again_replaces_its_value_and_evicts_nothing() -> None:
    cache: Lru[str, int] = Lru(2)
    cache.put("a", 1)
    cache.put("b", 2)

    cache.put("a", 3)

    assert list(cache) == ["b", "a"]
    assert cache.get("a") == 3


def test_asking_whether_a_key_is_there_is_not_use() -> None:
    cache: Lru[str, int] = Lru(2)
    cache.put("a", 1)
    cache.put("b", 2)

    assert "a" in cache
    assert "c" not in cache

    assert list(cache) == ["a", "b"]


def test_a_value_is_made_only_when_it_is_missing() -> None:
    """None is a value like any other."""
    cache: Lru[str, int | None] = Lru(2)
    calls: list[str] = []

    def make() -> None:
        calls.append("made")

    assert cache.get_or_make("a", make) is None
    assert cache.get_or_make("a", make) is None

    assert calls == ["made"]


def test_a_failed_make_leaves_no_entry() -> None:
    cache: Lru[str, int] = Lru(2)

    def fail() -> int:
        raise ValueError("no value")

    with pytest.raises(ValueError, match="no value"):
        cache.get_or_make("a", fail)

    assert "a" not in cache
    assert cache.get_or_make("a", lambda: 1) == 1


def test_threads_that_miss_together_get_the_same_value() -> None:
    cache: Lru[str, object] = Lru(2)
    both = Barrier(2)

    def make() -> object:
        both.wait()
        return object()

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: cache.get_or_make("a", make), range(2))

    assert first is second


def test_entries_can_be_removed_one_by_one_or_all_together() -> None:
    cache: Lru[str, int] = Lru(3)
    for number, key in enumerate("abc"):
        cache.put(key, number)

    assert cache.pop("a") == 0
    assert cache.pop("a") is None
    cache.clear()

    assert len(cache) == 0
    assert list(cache) == []


def test_a_cache_can_be_iterated_while_it_changes() -> None:
    cache: Lru[str, int] = Lru(3)
    cache.put("a", 1)
    cache.put("b", 2)

    for key in cache:
        cache.pop(key)

    assert len(cache) == 0
