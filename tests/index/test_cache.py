"""The runtime cache: one byte budget, least recently used out first."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Barrier, Thread

from omnigraph.index import RuntimeCache


@dataclass(frozen=True)
class Block:
    nbytes: int


def test_an_entry_is_built_once() -> None:
    cache = RuntimeCache(100)
    built: list[int] = []

    for _ in range(3):
        cache.get("a", lambda: built.append(1) or Block(10))  # type: ignore[func-returns-value]

    assert built == [1]


def test_the_budget_is_never_exceeded_and_the_least_recently_used_goes_first() -> None:
    cache = RuntimeCache(100)
    for name in "abc":
        cache.get(name, lambda: Block(30))

    cache.peek("a")
    cache.get("d", lambda: Block(30))

    assert cache.kept() == ["c", "a", "d"]
    assert cache.nbytes == 90


def test_an_entry_above_the_budget_is_handed_out_and_not_kept() -> None:
    cache = RuntimeCache(100)

    assert cache.get("large", lambda: Block(101)).nbytes == 101

    assert cache.kept() == []
    assert cache.nbytes == 0


def test_two_builds_at_once_keep_one() -> None:
    cache = RuntimeCache(100)
    both_are_building = Barrier(2)
    found: list[Block] = []

    def build() -> Block:
        both_are_building.wait(timeout=30)
        return Block(10)

    threads = [Thread(target=lambda: found.append(cache.get("a", build))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found[0] is found[1]
    assert cache.nbytes == 10


def test_uses_are_counted() -> None:
    cache = RuntimeCache(100)

    assert [cache.touch("a") for _ in range(3)] == [1, 2, 3]
    cache.clear()
    assert cache.touch("a") == 1
