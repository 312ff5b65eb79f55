"""Two thousand commits of one row: what a write and a look-up cost in the end, and the memory.

The costs are CPU time, which other work on the machine disturbs little; they are compared with
themselves. Part of `make torture` only: `make test` counts pieces and opens instead.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import psutil
import pytest

import omnigraph as og
from tests.depth import IS_TORTURE

SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person\n"
WORK = """
query add($slug: String) { insert Person { slug: $slug, age: 1 } }
query find($slug: String) { match { $p: Person { slug: $slug } } return { $p.age } }
"""
ROWS = 10_000
COMMITS = 2_000
WINDOW = 100
SETTLED = 200


@pytest.mark.slow
@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_a_graph_is_as_fast_and_small_after_two_thousand_commits(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", schema=SCHEMA, durability="process")
    graph.load(
        ({"type": "Person", "data": {"slug": f"p{n}"}} for n in range(ROWS)), mode="overwrite"
    )
    process = psutil.Process()
    writes, reads, memory = list[float](), list[float](), list[int]()

    for number in range(COMMITS):
        writes.append(_cpu(lambda: graph.mutate(WORK, "add", {"slug": f"n{number}"})))  # noqa: B023
        reads.append(_cpu(lambda: graph.query(WORK, "find", {"slug": f"n{number}"})))  # noqa: B023
        memory.append(process.memory_info().rss)

    print(f"write {_growth(writes):.2f}x, read {_growth(reads):.2f}x")
    print(f"resident +{(memory[-1] - memory[SETTLED]) / 2**20:.1f} MB since commit {SETTLED}")
    assert _growth(writes) <= 1.5
    assert _growth(reads) <= 1.5
    operations = 2 * (COMMITS - SETTLED)
    assert memory[-1] - memory[SETTLED] <= 5 * 2**20 * operations / 1_000
    assert graph.verify().errors == ()


def _cpu(call: object) -> float:
    start = time.process_time()
    assert callable(call)
    call()
    return time.process_time() - start


def _growth(costs: list[float]) -> float:
    """What a call costs at the end, over what it cost when the caches were warm.

    Means, not medians: the compactions of self-care are part of the price.
    """
    early = statistics.fmean(costs[SETTLED : SETTLED + WINDOW])
    return statistics.fmean(costs[-WINDOW:]) / early
