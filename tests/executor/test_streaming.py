"""A type larger than the budget: read batch by batch, with the same answers."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.compiler import bind_params, compile_query, require_read
from omnigraph.executor import joins, stream
from omnigraph.executor.explain import explain
from omnigraph.graph import Graph, init
from omnigraph.index import RuntimeCache, table_view
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.storage.counters import counting
from omnigraph.storage.reads import Reads
from omnigraph.testing.inside import inside
from tests.executor.running import run_query

ROWS = 6_000
WIDTH = 500
BUDGET = 200_000
"""A fifteenth of what the texts of the type take."""

SCHEMA = """
node Item { key: I64 @key  text: String  other: String  number: F64?  kind: String? }
edge Next: Item -> Item
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = init(tmp_path_factory.mktemp("items") / "g", schema=SCHEMA, durability="process")
    records: list[dict[str, Any]] = [
        {
            "type": "Item",
            "data": {
                "key": n,
                "text": f"{n * 7919 % ROWS:06d}" * (WIDTH // 6),
                "other": f"{n % 10:06d}",
                "number": None if n % 5 == 0 else n / 4,
                "kind": None if n % 7 == 0 else f"k{n % 3}",
            },
        }
        for n in range(ROWS)
    ]
    records += [{"edge": "Next", "from": str(n), "to": str(n + 1)} for n in range(0, ROWS - 1, 3)]
    graph.load(records, mode="overwrite")
    return graph


def query(match: str, tail: str) -> str:
    return f"query q($prefix: String) {{ match {{ $i: Item {match} }} return {{ {tail} }}"


READS = {
    "rows in order": query("$i.key < 50", "$i.key, $i.text } order { $i.text }"),
    "the first few": query("", "$i.key, $i.text, $i.kind } order { $i.text desc } limit 7"),
    "ties": query("", "$i.key, $i.text } order { $i.other desc, $i.kind } limit 9"),
    "a filter on the large column": query("$i.text starts_with $prefix", "$i.key }"),
    "two columns compared": query("$i.other < $i.text", "count($i) as n, max($i.text) as m }"),
    "groups": query(
        "",
        """$i.kind, count($i) as n, sum($i.number) as s, avg($i.number) as a, min($i.text) as m,
           max($i.text) as x, count($i.number) as c } order { n desc, $i.kind }""",
    ),
    "groups by the large column": query(
        "$i.key < 3000", "$i.text, count($i) as n } order { $i.text } limit 3"
    ),
    "one group": query("$i.key > 10", "count($i) as n, min($i.text) as m }"),
    "no group": query("$i.key < 0", "count($i) as n, min($i.text) as m, sum($i.number) as s }"),
    "a parameter beside an aggregate": query(
        "$i.text starts_with $prefix",
        "$prefix as p, $i.kind, count($i) as n } order { p, n desc }",
    ),
    "only a parameter beside an aggregate": query("", "$prefix as p, min($i.text) as m }"),
    "a parameter beside an aggregate of nothing": query(
        "$i.key < 0", "$prefix, min($i.text) as m }"
    ),
    "only a parameter, each once": query("$i.text starts_with $prefix", "$prefix as p }").replace(
        "return {", "return distinct {"
    ),
    "only a parameter, of no rows": query("$i.key < 0", "$prefix as p }").replace(
        "return {", "return distinct {"
    ),
    "no rows": query("$i.key < 0", "$i.text } order { $i.text } limit 3"),
    "nothing holds": query("1 = 2", "count($i) as n, min($i.text) as m }"),
    "conditions joined": query(
        "not ($i.number > 20.0 or $i.kind is null) and $i.key in [1, 2, 3, 400]", "$i.text }"
    ),
    "computed columns and keys": query(
        "lower($i.text) contains $prefix",
        "$i.key, length($i.text) as n, -$i.number as m } order { m, $i.key * 2 desc } limit 4",
    ),
    "objects": query("$i.key < 4000", "$i { key, text } as o } order { $i.text } limit 3 offset 2"),
    "groups that are finished": query(
        "",
        """$i.kind, count($i) as n, max($i.number) - min($i.number) as d } having { n > 1 }
           order { d desc, n }""",
    ),
    "a limit of nothing": query("", "$i.text } limit 0"),
    "what a traversal reaches": query("$i next $o", "$o.key, $o.text } order { $o.text } limit 5"),
}


class Held:
    """The bytes of the batches that are alive, and the most there were."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.largest = 0

    def watch(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            size = batch.nbytes
            self.now += size
            self.most = max(self.most, self.now)
            self.largest = max(self.largest, size)
            weakref.finalize(batch, self._forget, size)
            yield batch
            del batch

    def _forget(self, size: int) -> None:
        self.now -= size


@pytest.mark.parametrize("name", READS)
def test_a_type_above_the_budget_gives_the_same_answers(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(stream, "BATCH_BYTES", 20_000)
    params = {"prefix": "0000"}
    small = RuntimeCache(BUDGET)

    found = run_query(graph, READS[name], params, cache=small).rows()

    expected = run_query(graph, READS[name], params).rows()
    if "order" in READS[name]:
        assert found == expected
    else:
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert small.nbytes <= BUDGET


@pytest.mark.parametrize("name", ["the first few", "groups", "a filter on the large column"])
def test_no_more_than_a_few_batches_are_held(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of three megabytes of text, at most a budget's worth is in memory at any moment."""
    held = Held()
    stream_rows = Reads.scan_stream
    monkeypatch.setattr(
        Reads, "scan_stream", lambda *args, **kw: held.watch(stream_rows(*args, **kw))
    )

    def whole_scan(*_: object, **__: object) -> pa.Table:
        raise AssertionError("the whole column was read at once")

    monkeypatch.setattr(Reads, "scan", whole_scan)
    monkeypatch.setattr(stream, "BATCH_BYTES", 2_000)
    cache = RuntimeCache(BUDGET)

    run_query(graph, READS[name], {"prefix": "0000"}, cache=cache)

    assert held.largest > 0
    assert held.most <= BUDGET
    assert cache.nbytes <= BUDGET


def test_explain_says_that_a_type_is_streamed(graph: Graph) -> None:
    catalog = graph.catalog
    ir = require_read(compile_query(READS["groups"], catalog))
    params = bind_params(ir.params, {"prefix": ""}) | {NOW_PARAMETER: 0}

    def show_rows(cache: RuntimeCache) -> str:
        tables = inside(graph).store.tables
        return str(
            explain(ir, graph.snapshot(), catalog, tables, cache, params=params, analyze=True)
        )

    assert "streaming node:Item" in show_rows(RuntimeCache(BUDGET))
    assert "streaming" not in show_rows(RuntimeCache())


def test_values_of_a_large_column_are_gathered_in_one_pass(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rows of it, after a traversal, in any order and more than once."""
    monkeypatch.setattr(table_view, "BATCH_ROWS", 100)
    text = "query q() { match { $i: Item $i next{1,2} $o $i.key < 9000 } return { $o.text } }"

    found = run_query(graph, text, cache=RuntimeCache(BUDGET)).rows()

    expected = run_query(graph, text).rows()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_streamed_read_stops_at_its_limit(graph: Graph, tmp_path: Path) -> None:
    text = "query q() { match { $i: Item } return { $i.text } limit 3 }"

    assert len(run_query(graph, text, cache=RuntimeCache(BUDGET))) == 3


@pytest.mark.parametrize("width", ["streamed", "joined"])
@pytest.mark.parametrize("kind", ["texts", "numbers"])
def test_a_long_list_is_prepared_once_however_many_batches_meet_it(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, kind: str, width: str
) -> None:
    """A list that is met by what is computed: in batches of a scan, and in blocks of rows."""
    monkeypatch.setattr(stream, "BATCH_BYTES", 20_000)
    monkeypatch.setattr(joins, "PAIRS_PER_BLOCK", 64)
    met = {
        "streamed": {"texts": "lower($i.text) in $texts", "numbers": "$i.key + 0.5 in $numbers"},
        "joined": {
            "texts": "$o: Item $i.key < 20 $o.key < 20 lower($i.text + $o.text) in $texts",
            "numbers": "$o: Item $i.key < 20 $o.key < 20 $i.key + $o.key + 0.5 in $numbers",
        },
    }[width][kind]
    text = f"""query q($texts: [String], $numbers: [F64]) {{
        match {{ $i: Item {met} }} return {{ $i.key, $i.text }} order {{ $i.key }} }}"""
    texts = [f"{n * 7919 % ROWS:06d}" * (WIDTH // 6) for n in (1, 3)]
    others = [f"{n} of many" for n in range(1_100)]
    params: dict[str, Any] = {
        "texts": [*texts, *(each + each for each in texts), *others],
        "numbers": [1.5, 3.5, *(-n for n in range(1, 1_100))],
    }

    with counting() as counters:
        found = run_query(graph, text, params, cache=RuntimeCache(BUDGET)).rows()

    assert counters.value_sets == 1
    keys = [1, 3] if width == "streamed" or kind == "texts" else [0, 0, 1, 1, 2, 3]
    assert [row["i.key"] for row in found] == keys
