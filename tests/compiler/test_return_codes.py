"""The rules of returns and parameters: each is broken by a query, and reported by its code."""

from __future__ import annotations

import pytest

from omnigraph.errors import TypeCheckError
from tests.compiler.papers import compiled

OBJECT = "query q() { match { $p: Paper } return { $p { * } as o, count($p) as n } "
BROKEN = [
    ("T33", OBJECT + "order { o } }"),
    ("T26", OBJECT + "having { o is null } }"),
    ("T6", OBJECT + "having { $p.year > 1 } }"),
    ("T8", OBJECT + "having { sum($p.year) > 1 } }"),
    ("T31", OBJECT + "having { m > 1 } }"),
    ("T33", "query q() { match { $p: Paper } return { $p } order { 1 } }"),
    ("T33", "query q() { match { $p: Paper } return { $p } order { $p } }"),
    ("T33", "query q() { match { $p: Paper } return { $p } order { now() } }"),
    ("T33", "query q() { match { $p: Paper } return { count($p) as n } order { $p.year } }"),
    ("T33", "query q() { match { $p: Paper } return { $p.doi } order { $p.keywords } }"),
    ("T33", "query q() { match { $p: Paper } return { $p.keywords as k } order { k } }"),
    ("T33", "query q() { match { $p: Paper } return distinct { $p.year } order { $p.doi } }"),
    ("T40", 'query q() { match { $d: Doc } return { $d } order { $d.slug, bm25($d.body, "x") } }'),
    ("T40", 'query q() { match { $d: Doc } return distinct { $d } order { bm25($d.body, "x") } }'),
    ("T31", "query q() { match { $p: Paper } return { $p.title as t } order { $p.doi, title } }"),
    ("T9", "query q() { match { $p: Paper } return { $p.year + count($p) as n } }"),
    ("T9", "query q() { match { $p: Paper } return { 1 + 1 as two, count($p) as n } }"),
    ("T32", 'query q() { match { $p: Paper } return { $p.doi as d } having { d = "x" } }'),
    ("T34", "query q($n: F64) { match { $p: Paper } return { $p.doi } limit $n }"),
    ("T34", "query q($n: I32?) { match { $p: Paper } return { $p.doi } limit $n }"),
    ("T34", "query q() { match { $p: Paper } return { $p.doi } limit 3 offset 1 }"),
    ("T43", "query q($r: [{ a: I32 }]) { match { $p: Paper } return { $r as x } }"),
    ("T46", "query q($n: I32 = 99999999999) { match { $p: Paper } return { $p.doi } }"),
    ("T46", "query q($d: Date = now()) { match { $p: Paper } return { $p.doi } }"),
    ("T46", 'query q($v: [I32] = ["a"]) { match { $p: Paper } return { $p.doi } }'),
]


@pytest.mark.parametrize(("code", "source"), BROKEN)
def test_a_broken_rule_of_returns_is_reported_with_its_code(code: str, source: str) -> None:
    with pytest.raises(TypeCheckError) as caught:
        compiled(source)

    assert caught.value.code == code
    assert caught.value.span is not None
