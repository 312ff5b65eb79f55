"""Paths and stages: what the checker refuses, with which code and which words."""

from __future__ import annotations

import re

import pytest

from omnigraph.catalog import Catalog, build_catalog
from omnigraph.compiler import compile_query
from omnigraph.compiler.lint import lint
from omnigraph.errors import TypeCheckError
from omnigraph.syntax.parse_schema import parse_schema

SCHEMA = """
node City { slug: String @key  people: I64?  tags: [String]?  vec: Vector(2)?  body: String? }
node Country { code: String @key  slug: I32? }
edge Road: City -> City { km: F64?  toll: Bool? }
edge In: City -> Country
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return build_catalog(parse_schema(SCHEMA))


def walk(traversal: str, returns: str = "$x.slug") -> str:
    return f"query q($k: I32?) {{ match {{ $x: City {traversal} }} return {{ {returns} }} }}"


def stage(text: str, match: str = "$x road $y") -> str:
    params = "$k: I32?, $s: String, $n: I32"
    return f"query q({params}) {{ {text} match {{ {match} }} return {{ $x.slug }} }}"


@pytest.mark.parametrize(
    ("code", "text", "source"),
    [
        ("T36", "is a path", walk("$x $t:road{1,2} $y", "$t")),
        ("T36", "hops($t), nodes($t), edges($t)", walk("$x $t:road{1,2} $y", "$t.km")),
        ("T36", "is a path", walk("$x $t:shortest road $y $t road $z")),
        ("T23", "already bound", walk("$x $t:shortest road $y $t: City")),
        ("T36", "needs a path variable", walk("$x $r:road $y", "hops($r) as n")),
        ("T36", "needs a path variable", walk("$x road $y", "nodes($y) as n")),
        ("T36", "cost needs a weight", walk("$x $t:shortest road $y", "cost($t) as c")),
        ("T25", "hops takes 1", walk("$x $t:road{1,2} $y", "hops($t, km) as n")),
        ("T6", "has no property `km`", walk("$x $t:road{1,2} $y", "nodes($t, km) as n")),
        ("T6", "has no property `people`", walk("$x $t:in{1,2} $y", "nodes($t, people) as n")),
        ("T6", "one type", walk("$x $t:in{1,2} $y", "nodes($t, slug) as n")),
        ("T6", "one type", walk("$x $t:road{1,2} $y", "nodes($t, tags) as n")),
        ("T6", "no Vector", walk("$x $t:road{1,2} $y", "nodes($t, vec) as n")),
        ("T6", "has no property `people`", walk("$x $t:road{1,2} $y", "edges($t, people) as n")),
        ("T6", "name of a property", walk("$x $t:road{1,2} $y", "edges($t, $x.slug) as n")),
        ("T23", "already bound", walk("$x $t:road{1,2} $y $y $t:road{1,2} $z")),
        ("T23", "is an end", walk("$x $y:road{1,2} $y")),
        ("T37", "by needs shortest", walk("$x road{1,2} by km $y")),
        ("T37", "by needs shortest", walk("$x all shortest road by km $y")),
        ("T37", "by needs shortest", walk("$x shortest road{1,} by km $y")),
        ("T37", "numeric", walk("$x shortest road by toll $y")),
        ("T37", "did you mean `toll`", walk("$x shortest road by tol $y")),
        ("T38", "edge Road has no property `kn`", walk("$x road{1,2 where kn > 1} $y")),
        ("T38", "bare words", walk("$x road{1,2 where km > $x.people} $y")),
        ("T38", "bare words", walk("$x road{where km > $x} $y")),
        ("T15", "write shortest road, or give an upper bound", walk("$x road{1,} $y")),
        ("T15", "at least one hop", walk("$x shortest road{0,} $y")),
        ("T15", "no number of hops", walk("$x shortest road{3,2} $y")),
        ("T34", "an integer that is not nullable", stage("top $k by $x.people { $x: City }")),
        ("T34", "an integer that is not nullable", stage("top $s by $x.people { $x: City }")),
        ("T34", "an integer that is not nullable", stage("top $z by $x.people { $x: City }")),
        ("T33", "cannot order by", stage("top 1 by 3 { $x: City }")),
        ("T33", "cannot order by", stage("top 1 by $n + 1 { $x: City }")),
        ("T33", "cannot order by", stage("top 1 by $x.tags { $x: City }")),
        ("T31", "bare word", stage("top 1 by people { $x: City }")),
        ("T40", "stands alone", stage('top 1 by $x.slug, bm25($x.body, "a") { $x: City }')),
        ("T40", "stands alone", stage('top 1 by bm25($x.body, "a") + 1 { $x: City }')),
        ("T39", "top", stage("top 1 by $x.slug as $x { $x: City }")),
        ("T39", "top", stage("top 1 by $x.slug as $n { $x: City }")),
        ("T39", "top", stage("top 1 by $x.slug as $d { $x: City }", "$x road $d")),
        ("T39", "top", stage("top 1 by $x.slug as $d { $x: City }", "$x road $y $d: City")),
        ("T6", "is a score", stage("top 1 by $x.slug as $d { $x: City }", "$d.slug = $x.slug")),
        ("T39", "three", stage("top 1 by $x.slug { $x: City } " * 4)),
    ],
)
def test_a_misuse_is_refused_with_its_code(
    catalog: Catalog, code: str, text: str, source: str
) -> None:
    with pytest.raises(TypeCheckError, match=re.escape(text)) as caught:
        compile_query(source, catalog)

    assert caught.value.code == code
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "source",
    [
        walk("$x $t:in{1,2} $c", "nodes($t) as n, edges($t) as e, hops($t) as h"),
        walk("$x $t:road{1,1 where from = to} $y", "$t.km"),
        walk("$x $t:shortest road by km $y", "cost($t) as c"),
        walk("$x $t:road{2,3} $y not { $y $u:road{1,2} $x hops($u) > hops($t) }"),
        walk("$x $t:road{2,3} $y $t is not null"),
        stage("top $n by $x.people + 1 desc, $x.slug as $d { $x: City }", "$x road $y $d > 1"),
        stage("top 1 by hops($t) { $x: City $x $t:road{1,2} $y }", "not { hops($t) = 1 }"),
        stage("top 2 by $x.people as $d { $x: City } top 1 by $d { $x road $y }", "$y road $z"),
    ],
)
def test_every_use_of_a_path_and_a_stage_compiles(catalog: Catalog, source: str) -> None:
    assert compile_query(source, catalog).name == "q"


def test_a_stage_over_two_nodes_is_a_warning_and_one_over_a_node_is_none(catalog: Catalog) -> None:
    one = stage("top 1 by $x.slug { $x: City $x road $_ } top 1 by $y.slug { $x road $y }")
    two = stage("top 1 by $x.slug { $x: City $x road $y }").replace("q(", "pairs(")

    report = lint(catalog, f"{one}\n{two}", query_path="q.gq", schema_source={"kind": "file"})

    found = [(each.severity, each.code, each.query_names) for each in report.findings]
    assert found == [("warning", "L308", ("pairs",))]
    assert "$x, $y: n counts their combinations" in report.findings[0].message
