"""Queries that explode on Spark end with a typed error, or with the rows of the local engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ResourceLimitError
from omnigraph.executor.rows import ROWS_VARIABLE
from omnigraph.index.query_memory import BYTES_VARIABLE
from omnigraph.pipeline.spark_query import failures, list_sizes, walk
from tests.depth import IS_TORTURE, sample
from tests.test_conformance import as_bag

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

DOCS = 120
TEXT = 10_000


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    """Few documents with long texts, each of which leads to each."""
    path: Path = tmp_path_factory.mktemp("docs") / "g.omni"
    schema = "node Doc { k: I32 @key  body: String?  tags: [String]? }\nedge To: Doc -> Doc"
    nodes: list[dict[str, Any]] = [
        {"type": "Doc", "data": {"k": n, "body": chr(97 + n % 26) * TEXT, "tags": ["t"] * n}}
        for n in range(DOCS)
    ]
    ends = [(a, b) for a in range(DOCS) for b in range(DOCS)]
    edges = [{"edge": "To", "from": str(a), "to": str(b)} for a, b in ends]
    with og.init(path, schema=schema, durability="process") as graph:
        graph.load([*nodes, *edges], mode="overwrite")
        yield graph


COLLECT = "query q() { match { $a to $b  $b.k < 2 } return { %s } }"


@pytest.mark.parametrize(
    "returned",
    sample(
        [
            "collect($b.body) as l",
            "$b.k as k, collect($b { * } order $a.k) as l",
            "count($a) as n, collect(distinct $b.body) as l, collect($a.k) as m",
        ],
        every=3,
    ),
)
def test_a_list_larger_than_a_task_can_make_is_refused_before_it_is_begun(
    spark: Any, docs: og.Graph, monkeypatch: pytest.MonkeyPatch, returned: str
) -> None:
    """In Java there is no room for it, and a heap without room ends the process."""
    monkeypatch.setenv(BYTES_VARIABLE, str(10 * TEXT))

    with pytest.raises(ResourceLimitError, match=r"one list of `collect` .* by more") as caught:
        docs.query(COLLECT % returned, engine="spark")

    assert caught.value.limit == 10 * TEXT
    assert DOCS * TEXT < caught.value.actual < 3 * DOCS * TEXT


def test_lists_that_are_made_one_at_a_time_are_those_of_the_local_engine(
    spark: Any, docs: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_sizes, "SMALL_BYTES", 0)
    text = COLLECT % "$a.k as k, collect($b { k, tags } order $b.k desc) as l, count($b) as n"

    rows = docs.query(text, engine="spark").rows()

    assert as_bag(rows) == as_bag(docs.query(text).rows())


def test_the_measure_of_a_list_is_about_its_size(spark: Any) -> None:
    from pyspark.sql import functions as fn

    row = {"t": "x" * 1_000, "l": ["y" * 500] * 2, "n": [1] * 125, "s": {"t": "z" * 1_000}}
    kinds = "t string, l array<string>, n array<long>, s struct<t string>, e array<string>"
    frame = spark.createDataFrame([{**row, "e": None}], kinds)

    sizes = frame.select(
        *(
            list_sizes.measure_value(fn.col(each.name), each.dataType).alias(each.name)
            for each in frame.schema
        )
    )
    found = sizes.first().asDict()

    assert all(1_000 <= found[name] < 1_200 for name in row)
    assert found["e"] < 100


def test_a_walk_that_relates_too_many_is_refused(
    spark: Any, docs: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few starts that lead to many are not joined by the driver, and what tasks find is counted."""
    text = "query q() { match { $a to{1,3} $b  $a.k < 5 } return { count($b) as n } }"
    monkeypatch.setattr(walk, "MADE_PAIRS_MAX", 100)
    assert docs.query(text, engine="spark").rows() == [{"n": 5 * DOCS}]
    monkeypatch.setenv(ROWS_VARIABLE, "500")

    with pytest.raises(ResourceLimitError, match=r"pairs of nodes to hold .* fewer hops"):
        docs.query(text, engine="spark")


def test_a_result_too_large_for_java_is_told_with_its_size() -> None:
    text = (
        "Job aborted: Total size of serialized results of 3 tasks (300.5 MiB) is bigger than "
        "spark.driver.maxResultSize (256.0 MiB)"
    )

    error = failures.to_error(text)

    assert isinstance(error, ResourceLimitError)
    assert (error.actual, error.limit) == (int(300.5 * 2**20), 256 * 2**20)
    assert "to_spark" in str(error)


def test_a_limit_that_a_task_ran_into_keeps_its_numbers() -> None:
    """Spark hands on the text of an error, and a server tells its numbers."""
    error = ResourceLimitError("the number of bytes", limit=5, actual=7, advice="less; or so")

    found = failures.to_error(f"Traceback\nomnigraph.errors.ResourceLimitError: {error}\n at org.x")

    assert isinstance(found, ResourceLimitError)
    assert (str(found), found.limit, found.actual) == (str(error), 5, 7)


WIDE = " or ".join(f"$a.k + {n} = {2 * n}" for n in range(500))
EXPLOSIVE = {
    "a wide or": f"match {{ $a: Doc  {WIDE} }} return {{ $a.k }}",
    "a huge in": "match { $a: Doc  $a.k in $many } return { $a.k }",
    "unbounded paths": "match { $a $t:shortest to $b  $b.k = 3 } return { hops($t) as n }",
    "a wide walk": "match { $a to{1,20} $b } return { count($b) as n }",
    "a product": "match { $a: Doc  $b: Doc  $a.k + $b.k = 7 } return { $a.k, $b.k }",
    "joined texts": f"match {{ $a: Doc }} return {{ {' + '.join(['$a.body'] * 900)} as t }}",
    "texts of all pairs": "match { $a to $b } return { $a.body, $b.body }",
    "a collect of everything": "match { $a to $b } return { collect($b.body) as l }",
    "lists of everything": "match { $a to $b } return { $a, collect($b { * }) as l }",
}
TOO_LARGE = ["joined texts", "texts of all pairs", "a collect of everything"]


@pytest.mark.parametrize("name", sample(list(EXPLOSIVE), every=9))
def test_what_explodes_ends_with_the_rows_or_with_a_limit(
    spark: Any, docs: og.Graph, name: str
) -> None:
    """In a Java of 1 GB; and the session answers the next read."""
    needs = "$many: [I32]" if "$many" in EXPLOSIVE[name] else ""
    text = f"query q({needs}) {{ {EXPLOSIVE[name]} }}"
    params = {"many": list(range(20_000))} if needs else {}

    if name in TOO_LARGE:
        with pytest.raises(ResourceLimitError):
            docs.query(text, params=params, engine="spark").rows()
    else:
        rows = docs.query(text, params=params, engine="spark").rows()
        assert len(rows) == len(docs.query(text, params=params).rows())
    count = docs.query("query q() { match { $a: Doc } return { count($a) as n } }", engine="spark")
    assert count.rows() == [{"n": DOCS}]


WITHOUT_JAVA = """
import os, signal, sys
import omnigraph as og

text = "query q() { match { $a: Doc } return { count($a) as n } }"
with og.open(sys.argv[1]) as graph:
    first = graph.query(text, engine="spark").rows()
    java = og.spark.session().sparkContext._gateway.proc
    os.kill(java.pid, signal.SIGKILL)
    java.wait()
    again = graph.query(text, engine="spark").rows()
    og.spark.session().stop()
print(first, again)
"""


@pytest.mark.skipif(not IS_TORTURE, reason="two more Javas: `make torture`")
def test_a_call_after_java_has_ended_starts_another(docs: og.Graph) -> None:
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAVA, docs.uri], capture_output=True, text=True, timeout=400
    )

    assert found.stdout.strip() == f"[{{'n': {DOCS}}}] [{{'n': {DOCS}}}]", found.stderr
