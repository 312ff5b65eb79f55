"""The runtime cache: one byte budget, least recently used out first."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Barrier, Event, Thread

import pytest

from omnigraph.index import RuntimeCache
from omnigraph.index.cache import VERSIONS_MAX
from omnigraph.index.keys import ColumnKey, TableId


@dataclass(frozen=True)
class Block:
    nbytes: int


def key(version: int, column: str = "age") -> ColumnKey:
    return ColumnKey(TableId("nodes/a", None, version, f"t{version}"), column)


A, B, C, D = (key(1, name) for name in "abcd")


def test_an_entry_is_built_once() -> None:
    cache = RuntimeCache(100)
    built: list[int] = []

    for _ in range(3):
        cache.get(A, lambda: built.append(1) or Block(10))  # type: ignore[func-returns-value]

    assert built == [1]


def test_the_budget_is_never_exceeded_and_the_least_recently_used_goes_first() -> None:
    cache = RuntimeCache(100)
    for each in (A, B, C):
        cache.get(each, lambda: Block(30))

    cache.peek(A)
    cache.get(D, lambda: Block(30))

    assert cache.list_keys() == [C, A, D]
    assert cache.nbytes == 90


def test_an_entry_above_the_budget_is_handed_out_and_not_kept() -> None:
    cache = RuntimeCache(100)

    assert cache.get(A, lambda: Block(101)).nbytes == 101

    assert cache.list_keys() == []
    assert cache.nbytes == 0


def test_of_one_slot_only_the_versions_last_used_are_kept() -> None:
    cache = RuntimeCache(10_000)

    cache.get(key(1, "name"), lambda: Block(10))
    for version in range(1, 50):
        cache.get(key(version), lambda: Block(10))
        assert cache.peek(key(1)) is not None, "a version that is read all the time stays"

    assert [each for each in cache.list_keys() if each.slot == key(1).slot] == [
        *(key(version) for version in range(50 - VERSIONS_MAX + 1, 49)),
        key(49),
        key(1),
    ]
    assert key(1, "name") in cache.list_keys()
    assert cache.nbytes == 10 * (VERSIONS_MAX + 1)


def test_what_many_threads_get_at_once_is_built_once() -> None:
    cache = RuntimeCache(100)
    all_have_asked, built, found = Barrier(8), list[int](), list[Block]()

    def build() -> Block:
        built.append(1)
        time.sleep(0.05)
        return Block(10)

    def ask() -> None:
        all_have_asked.wait(timeout=30)
        found.append(cache.get(A, build))

    _in_threads(ask, 8)

    assert built == [1]
    assert len({id(each) for each in found}) == 1
    assert cache.nbytes == 10


def test_a_build_that_fails_lets_the_next_one_try() -> None:
    cache = RuntimeCache(100)
    all_have_asked, tries, outcomes = Barrier(3), list[int](), list[str]()

    def build() -> Block:
        tries.append(1)
        time.sleep(0.05)
        if len(tries) == 1:
            raise ValueError("the first one fails")
        return Block(10)

    def ask() -> None:
        all_have_asked.wait(timeout=30)
        try:
            cache.get(A, build)
            outcomes.append("built")
        except ValueError:
            outcomes.append("failed")

    _in_threads(ask, 3)

    assert sorted(outcomes) == ["built", "built", "failed"]
    assert len(tries) == 2


def _in_threads(work: Callable[[], None], count: int) -> None:
    threads = [Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)


def test_uses_are_counted() -> None:
    cache = RuntimeCache(100)

    assert [cache.touch(A) for _ in range(3)] == [1, 2, 3]
    cache.clear()
    assert cache.touch(A) == 1


@pytest.mark.slow
def test_looking_while_other_threads_build_and_drop_fails_no_thread() -> None:
    """A look moves the entry to the end; a thread that drops an old version iterates over all."""
    cache = RuntimeCache(1_000_000)
    kept = [key(0, str(number)) for number in range(200)]
    for each in kept:
        cache.get(each, lambda: Block(1))
    is_over = Event()

    def look() -> None:
        while not is_over.is_set():
            for each in kept:
                cache.peek(each)

    lookers = [Thread(target=look) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for looker in lookers:
        looker.start()
    try:
        for version in range(2_000):
            cache.get(key(version), lambda: Block(1))
    finally:
        is_over.set()
        for looker in lookers:
            looker.join()
        sys.setswitchinterval(interval)

    assert len(cache.list_keys()) == len(kept) + VERSIONS_MAX
