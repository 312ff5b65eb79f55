"""Nonblocking: a look-up in memory is answered without blocking, all else raises WouldBlock.

Either way an answer is the one that the same query gives in a thread that may block.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.compiler import compile as compiling
from omnigraph.errors import BadRequestError
from omnigraph.index import thresholds
from omnigraph.index.keys import ColumnKey, PlanKey, PostingsKey, RanksKey
from omnigraph.nonblocking import WouldBlock, nonblocking
from omnigraph.storage.counters import Counters, counting
from omnigraph.testing.inside import inside

SCHEMA = """
node Person { slug: String @key  number: I64 @unique  name: String?  age: I32?  born: DateTime? }
node Day { day: Date @key  text: String? }
edge Knows: Person -> Person
"""
BY_KEY = """
query q($slug: String) {
    match { $p: Person { slug: $slug } } return { $p.name as name, $p.age as age }
}
"""
BY_UNIQUE = "query q($n: I64) { match { $p: Person { number: $n } } return { $p.slug, $p } }"
BY_DAY = "query q($day: Date) { match { $d: Day { day: $day } } return { $d.text } }"
WITH_MORE = """
query q($slug: String) { match { $p: Person { slug: $slug } $p.age > 3 } return { $p.name } }
"""
SLOW = {
    "a scan": "match { $p: Person } return { $p.name } limit 1",
    "a value that others have": "match { $p: Person { age: 3 } } return { $p.name }",
    "a range": 'match { $p: Person $p.slug > "p3" } return { $p.name }',
    "an order": 'match { $p: Person { slug: "p3" } } return { $p.age } order { $p.age }',
    "an aggregate": 'match { $p: Person { slug: "p3" } } return { count($p) as n }',
    "a traversal": 'match { $p: Person { slug: "p3" } $p knows $f } return { $f.name }',
    "a negation": 'match { $p: Person { slug: "p4" } not { $p knows $f } } return { $p.name }',
    "two nodes": """
        match { $p: Person { slug: "p3" } $o: Person { slug: "p4" } } return { $p.name, $o.name }
    """,
    "a text search": """
        match { $p: Person { slug: "p3" } search($p.name, "n3") } return { $p.name }
    """,
}
UPDATE = """
query u($slug: String, $name: String) { update Person set { name: $name } where slug = $slug }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "graph", schema=SCHEMA, durability="process") as graph:
        days = [{"day": f"2026-01-{n:02}", "text": f"t{n}"} for n in range(1, 31)]
        graph.load(
            [new_person(number) for number in range(100)]
            + [{"type": "Day", "data": each} for each in days]
            + [{"edge": "Knows", "from": "p3", "to": "p4"}],
            mode="overwrite",
        )
        yield graph


def new_person(number: int) -> dict[str, Any]:
    name, age = f"n{number}", number % 9
    return {
        "type": "Person",
        "data": {"slug": f"p{number}", "number": number, "name": name, "age": age},
    }


def warm(graph: og.Graph, source: str, **params: Any) -> list[dict[str, Any]]:
    """Query in a thread that may block, until everything is in memory."""
    time.sleep(0.05)  # files that have just changed are looked at each time
    for _ in range(3):
        rows = graph.query(source, params=params).rows()
    return rows


def query_nonblocking(graph: og.Graph, source: str, **params: Any) -> list[dict[str, Any]] | None:
    """The answer, or None when the query would block."""
    try:
        with nonblocking():
            return graph.query(source, params=params).rows()
    except WouldBlock:
        return None


@pytest.mark.parametrize(
    ("source", "params"),
    [
        (BY_KEY, {"slug": "p7"}),
        (BY_KEY, {"slug": "missing"}),
        (BY_UNIQUE, {"n": 7}),
        (BY_DAY, {"day": "2026-01-07"}),
        (WITH_MORE, {"slug": "p7"}),
    ],
)
def test_a_lookup_of_one_node_in_memory_does_not_block(
    graph: og.Graph, source: str, params: dict[str, Any]
) -> None:
    expected = warm(graph, source, **params)

    with counting() as counters:
        assert query_nonblocking(graph, source, **params) == expected

    assert counters == Counters()


@pytest.mark.parametrize("what", SLOW)
def test_a_query_whose_cost_grows_with_the_table_blocks_however_warm_it_is(
    graph: og.Graph, what: str
) -> None:
    source = f"query q() {{ {SLOW[what]} }}"
    assert warm(graph, source)

    assert query_nonblocking(graph, source) is None


def test_the_first_query_would_block_and_reads_nothing(graph: og.Graph) -> None:
    time.sleep(0.05)
    for _ in range(5):
        with counting() as counters:
            assert query_nonblocking(graph, BY_KEY, slug="p7") is None
        assert counters == Counters()

    expected = warm(graph, BY_KEY, slug="p7")
    assert query_nonblocking(graph, BY_KEY, slug="p7") == expected == [{"name": "n7", "age": 7}]


def test_giving_up_counts_as_no_use(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one query, retried often, would get its column decoded."""
    monkeypatch.setattr(thresholds, "SMALL_TABLE_ROWS", 10)
    time.sleep(0.05)
    graph.query(BY_KEY, params={"slug": "p7"})
    touches = dict(inside(graph).cache._touches._entries)
    for _ in range(50):
        assert query_nonblocking(graph, BY_KEY, slug="p7") is None

    assert touches
    assert inside(graph).cache._touches._entries == touches


def test_a_large_column_is_not_compared_without_blocking(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dates are compared one by one, which takes as long as there are many."""
    monkeypatch.setattr(thresholds, "SMALL_TABLE_ROWS", 10)
    expected = warm(graph, BY_DAY, day="2026-01-07")
    assert query_nonblocking(graph, BY_DAY, day="2026-01-07") is None

    monkeypatch.undo()
    assert query_nonblocking(graph, BY_DAY, day="2026-01-07") == expected


@pytest.mark.parametrize("kind", [PlanKey, RanksKey, PostingsKey, ColumnKey])
def test_nothing_is_built_without_blocking(graph: og.Graph, kind: type) -> None:
    warm(graph, BY_KEY, slug="p7")
    cache = inside(graph).cache
    lost = [key for key in cache.list_keys() if isinstance(key, kind)]
    assert lost
    for key in lost:
        cache._drop(key)
    kept = set(cache.list_keys())

    assert query_nonblocking(graph, BY_KEY, slug="p7") is None
    assert set(cache.list_keys()) == kept


def test_no_table_is_opened_without_blocking(graph: og.Graph) -> None:
    warm(graph, BY_KEY, slug="p7")
    inside(graph).store.tables.forget()
    inside(graph).cache.recent.clear()

    with counting() as counters:
        assert query_nonblocking(graph, BY_KEY, slug="p7") is None

    assert counters == Counters()


def test_no_text_is_compiled_without_blocking(graph: og.Graph) -> None:
    warm(graph, BY_KEY, slug="p7")
    compiling._compile.cache_clear()
    compiling.parse_file.cache_clear()

    assert query_nonblocking(graph, BY_KEY, slug="p7") is None
    assert compiling.parse_file.cache_info().currsize == 0


def test_many_new_rows_are_not_compared_without_blocking(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a version that is looked up by the ranks of the one before."""
    warm(graph, BY_KEY, slug="p7")
    graph.load([new_person(number) for number in range(100, 108)], mode="append")
    expected = warm(graph, BY_KEY, slug="p104")
    assert query_nonblocking(graph, BY_KEY, slug="p104") == expected == [{"name": "n104", "age": 5}]

    monkeypatch.setattr(thresholds, "NEW_ROWS_RANKED_MAX", 7)
    assert query_nonblocking(graph, BY_KEY, slug="p104") is None


def test_new_rows_are_ranked_by_prefetch_once_they_are_looked_up_often(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "FEW_ROWS", 0)
    with og.open(graph.uri, config={"read_ahead": True}, durability="process") as prefetching:
        warm(prefetching, BY_KEY, slug="p7")
        for number in range(100, 106):
            prefetching.load([new_person(number)], mode="append")
            warm(prefetching, BY_KEY, slug=f"p{number}")
            is_first = number == 100
            assert (query_nonblocking(prefetching, BY_KEY, slug=f"p{number}") is None) == is_first
            if is_first:
                for _ in range(20):
                    prefetching.query(BY_KEY, params={"slug": "p7"})


@pytest.mark.slow
@pytest.mark.parametrize("is_ours", [True, False])
def test_a_nonblocking_answer_is_never_from_before_a_write(graph: og.Graph, is_ours: bool) -> None:
    writer = graph if is_ours else og.open(graph.uri, durability="process")
    answered = 0
    for number in range(8):
        warm(graph, BY_KEY, slug="p7")
        assert query_nonblocking(graph, BY_KEY, slug="p7") is not None
        name = f"new{number}"
        writer.mutate(UPDATE, params={"slug": "p7", "name": name})
        for _ in range(3):
            found = query_nonblocking(graph, BY_KEY, slug="p7")
            assert found is None or found == [{"name": name, "age": 7}]
            graph.query(BY_KEY, params={"slug": "p7"})
        warm(graph, BY_KEY, slug="p7")
        answered += query_nonblocking(graph, BY_KEY, slug="p7") == [{"name": name, "age": 7}]
    assert answered == 8


def test_a_query_of_an_earlier_commit_would_block(graph: og.Graph) -> None:
    earlier = graph.commits()[0].commit_id
    graph.mutate(UPDATE, params={"slug": "p7", "name": "new"})
    warm(graph, BY_KEY, slug="p7")
    with pytest.raises(WouldBlock), nonblocking():
        graph.query(BY_KEY, params={"slug": "p7"}, commit=earlier)


def test_long_arrays_of_parameters_would_block(graph: og.Graph) -> None:
    source = BY_KEY.replace("$slug: String", "$slug: String, $many: [I64]")
    warm(graph, source, slug="p7", many=[1])
    few, many = [1] * 256, [1] * 257

    assert query_nonblocking(graph, source, slug="p7", many=few) is not None
    assert query_nonblocking(graph, source, slug="p7", many=many) is None
    assert query_nonblocking(graph, source, slug="p7", many=[1], other=many) is None


def test_a_nonblocking_query_reports_mistakes_in_the_same_words(graph: og.Graph) -> None:
    warm(graph, BY_KEY, slug="p7")
    for params in ({}, {"slug": 7}, {"slug": "p7", "other": {}}):
        with pytest.raises(BadRequestError) as expected:
            graph.query(BY_KEY, params=params)
        with pytest.raises(BadRequestError) as raised, nonblocking():
            graph.query(BY_KEY, params=params)
        assert str(raised.value) == str(expected.value)


def test_a_closed_graph_refuses_a_nonblocking_query(graph: og.Graph) -> None:
    warm(graph, BY_KEY, slug="p7")
    graph.close()
    with pytest.raises(BadRequestError, match="is closed"), nonblocking():
        graph.query(BY_KEY, params={"slug": "p7"})
