"""What a query or a write leaves behind is let go at once: nothing of it waits for the collector.

The collector looks at old objects once in thousands of queries. A view that waits for it has a
version of its table open, whose manifest is as long as its rows were written one by one.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph as og

SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person\n"
WORK = """
query add($slug: String) { insert Person { slug: $slug, age: 1 } }
query know($from: String, $to: String) { insert Knows { from: $from, to: $to } }
query age($slug: String, $age: I32) { update Person set { age: $age } where slug = $slug }
query find($slug: String) { match { $p: Person { slug: $slug } } return { $p.age } }
query friends($slug: String) { match { $p: Person { slug: $slug } $p knows $q } return { $q } }
query count($age: I32) { match { $p: Person { age: $age } } return { count($p) as many } }
"""
PAIRS = 12


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "graph", schema=SCHEMA, durability="process") as made:
        rows = [{"type": "Person", "data": {"slug": f"p{each}", "age": 1}} for each in range(100)]
        made.load(rows, mode="overwrite")
        for number in range(3):
            work(made, number)
        yield made


def work(graph: og.Graph, number: int) -> None:
    slug = f"n{number}"
    graph.mutate(WORK, "add", {"slug": slug})
    graph.mutate(WORK, "know", {"from": slug, "to": "p1"})
    graph.mutate(WORK, "age", {"slug": slug, "age": number})
    for query, parameters in (
        ("find", {"slug": slug}),
        ("friends", {"slug": slug}),
        ("count", {"age": number}),
    ):
        graph.query(WORK, query, parameters)


@contextmanager
def garbage() -> Iterator[Counter[str]]:
    """What of ours and of Lance's only the collector can free, of all that the block leaves."""
    found: Counter[str] = Counter()
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        kinds = (type(each) for each in gc.garbage)
        found.update(
            f"{kind.__module__}.{kind.__qualname__}"
            for kind in kinds
            if str(kind.__module__).partition(".")[0] in ("omnigraph", "lance")
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()
            gc.collect()


def test_what_writes_and_look_ups_leave_behind_is_let_go_without_the_collector(
    graph: og.Graph,
) -> None:
    with garbage() as found:
        for number in range(3, 3 + PAIRS):
            work(graph, number)
    assert found == {}
