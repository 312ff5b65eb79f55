"""The limit on bytes: few rows may be large, and are refused before they are built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import BadRequestError, ResourceLimitError
from omnigraph.executor import filters, steps, stream_groups
from omnigraph.graph import Graph, init
from omnigraph.index import RuntimeCache, table_view
from omnigraph.index.query_memory import (
    BYTES_VARIABLE,
    bounded_memory,
    measure_take,
    read_in_parts,
    take,
)
from tests.executor.running import run_query

DOCS = 120
TEXT = 10_000
LIMIT = 8 * 1024 * 1024
"""The documents fit in it, and of all pairs not a tenth."""
EVERYTHING = DOCS * DOCS * TEXT
POOLS: list[pa.MemoryPool] = []
"""What has been allocated from a pool may be freed later than the test ends."""


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Few documents with long texts, each of which leads to each."""
    path: Path = tmp_path_factory.mktemp("docs") / "g.omni"
    schema = """
    interface Written { body: String? }
    node Doc implements Written { k: I32 @key  body: String?  tags: [String]?  vec: Vector(2500)? }
    node Memo implements Written { k: I32 @key  body: String? }
    edge To: Doc -> Doc
    """
    nodes: list[dict[str, Any]] = [
        {
            "type": "Doc",
            "data": {"k": n, "body": chr(97 + n % 26) * TEXT, "tags": ["t" * (TEXT // 10)] * 10},
        }
        for n in range(DOCS)
    ]
    nodes[0]["data"]["vec"] = [0.5] * 2500
    ends = [(a, b) for a in range(DOCS) for b in range(DOCS)]
    edges = [{"edge": "To", "from": str(a), "to": str(b)} for a, b in ends]
    with init(path, schema=schema, durability="process") as graph:
        graph.load([*nodes, *edges], mode="overwrite")
        yield graph


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, str(LIMIT))


@contextmanager
def arrow_memory() -> Iterator[pa.MemoryPool]:
    """The memory that Arrow takes inside of the block."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(before)


LARGE = [
    "match { $a to $b } return { $a.body, $b.body }",
    "match { $a: Doc  $b: Doc } return { $a.body }",
    "match { $a to $b } return { $a.tags }",
    "match { $a to $b } return { $a.vec }",
    "match { $a to $b } return { collect($b.body) as l }",
    "match { $a to $b } return { collect(distinct $a.body + $b.body) as l }",
    "match { $a to $b } return { $a, collect($b { * } order $b.k) as l }",
    "match { $a to $b } return { $a.body + $b.body as t }",
    "match { $a to $b } return { upper($a.body) as t, count($b) as n, collect($b.k) as l }",
    "match { $a to $b } return { $text as t }",
    "match { $a to $b } return { $a.k, case when $a.k > $b.k then $text else $b.body end as t }",
    "match { $a to $b } return { $a.body + $b.body as t, count($b) as n } having { n > 1 }",
    "match { $a to $b } return distinct { $a.body, $b.body }",
    "match { $a to $b } return { $a.k } order { $a.body + $b.body }",
    "match { $a: Doc  optional { $a to $b } } return { $b.body }",
    "match { $a: Doc  either { $a to $b } or { $b to $a } } return { $b.body }",
    "match { $a: Written  $b: Doc } return { $a.body }",
    "match { $a $t:shortest to{1,2} $b } return { nodes($t, body) as l }",
    f"match {{ $a: Doc }} return {{ {' + '.join(['$a.body'] * 40)} as t }}",
    f"match {{ $a: Doc }} return {{ {' '.join(f'upper($a.body) as t{n}' for n in range(8))} }}",
    "match { $a to $b  $b.k < 8 } return { collect($b.body) as l }",
    """match { $a to $b  $b.k < 3 }
       return { collect($b.body) as l, collect($b.body order $a.k) as m,
                collect($b.body order $b.k) as n }""",
    """match { $a to $b  $a.k < 4 }
       return { $a.k, $b.k, $b.body, collect($a.body) as l }""",
    """match { $a to $b  $a.k < 5 }
       return { $a.k, $b.k, $b.body, collect($a.k) as l, count($a) as n } having { n > 0 }""",
    "top 5000 by $b.k { $a to $b } match { $a to $b } return { $b.body }",
]


@pytest.mark.parametrize("text", LARGE)
def test_what_is_large_is_refused_before_it_is_built(docs: Graph, text: str) -> None:
    """Each of these would take a hundred megabytes and more, and few rows."""
    params = "$text: String" if "$text" in text else ""
    with (
        arrow_memory() as pool,
        pytest.raises(ResourceLimitError, match="number of bytes to hold") as caught,
    ):
        run_query(docs, f"query q({params}) {{ {text} }}", {"text": "x" * TEXT} if params else {})

    assert caught.value.limit == LIMIT
    assert caught.value.actual > LIMIT
    assert BYTES_VARIABLE in str(caught.value)
    assert pool.max_memory() < 3 * LIMIT < EVERYTHING


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("match { $a to $b } return { $a.body, $b.k as n } limit 2", [0, 1]),
        ("match { $a: Doc } return { $a.body, $a.k as n } order { n desc } limit 1", [DOCS - 1]),
        ("match { $a to $b } return { count($b.body) as n }", [DOCS * DOCS]),
        ("match { $a to $b } return { $a.k, count(distinct $b.body) as n } limit 1", [26]),
        (
            "match { $a to $b } return { $a.body, count(distinct $b) as n } order { n } limit 1",
            [DOCS],
        ),
        ("match { $a to $b } return { collect(distinct $b.body) as l, count($a) as n }", [DOCS**2]),
        ("match { $a: Doc } return { collect($a.body) as l, count($a) as n }", [DOCS]),
        (
            """match { $a to $b  $a.k < 30  $a.body + $b.body contains "ab" }
               return { count($a) as n }""",
            [10],
        ),
        (
            """match { $a: Doc  $a.k < 30  not { $a to $b  $a.body + $b.body ends_with "z" } }
               return { $a.k as n }""",
            [],
        ),
        ("match { $a: Doc  $b: Doc  $a.body = $b.body } return { count($a) as n }", [560]),
    ],
)
@pytest.mark.parametrize("budget", [None, 1])
def test_what_is_only_looked_at_is_not_limited(
    docs: Graph, text: str, expected: list[int], budget: int | None
) -> None:
    """Groups and filters read long texts once, or in parts; also where no column is kept."""
    with arrow_memory() as pool:
        cache = RuntimeCache(budget_bytes=budget)
        found = run_query(docs, f"query q() {{ {text} }}", cache=cache).rows()

    assert [row["n"] for row in found] == expected
    assert pool.max_memory() < 3 * LIMIT


def test_a_condition_takes_no_more_than_a_part_whatever_the_limit(
    docs: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, str(EVERYTHING * 10))
    monkeypatch.setattr(filters, "BYTES_PER_PART", LIMIT)
    text = """match { $a to $b  $a.k < 30  $a.body + $b.body ends_with "z" }
              return { count($a) as n }"""

    with arrow_memory() as pool:
        found = run_query(docs, f"query q() {{ {text} }}").rows()

    assert found == [{"n": 4 * 30}]
    assert pool.max_memory() < 3 * LIMIT


@pytest.mark.parametrize(
    ("text", "limit", "block", "most"),
    [
        # Of rows: 16 bytes for each of 14,400.
        ("match { $a to $b } return { $a.k as x, $b.k as y }", 150_000, 1_000, 200_000),
        ("match { $a to $b } return { $a.k as x, $b.k as y }", 150_000, 100_000, 250_000),
        # Rows that stand for several, one by one.
        ("match { $a to $b } return { $a.k as x }", 150_000, 1_000, 250_000),
    ],
)
def test_rows_are_counted_by_what_they_bind(
    docs: Graph, monkeypatch: pytest.MonkeyPatch, text: str, limit: int, block: int, most: int
) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, str(limit))
    monkeypatch.setattr(steps, "BLOCK_ENTRIES", block)

    with pytest.raises(ResourceLimitError, match="number of bytes to hold") as caught:
        run_query(docs, f"query q() {{ {text} }}")

    assert caught.value.actual < most


def test_rows_are_read_from_the_store_while_there_is_room_for_them() -> None:
    read = 0

    def read_some(places: Any) -> pa.Table:
        nonlocal read
        read += len(places)
        return pa.table({"body": ["x" * 1_000] * len(places)})

    with pytest.raises(ResourceLimitError, match="number of bytes to hold"):
        read_in_parts(read_some, np.arange(1_000_000))

    assert read < 3 * LIMIT / 1_000


def test_what_is_gathered_from_a_pass_is_counted_as_it_comes(
    docs: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, str(DOCS * TEXT // 2))
    monkeypatch.setattr(table_view, "BATCH_ROWS", 10)

    with pytest.raises(ResourceLimitError, match="number of bytes to hold") as caught:
        run_query(docs, f"query q() {{ {LARGE[0]} }}", cache=RuntimeCache(budget_bytes=1))

    assert caught.value.actual < DOCS * TEXT * 3 // 4


def test_groups_of_a_stream_are_limited(docs: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, str(26 * TEXT * 3 // 2))
    monkeypatch.setattr(stream_groups, "ROWS_BEFORE_FOLDING", 10)
    text = "match { $a: Doc } return { $a.body as t, count($a) as n }"

    with pytest.raises(ResourceLimitError, match="number of bytes to hold"):
        run_query(docs, f"query q() {{ {text} }}", cache=RuntimeCache(budget_bytes=1))


@pytest.mark.parametrize("text", [*LARGE[:2], "match { $a: Doc } return { $a.body, $a.k }"])
def test_columns_that_are_never_held_are_limited_too(
    docs: Graph, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """What is streamed, or fetched row by row, is counted as it comes."""
    monkeypatch.setenv(BYTES_VARIABLE, str(DOCS * TEXT // 2))

    with (
        arrow_memory() as pool,
        pytest.raises(ResourceLimitError, match="number of bytes to hold"),
    ):
        run_query(docs, f"query q() {{ {text} }}", cache=RuntimeCache(budget_bytes=1))

    assert pool.max_memory() < LIMIT


def test_what_a_mutation_runs_over_is_limited(docs: Graph) -> None:
    before = docs.snapshot().manifest_version
    text = "match { $a to $b } insert Memo { k: 1000 * $a.k + $b.k  body: $b.body }"

    with pytest.raises(ResourceLimitError, match="number of bytes to hold"):
        docs.mutate(f"query m() {{ {text} }}")

    assert docs.snapshot().manifest_version == before


@pytest.mark.parametrize("allocate", [pa.allocate_buffer, lambda size: np.empty(size, np.uint8)])
def test_memory_that_the_system_does_not_give_is_told_in_our_words(allocate: Any) -> None:
    with (
        pytest.raises(ResourceLimitError, match="the system gave no more") as caught,
        bounded_memory(),
    ):
        allocate(2**60)

    assert caught.value.actual - caught.value.limit == 2**60


def test_more_text_than_a_column_can_have_is_refused_whatever_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, str(2**40))
    column, places = pa.array(["x" * 2**22]), np.zeros(512, dtype=np.int64)

    with pytest.raises(ResourceLimitError, match=r"of one column .* in parts"):
        take(column, places, pa.array(places))


@pytest.mark.parametrize("value", ["much", "0", "-1"])
def test_a_limit_that_is_no_number_of_bytes_is_refused(
    docs: Graph, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, value)

    with pytest.raises(BadRequestError, match=f"is '{value}', expected a positive number"):
        run_query(docs, f"query q() {{ {LARGE[0]} }}")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3, 4], pa.int32()),
        pa.array([True, None, False, True]),
        pa.array(["a", "", None, "long" * 50]),
        pa.array([["a", "bb"], [], None, ["long" * 50] * 9], pa.list_(pa.utf8())),
        pa.array([[1, 2], [], None, [3]], pa.list_(pa.int64())),
        pa.array([[1.0, 2.0], None, [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)),
        pa.array([["a", "b"], None, ["c" * 99, "d"], ["", ""]], pa.list_(pa.utf8(), 2)),
        pa.array([{"a": 1, "b": "x" * 99}, None, {"a": 2, "b": "y"}, {"a": None, "b": None}]),
        pa.nulls(4, pa.utf8()),
        pa.nulls(4),
    ],
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize("first", [0, 1])
def test_what_values_would_take_is_known_before_they_are_taken(
    values: pa.Array, first: int
) -> None:
    """Up to bits for nulls, and the offset that ends a column."""
    column, places = values.slice(first), np.array([2, 0, 2, 1, 2] * 50)

    measured = measure_take(column, places)

    taken = column.take(pa.array(places)).nbytes
    assert 0.75 * taken - 64 <= measured <= 1.25 * taken + 8 * len(places)
