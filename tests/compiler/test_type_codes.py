"""Every code of the type checker, from both sides: what breaks the rule, and what keeps it."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from omnigraph.errors import TypeCheckError
from tests.compiler.papers import compiled


def rank(order: str, params: str = "", match: str = "$d: Doc") -> str:
    """The source of a read that is ordered by `order`."""
    return f"query q({params}) {{ match {{ {match} }} return {{ $d.slug }} order {order} }}"


BROKEN: list[tuple[str, str]] = [
    ("T1", "query q() { match { $x: Ghost } return { $x } }"),
    ("T1", "query q() { match { $x: Wrote } return { $x } }"),
    ("T1", "query q() { match { $p: Paper not { $x: Papers $p cites $x } } return { $p } }"),
    ("T2", "query q() { match { $p: Paper { nope: 1 } } return { $p } }"),
    ("T2", 'query q() { match { $p: Paper { id: "p1" } } return { $p } }'),
    ("T3", 'query q() { match { $p: Paper { year: "2020" } } return { $p } }'),
    ("T3", 'query q() { match { $p: Paper { status: "bogus" } } return { $p } }'),
    ("T3", 'query q() { match { $p: Paper { released: "2020-05-01" } } return { $p } }'),
    ("T3", 'query q() { match { $p: Paper { keywords: ["graph"] } } return { $p } }'),
    ("T3", "query q() { match { $p: Paper { keywords: 3 } } return { $p } }"),
    ("T3", 'query q() { match { $f: File { body: "x" } } return { $f } }'),
    ("T3", "query q() { match { $d: Doc { vec: [1, 2] } } return { $d } }"),
    ("T3", 'query q() { match { $d: Doc { vec: ["a", "b", "c"] } } return { $d } }'),
    ("T3", 'query q() { insert Venue { code: "v", name: 3 } }'),
    ("T3", 'query q($d: String) { update Paper set { status: "bogus" } where doi = $d }'),
    ("T3", "query q($d: String) { update Paper set { year: 2.5 } where doi = $d }"),
    ("T3", "query q($d: String) { update Paper set { year: 3000000000 } where doi = $d }"),
    ("T3", "query q($d: String) { update Paper set { counts: [1, 2.5] } where doi = $d }"),
    ("T3", "query q() { delete Paper where doi = 5 }"),
    ("T3", 'query q() { delete Paper where status = "bogus" }'),
    ("T3", 'query q() { insert Wrote { from: 1, to: "p" } }'),
    ("T4", "query q() { match { $p: Paper $p reviews $x } return { $p } }"),
    ("T4", "query q() { match { $p: Paper not { $p reviews $x } } return { $p } }"),
    ("T5", "query q() { match { $v: Venue $v wrote $x } return { $x } }"),
    ("T5", "query q() { match { $a: Author $v: Venue $a wrote $v } return { $a } }"),
    ("T5", "query q() { match { $v: Venue $x wrote $v } return { $x } }"),
    ("T5", "query q() { match { $a: Author $a <cites> $p } return { $a } }"),
    ("T5", "query q() { match { $a wrote $p $a cites $x } return { $a } }"),
    ("T6", "query q() { match { $p: Paper } return { $p.nope } }"),
    ("T6", "query q() { match { $p: Paper } return { $z.title } }"),
    ("T6", "query q() { match { $p: Paper } return { $p.id } }"),
    ("T6", "query q() { match { $a: Author not { $a wrote $p } } return { $p.doi } }"),
    ("T6", "query q() { match { $a: Author $a wrote $_ } return { $_.doi } }"),
    ("T6", "query q() { match { $a: Author $a $w:wrote $p } return { $w.src } }"),
    ("T6", "query q($x: String) { match { $p: Paper } return { $x.title } }"),
    ("T6", 'query q() { match { $p: Paper $p.nope = "x" } return { $p } }'),
    ("T7", 'query q() { match { $p: Paper $p.year = "2020" } return { $p } }'),
    ("T7", 'query q() { match { $p: Paper $p.released = datetime("2020-05-01") } return { $p } }'),
    ("T7", 'query q() { match { $p: Paper $p.released = "2020-05-01" } return { $p } }'),
    ("T7", 'query q() { match { $p: Paper $p.keywords = "graph" } return { $p } }'),
    ("T7", 'query q() { match { $p: Paper $p.year contains "2" } return { $p } }'),
    ("T7", "query q() { match { $p: Paper $p.keywords contains 3 } return { $p } }"),
    ("T7", 'query q() { match { $p: Paper $p.keywords contains ["x"] } return { $p } }'),
    ("T7", "query q() { match { $p: Paper $p.title contains 3 } return { $p } }"),
    ("T7", "query q() { match { $p: Paper $p.title starts_with 3 } return { $p } }"),
    ("T7", 'query q() { match { $p: Paper $p.year starts_with "2" } return { $p } }'),
    ("T7", "query q($y: String) { match { $p: Paper { year: $y } } return { $p } }"),
    ("T7", "query q($k: [String]) { match { $p: Paper { keywords: $k } } return { $p } }"),
    ("T7", "query q() { match { $p: Paper { released: now() } } return { $p } }"),
    ("T7", "query q($v: Vector(3)) { match { $d: Doc $d.vec = $v } return { $d } }"),
    ("T7", "query q($v: Vector(4)) { match { $d: Doc { vec: $v } } return { $d } }"),
    ("T7", 'query q() { match { $f: File $f.body = "x" } return { $f } }'),
    ("T7", 'query q() { match { $p: Paper $p = "x" } return { $p } }'),
    ("T8", "query q() { match { $p: Paper count($p) > 2 } return { $p } }"),
    ("T31", "query q() { match { $p: Paper $p.year > total } return { $p } }"),
    ("T7", 'query q() { match { $p: Paper bm25($p.title, "x") > 0.5 } return { $p } }'),
    ("T7", 'query q() { match { $p: Paper search($p.title, "x") = false } return { $p } }'),
    ("T7", 'query q() { match { $p: Paper search($p.title, "x") != true } return { $p } }'),
    ("T7", "query q($d: String) { update Paper set { released: now() } where doi = $d }"),
    ("T7", "query q($n: I32) { update Paper set { title: $n } where year = $n }"),
    ("T7", 'query q($n: I32) { insert File { slug: "s", body: $n } }'),
    ("T7", 'query q() { delete Paper where keywords = "x" }'),
    ("T8", "query q() { match { $p: Paper } return { sum($p.title) } }"),
    ("T8", "query q() { match { $p: Paper } return { min($p.keywords) } }"),
    ("T8", "query q() { match { $p: Paper } return { sum(distinct $p.year) as n } }"),
    ("T8", "query q() { match { $p: Paper } return { count(sum($p.year)) as n } }"),
    ("T8", "query q() { match { $p: Paper } return { collect($p.keywords) as n } }"),
    ("T8", "query q() { match { $p: Paper } return { max($p.open) } }"),
    ("T8", "query q() { match { $p: Paper } return { sum($p) } }"),
    ("T8", "query q() { match { $p: Paper } return { avg($p.counts) } }"),
    ("T8", "query q() { match { $p: Paper } return { count(count($p)) } }"),
    ("T9", "query q() { match { $a: Author not { $p: Paper $p cites $c } } return { $a } }"),
    ("T9", "query q() { match { $a: Author not { 1 = 2 } } return { $a } }"),
    (
        "T9",
        "query q() { match { $p: Paper not { $p cites $c not { $x: Author } } } return { $p } }",
    ),
    ("T9", 'query q($p: String) { match { $p: Paper not { $p = "x" } } return { $p } }'),
    ("T9", "query q() { match { $p: Paper } return { count($p) as n, 1 as one } }"),
    ("T9", "query q() { match { $p: Paper } return { now(), count($p) as n } }"),
    ("T10", "query q() { delete Ghost where x = 1 }"),
    ("T10", 'query q() { insert Named { name: "x" } }'),
    ("T10", 'query q() { insert WROTE { from: "a", to: "p" } }'),
    ("T11", "query q($d: String) { update Paper set { nope: 1 } where doi = $d }"),
    ("T11", 'query q() { delete Paper where nope = "x" }'),
    ("T11", 'query q() { insert Venue { id: "v", code: "v", name: "n" } }'),
    ("T11", 'query q() { delete File where body = "x" }'),
    ("T11", 'query q() { delete Paper where from = "x" }'),
    ("T12", 'query q($d: String) { insert Paper { doi: $d, title: "x" } }'),
    ("T12", "query q($a: String) { insert Wrote { from: $a } }"),
    ("T12", 'query q() { insert AppearedIn { from: "a", to: "b" } }'),
    ("T12", 'query q() { insert Doc { slug: "s", vec: [1, 2, 3] } }'),
    ("T13", 'query q() { insert Venue { code: "c", name: "x", name: "y" } }'),
    ("T13", 'query q() { insert Wrote { from: "a", to: "b", from: "c" } }'),
    ("T13", 'query q() { update Paper set { year: 1, year: 2 } where doi = "x" }'),
    ("T14", 'query q() { insert Venue { code: $c, name: "x" } }'),
    ("T14", "query q() { delete Venue where code = $c }"),
    ("T14", "query q() { match { $p: Paper { doi: $c } } return { $p } }"),
    ("T14", "query q() { match { $v: Venue $p: Paper { doi: $v } } return { $p } }"),
    ("T15", "query q() { match { $p: Paper $p cites{1,} $c } return { $c } }"),
    ("T15", "query q() { match { $p: Paper $p cites{0,2} $c } return { $c } }"),
    ("T15", "query q() { match { $p: Paper $p cites{3,2} $c } return { $c } }"),
    (
        "T15",
        rank("{ nearest($d.vec, $v) } limit 2", "$v: Vector(4)"),
    ),
    ("T15", rank("{ nearest($d.vec, [1, 2]) } limit 2")),
    ("T15", rank("{ nearest($d.vec, 3) } limit 2")),
    ("T15", rank('{ nearest($d.body, "x") } limit 2')),
    ("T42", 'query q() { upsert Paper { title: "t", year: 1 } }'),
    ("T42", 'query q() { upsert Venue { name: "n" } }'),
    ("T43", "query q($r: [String]) { for $s in $r { delete Venue where code = $s } }"),
    (
        "T43",
        "query q($r: [{ c: String }]) { for $r in $r { delete Venue where code = $r.c } }",
    ),
    ("T43", "query q($r: [{ c: String }]) { delete Venue where code = $r }"),
    ("T44", 'query q() { update Wrote set { from: "b" } where from = "a" }'),
    ("T44", "query q() { match { $a wrote $p } delete $q }"),
    ("T45", 'query q() { delete Venue where code = "v" return { 1 as one } }'),
    (
        "T45",
        "query q($a: String) { upsert Venue { code: $a, name: $a } as $a return { $a } }",
    ),
    (
        "T45",
        'query q() { insert Venue { code: "v", name: "n" } as $v return { count($v) as n } }',
    ),
    ("T17", rank("{ nearest($d.vec, $v) }", "$v: Vector(3)")),
    ("T17", rank('{ $d.slug, nearest($d.vec, "x") }')),
    (
        "T18",
        "query q($v: Vector(3)) { match { $d: Doc } return { $d.slug as s } "
        "order { nearest($d.vec, $v), s } limit 2 }",
    ),
    (
        "T18",
        "query q($v: Vector(3)) { match { $d: Doc } return { $d.slug as s } "
        "order { s, nearest($d.vec, $v) } limit 2 }",
    ),
    ("T19", 'query q() { match { $p: Paper search($p.year, "x") } return { $p } }'),
    ("T19", "query q() { match { $p: Paper search($p.title, 3) } return { $p } }"),
    ("T19", 'query q() { match { $p: Paper search("title", "x") } return { $p } }'),
    ("T19", 'query q() { match { $p: Paper fuzzy($p.title, "x", 1.5) } return { $p } }'),
    ("T19", 'query q() { match { $p: Paper fuzzy($p.keywords, "x") } return { $p } }'),
    ("T20", rank("{ bm25($d.body, $n) }", "$n: I32")),
    ("T20", 'query q() { match { $p: Paper match_text($p.year, "x") } return { $p } }'),
    (
        "T21",
        rank('{ rrf(bm25($d.body, "x"), bm25($d.note, "x")) }'),
    ),
    (
        "T21",
        'query q() { match { $d: Doc } return { rrf(bm25($d.body, "x"), bm25($d.note, "x")) as r } '
        "order { r } }",
    ),
    (
        "T21",
        rank('{ rrf(bm25($d.body, "x"), bm25($d.note, "x"), 0) } limit 2'),
    ),
    (
        "T21",
        rank('{ rrf(bm25($d.body, "x"), bm25($d.note, "x"), 1.5) } limit 2'),
    ),
    (
        "T21",
        rank('{ rrf(bm25($d.body, "x"), bm25($e.body, "x")) } limit 2', match="$d: Doc $e: Doc"),
    ),
    ("T22", "query q() { match { $a: Author $a <wrote> $p } return { $p } }"),
    ("T22", "query q() { match { $p: Paper not { $p <appearedIn> $v } } return { $p } }"),
    ("T23", "query q() { match { $p: Paper $p $w:cites $c } return { $w } }"),
    ("T23", "query q() { match { $p: Paper $p $w:cites $c } return { count($w) } }"),
    ("T23", "query q() { match { $p: Paper $w: Venue $p $w:cites $c } return { $c } }"),
    ("T23", "query q() { match { $p: Paper $p $w:cites $c $w cites $x } return { $c } }"),
    ("T23", "query q() { match { $p: Paper $p $p:cites $c } return { $c } }"),
    ("T23", "query q() { match { $p: Paper $p $c:cites $c } return { $c } }"),
    ("T23", "query q() { match { $p: Paper $p $w:cites $c $p $w:cites $x } return { $c } }"),
    ("T23", "query q() { match { $p: Paper $p $w:cites $c not { $w: Paper } } return { $c } }"),
    (
        "T23",
        'query q() { match { $p: Paper $p $w:cites $c search($w.reason, "x") } return { $c } }',
    ),
    ("T24", "query q() { match { $f: File } return { $f.body } }"),
    ("T24", "query q() { match { $f: File } return { count($f.body) } }"),
    ("T24", "query q($b: Blob) { match { $f: File } return { $b } }"),
]

KEPT: list[tuple[str, str]] = [
    ("T1", "query q() { match { $x: Author } return { $x } }"),
    ("T2", 'query q() { match { $p: Paper { title: "x", year: 2020 } } return { $p } }'),
    ("T3", 'query q() { match { $p: Paper { status: "draft", score: 1 } } return { $p } }'),
    ("T3", 'query q() { match { $p: Paper { released: date("2020-05-01") } } return { $p } }'),
    ("T3", 'query q() { match { $p: Paper { keywords: "graph" } } return { $p } }'),
    ("T3", "query q() { match { $d: Doc { vec: [1, 2, 3.5] } } return { $d } }"),
    ("T3", 'query q() { insert File { slug: "s", body: "base64:AA==" } }'),
    ("T3", 'query q() { update Paper set { counts: [], score: 1 } where doi = "x" }'),
    ("T4", "query q() { match { $p: Paper $p appearedin $v } return { $v } }"),
    ("T5", "query q() { match { $p: Paper $p wrote $a } return { $a.slug } }"),
    ("T5", "query q() { match { $v appearedIn $p $v: Venue } return { $p.doi } }"),
    ("T5", "query q() { match { $a: Author $_ cites $p $a wrote $p } return { $p.doi } }"),
    ("T6", "query q() { match { $a: Author $a $w:wrote $p } return { $w.role } }"),
    ("T6", "query q($p: String) { match { $p: Paper } return { $p.title } }"),
    ("T7", "query q($y: F64) { match { $p: Paper $p.year > $y } return { $p } }"),
    ("T7", "query q($n: String?) { match { $p: Paper $p.title = $n } return { $p } }"),
    ("T7", "query q() { match { $p: Paper $p.seen < now() } return { $p } }"),
    ("T7", 'query q() { match { $p: Paper $p.status = "bogus" } return { $p } }'),
    ("T7", "query q() { match { $p: Paper $p.open > false } return { $p } }"),
    ("T7", 'query q() { match { $p: Paper ["a", "b"] contains $p.status } return { $p } }'),
    ("T7", 'query q() { match { $p: Paper true = search($p.title, "x") } return { $p } }'),
    ("T7", "query q($b: String) { insert File { slug: $b, body: $b } }"),
    ("T8", "query q() { match { $p: Paper } return { sum($p.year), max($p.status), count($p) } }"),
    ("T9", "query q() { match { $a: Author not { $a.born = 1 } } return { $a } }"),
    ("T9", "query q() { match { not { $a wrote $p } $a: Author } return { $a } }"),
    (
        "T9",
        "query q() { match { $a: Author not { $p: Paper not { $a wrote $p } } } return { $a } }",
    ),
    ("T9", "query q($x: I32) { match { $p: Paper } return { $p, $x, $p.year, count($p) } }"),
    ("T10", 'query q() { insert Venue { code: "v", name: "n" } }'),
    ("T11", 'query q() { delete Wrote where role = "co" }'),
    ("T11", 'query q() { delete Wrote where to = "p1" }'),
    ("T12", 'query q() { insert Paper { doi: "d", title: "t", year: 1 } }'),
    ("T12", 'query q() { insert Doc { slug: "s", body: "b" } }'),
    ("T13", 'query q() { update Paper set { year: 1, title: "t" } where doi = "x" }'),
    ("T14", "query q($c: String) { insert Venue { code: $c, name: $c } }"),
    ("T15", "query q() { match { $p: Paper $p cites{1,3} $c } return { $c } }"),
    ("T15", rank('{ nearest($d.vec, "x") } limit 2')),
    ("T17", rank("{ nearest($d.vec, [1, 0, 0]) } limit 2")),
    (
        "T18",
        rank('{ nearest($d.vec, "x"), $d.slug } limit 2'),
    ),
    (
        "T19",
        'query q($n: I32) { match { $p: Paper fuzzy($p.title, "t", $n) } return { $p } }',
    ),
    (
        "T20",
        rank('{ bm25($d.body, "x") }', match='$d: Doc match_text($d.body, "x")'),
    ),
    (
        "T21",
        rank('{ rrf(nearest($d.vec, "x"), bm25($d.body, "x"), $k) desc } limit 20', "$k: I64"),
    ),
    ("T22", "query q() { match { $p: Paper $p <cites> $c } return { $c } }"),
    ("T23", "query q() { match { $p: Paper $p $w:cites{1,1} $c } return { $w.reason, $c } }"),
    ("T23", "query q() { match { $p: Paper $p $_:cites $c $c $_:cites $e } return { $c } }"),
    ("T42", 'query q() { upsert Paper { doi: "d", title: "t", year: 1 } }'),
    (
        "T43",
        "query q($rows: [{ c: String }]) { for $r in $rows { delete Venue where code = $r.c } }",
    ),
    ("T44", "query q() { match { $a wrote $p } update $a set { born: 1 } }"),
    ("T44", 'query q() { update Wrote set { position: 1 } where from = "a" }'),
    (
        "T45",
        "query q() { match { $a wrote $p } upsert Mentors { from: $a, to: $a } as $m "
        "return { $a, $p.title } }",
    ),
    ("T24", "query q() { match { $f: File } return { $f, $f.slug } }"),
]


@pytest.mark.parametrize(("code", "source"), BROKEN)
def test_a_broken_rule_is_reported_with_its_code(code: str, source: str) -> None:
    with pytest.raises(TypeCheckError) as caught:
        compiled(source)

    assert caught.value.code == code
    assert str(caught.value).startswith(f"type error: {code}: ")
    assert caught.value.span is not None


@pytest.mark.parametrize(("code", "source"), KEPT)
def test_a_kept_rule_compiles(code: str, source: str) -> None:
    assert compiled(source).name == "q"


def test_every_code_is_broken_twice_and_kept_once() -> None:
    codes = {f"T{number}" for number in (*range(1, 16), *range(17, 25), *range(42, 46))}
    broken = Counter(code for code, _ in BROKEN)

    assert {code for code, times in broken.items() if times >= 2} == codes
    assert {code for code, _ in KEPT} == codes


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("query q($__nanograph_now: DateTime) { match { $x: Paper } return { $x } }", "reserved"),
        ("query q($a: I32, $a: I64) { match { $x: Paper } return { $x } }", "declared twice"),
        ("query q($a: [Blob]) { match { $x: Paper } return { $x } }", "unknown parameter type"),
        ("query q() { match { $x: Paper $x: Author } return { $x } }", "already bound"),
        ("query q() { match { $p: Paper not { $p: Author } } return { $p } }", "already bound"),
        ("query q() { match { $_: Paper } return { 1 } }", "binds nothing"),
        ("query q() { match { $p: Paper } return { $z } }", "`$z` is not bound"),
        ('query q() { match { $p: Paper } return { [1, "a"] } }', "mixes"),
        ("query q() { match { $p: Paper } return { [[1]] } }", "another list"),
    ],
)
def test_a_rule_without_a_code_is_reported_by_its_message(source: str, text: str) -> None:
    with pytest.raises(TypeCheckError, match=re.escape(text)) as caught:
        compiled(source)

    assert caught.value.code is None


@pytest.mark.parametrize(
    "source",
    [
        "query q() { match { $p: Paper } return { $p.year, count($p) } order { $p.year } }",
        "query q() { match { $p: Paper } return { count($p) as n } order { n desc } }",
        "query q() { match { $p: Paper } return { $p as paper } order { paper } }",
    ],
)
def test_an_order_that_the_result_can_keep_compiles(source: str) -> None:
    assert compiled(source).kind == "read"


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("query q() { match { $p: Papr } return { $p } }", "did you mean `Paper`?"),
        ("query q() { match { $x: Wrote } return { $x } }", "as in `$a wrote $b`"),
        ("query q() { match { $p: Paper { titel: 1 } } return { $p } }", "did you mean `title`?"),
        ("query q() { match { $p: Paper $p citse $x } return { $p } }", "did you mean `cites`?"),
        ("query q() { match { $a: Author $a wrot $x } return { $a } }", "did you mean `wrote`?"),
        ("query q() { match { $p: Paper } return { $p.titel } }", "did you mean `title`?"),
        (
            "query q() { match { $paper: Paper } return { $papre.title } }",
            "did you mean `$paper`?",
        ),
        ("query q() { match { $paper: Paper } return { $papre } }", "did you mean `$paper`?"),
        (
            'query q($name: String) { insert Venue { code: $nmae, name: "x" } }',
            "did you mean `$name`?",
        ),
        ('query q() { delete Papper where doi = "x" }', "did you mean `Paper`?"),
        ('query q() { insert Wrote { form: "a", to: "b" } }', "did you mean `from`?"),
        (
            'query q() { match { $p: Paper { status: "drfat" } } return { $p } }',
            "did you mean `draft`?",
        ),
        (
            'query q() { match { $p: Paper { released: "2020-05-01" } } return { $p } }',
            'write date("2020-05-01")',
        ),
        (
            "query q() { match { $p: Paper } return { count($p) as total } order { totl } }",
            "did you mean `total`?",
        ),
        ("query q() { match { $p: Paper } return { $p.id } }", "return `$p` itself"),
    ],
)
def test_a_misspelt_name_suggests_the_right_one(source: str, hint: str) -> None:
    with pytest.raises(TypeCheckError) as caught:
        compiled(source)

    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_an_error_shows_the_line_and_the_nearest_name() -> None:
    source = "query q() {\n  match { $a: Author }\n  return { $a.nmae }\n}\n"

    with pytest.raises(TypeCheckError) as caught:
        compiled(source)

    assert caught.value.render() == (
        "type error: T6: Author has no property `nmae`\n"
        " --> query.gq:3:15\n"
        "  |\n"
        "3 |   return { $a.nmae }\n"
        "  |               ^^^^ did you mean `name`?"
    )


def test_only_the_first_error_is_reported() -> None:
    with pytest.raises(TypeCheckError, match="T1"):
        compiled("query q() { match { $x: Ghost $x nope $y } return { $z.a } limit 1 }")
