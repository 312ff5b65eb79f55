"""What groups, lists, objects and scores are on Spark: the rows that the local engine gives."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph as og
from tests.depth import sample

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]

SCHEMA = """
interface Named { slug: String @key  name: String? }
node Author implements Named { born: Date? }
node Group implements Named { seats: U64? }
node Paper {
    doi: String @key
    title: String? @index
    pages: I32?
    seen: DateTime?
    days: [Date]?
    times: [DateTime]?
    spot: Vector(2)?
}
edge Wrote: Author -> Paper { position: I32? }
edge MemberOf: Author -> Group
"""
PAPERS: list[dict[str, Any]] = [
    {"doi": "d1", "title": "red red blue", "pages": 4, "spot": [0.1, 0.2], "days": ["2020-01-01"]},
    {"doi": "d2", "title": "blue", "pages": 10, "seen": "2024-02-29T12:30:00.250Z", "days": []},
    {"doi": "d3", "pages": 4, "seen": "1969-12-31T23:59:59.999Z", "spot": [3.0, 4.0]},
    {"doi": "d4", "title": "green", "times": ["2024-02-29T12:30:00.250Z"], "spot": [0.3, 0.1]},
]
WRITTEN = [("a", "d1", 2), ("a", "d2", 1), ("a", "d3", None), ("b", "d2", 1), ("b", "d2", 3)]
PATTERN = "$a: Author  optional { $a $w:wrote $p }"
READS = {
    "collect by keys": f"match {{ {PATTERN} }} return {{ $a.slug as s, "
    "collect($p.doi order $p.pages desc, $p.doi) as l, collect($w.position) as o }",
    "collect objects": f"match {{ {PATTERN} }} return {{ $a.slug as s, "
    "collect($p { doi, seen, days, times, spot } order $p.doi desc) as l }",
    "collect distinct": f"match {{ {PATTERN} }} return {{ collect(distinct $p) as l, "
    "collect(distinct $p.pages order $p.pages desc) as n }",
    "collect entities of two types": "match { $x: Named } return { collect(distinct $x) as l }",
    "count distinct": f"match {{ {PATTERN} }} return {{ $a.slug as s, count(distinct $p) as n, "
    "count(distinct $p.pages) as m, count($w.position) as o }",
    "computed groups": f"match {{ {PATTERN} }} return {{ $p.pages % 3 as k, "
    "sum($p.pages * 2) as t, avg(-$p.pages) as v, max($p.seen) as l, min($a.born) as f }",
    "having": f"match {{ {PATTERN} }} return {{ $a.slug as s, count($p) as n, "
    "sum($p.pages) / count($p) as mean } having { n > 0  mean < 8 or mean is null }",
    "distinct groups": f"match {{ {PATTERN} }} return distinct {{ count($p) as n }} "
    "order { n } limit 2 offset 1",
    "a page behind the end": "match { $p: Paper } return distinct { $p.doi as d, "
    f"count($p) as n }} order {{ d }} offset {2**62}",
    "rows behind the end": "match { $p: Paper } return { $p.doi as d } order { d } "
    f"offset {2**62}",
    "distinct lists": "match { $p: Paper } return distinct { $p.days as d, $p.times as t }",
    "nothing": 'match { $p: Paper { doi: "none" } } return { count(distinct $p) as n, '
    "collect($p.doi) as l, max($p.seen) as m }",
    "whole entities": f"match {{ {PATTERN} }} return {{ $p {{ * }}, $w {{ * }} }}",
    "whole entities of an interface": "match { $x: Named } return { $x { * }, type($x) as t }",
    "groups of objects": "match { $a wrote $p } return { $p { pages, spot }, count($a) as n } "
    "order { n desc }",
    "groups of two types": "match { $x: Named } return { $x, count(distinct $x) as n } order { n }",
    "distances": "match { $p: Paper } return { $p.doi as d, nearest($p.spot, [0.5, 0.1]) as n } "
    "order { d }",
    "distances in order": "match { $p: Paper } return { $p.doi as d, "
    "nearest($p.spot, [0.5, 0.1]) as n } order { n } limit 2 offset 1",
    "relevance": f'match {{ {PATTERN} }} return {{ $p.doi as d, bm25($p.title, "red blue") as n }} '
    "order { d, $a.slug }",
    "fused": "match { $p: Paper } return { $p.doi as d, "
    'rrf(nearest($p.spot, [0.5, 0.1]), bm25($p.title, "blue green")) as n } order { n } limit 4',
    "lists by score": "top 3 by nearest($p.spot, [0.5, 0.1]) as $d { $p: Paper } "
    "match { optional { $a wrote $p } } return { collect($p { doi } order $d desc) as l }",
}


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("papers") / "g.omni", schema=SCHEMA)
    nodes = [{"type": "Paper", "data": each} for each in PAPERS]
    nodes += [
        {"type": "Author", "data": {"slug": slug, "name": slug.upper(), "born": born}}
        for slug, born in (("a", "1970-01-02"), ("b", "1969-12-30"), ("c", None))
    ]
    nodes += [{"type": "Group", "data": {"slug": "a", "name": None, "seats": 2**63}}]
    edges = [
        {"edge": "Wrote", "from": author, "to": paper, "data": {"position": place}}
        for author, paper, place in WRITTEN
    ]
    graph.load([*nodes, *edges], mode="append")
    return graph


@pytest.mark.parametrize("name", sample(list(READS), 5))
def test_a_return_has_the_rows_of_the_local_engine(spark: Any, papers: og.Graph, name: str) -> None:
    text = f"query q() {{ {READS[name]} }}"

    found, expected = (papers.query(text, engine=engine) for engine in ("spark", "local"))

    assert found.table.schema == expected.table.schema
    is_ordered = "} order {" in text
    rows = (
        each.rows() if is_ordered else sorted(each.rows(), key=repr) for each in (found, expected)
    )
    assert next(rows) == next(rows)


def test_auto_leaves_this_process_whatever_is_returned(spark: Any, papers: og.Graph) -> None:
    text = "query q() { match { $p: Paper } return { collect($p.doi) as l } }"
    with og.open(papers.uri, config={"cache_bytes": 1}) as small:
        assert small.explain(text, engine="auto").spark is not None


@pytest.mark.parametrize(
    "block",
    sample(
        [
            "optional { $a wrote $p%d }",
            "either { $a wrote $p%d } or { $p%d: Paper  $a.slug = $p%d.doi }",
            "not { $a wrote $_  $b memberOf $g  $a.slug = $b.slug  $a.name != $b.name%.0s }",
        ],
        every=3,
    ),
)
def test_a_plan_is_no_larger_for_the_blocks_before_its_last(
    spark: Any, papers: og.Graph, block: str
) -> None:
    """What a block starts from is computed; a plan that held it twice would double with each."""

    def lines(blocks: int) -> int:
        clauses = " ".join(block.replace("%d", str(number)) for number in range(blocks))
        clauses = clauses.replace("%.0s", "")
        text = f"query q() {{ match {{ $a: Author  $b: Author  {clauses} }} return {{ $a, $b }} }}"
        return len(str(papers.explain(text, engine="spark").spark).splitlines())

    assert lines(3) == lines(2)
