"""Lowering: the exact pipeline of each shape of pattern."""

from __future__ import annotations

import pytest

from omnigraph.ir import QueryIR, format_ir
from omnigraph.ir.query import AntiJoin, Expand, NodeScan, Operator
from tests.compiler.papers import compiled, pipeline, read_text

SHAPES: dict[str, tuple[str, str]] = {
    "a single scan takes the inline matches": (
        '$p: Paper { year: 2020, keywords: "graph" }',
        'scan $p: Paper where $p.year = 2020 and $p.keywords list_contains "graph"',
    ),
    "a chain expands from its only binding": (
        "$p: Paper { doi: :d } $p cites $c $c appearedIn $v",
        """
        scan $p: Paper where $p.doi = :d
        expand $p -[Cites]-> $c: Paper
        expand $c -[AppearedIn]-> $v: Venue
        """,
    ),
    "a traversal into a bound target is walked backwards": (
        "$p: Paper $a wrote $p",
        """
        scan $p: Paper
        expand $p <-[Wrote]- $a: Author
        """,
    ),
    "an edge between two types may be written the other way round": (
        "$p: Paper $p wrote $a",
        """
        scan $p: Paper
        expand $p <-[Wrote]- $a: Author
        """,
    ),
    "a blocked traversal waits for the one that binds its end": (
        "$a: Author $p cites $c $a wrote $p",
        """
        scan $a: Author
        expand $a -[Wrote]-> $p: Paper
        expand $p -[Cites]-> $c: Paper
        """,
    ),
    "a cycle is closed through a hidden variable": (
        "$p: Paper $p cites $c $c cites $d $d cites $p",
        """
        scan $p: Paper
        expand $p -[Cites]-> $c: Paper
        expand $c -[Cites]-> $d: Paper
        expand $d -[Cites]-> #1: Paper
        filter #1 is $p
        """,
    ),
    "a loop on one variable is a cycle": (
        "$p: Paper $p cites $p",
        """
        scan $p: Paper
        expand $p -[Cites]-> #1: Paper
        filter #1 is $p
        """,
    ),
    "a second binding of a component is deferred, with its matches": (
        "$p: Paper $p cites $c $c: Paper { year: 2020 } $p.year < $c.year $c.pages > 3",
        """
        scan $p: Paper
        expand $p -[Cites]-> $c: Paper where $c.year = 2020
        filter $p.year < $c.year
        filter $c.pages > 3
        """,
    ),
    "a binding may follow the traversal and the filter that use it": (
        '$p.year > 1 $a wrote $p $p: Paper { year: 2020 } $a: Author { slug: "x" }',
        """
        scan $p: Paper where $p.year = 2020
        expand $p <-[Wrote]- $a: Author where $a.slug = "x"
        filter $p.year > 1
        """,
    ),
    "bindings that no traversal joins are a cross product": (
        "$p: Paper $v: Venue $a: Author $a wrote $p $p.year > 1",
        """
        scan $p: Paper
        expand $p <-[Wrote]- $a: Author
        scan $v: Venue
        filter $p.year > 1
        """,
    ),
    "a component without a binding starts where its first traversal does": (
        "$p cites $c $v: Venue",
        """
        scan $v: Venue
        scan $p: Paper
        expand $p -[Cites]-> $c: Paper
        """,
    ),
    "an anonymous start is scanned under a hidden name": (
        "$_ cites $p",
        """
        scan #1: Paper
        expand #1 -[Cites]-> $p: Paper
        """,
    ),
    "anonymous ends are unrelated": (
        "$p: Paper $q: Paper $p cites $_ $q cites $_ $_ wrote $p",
        """
        scan $p: Paper
        expand $p -[Cites]-> #1: Paper
        expand $p <-[Wrote]- #3: Author
        scan $q: Paper
        expand $q -[Cites]-> #2: Paper
        """,
    ),
    "a variable bound twice is scanned once, with the matches of both": (
        "$p: Paper { year: 1 } $p: Paper { open: true } $p cites $q",
        """
        scan $p: Paper where $p.year = 1 and $p.open = true
        expand $p -[Cites]-> $q: Paper
        """,
    ),
    "a bound edge is named in its expand": (
        '$a: Author $a $w:wrote $p $w.role = "lead"',
        """
        scan $a: Author
        expand $a -[$w: Wrote]-> $p: Paper
        filter $w.role = "lead"
        """,
    ),
    "a bound edge can close a cycle": (
        "$p: Paper $p cites $q $q $w:cites $p",
        """
        scan $p: Paper
        expand $p -[Cites]-> $q: Paper
        expand $q -[$w: Cites]-> #1: Paper
        filter #1 is $p
        """,
    ),
    "an undirected edge goes both ways": (
        "$p: Paper $q <cites>{1,3} $p",
        """
        scan $p: Paper
        expand $p <-[Cites{1,3}]-> $q: Paper
        """,
    ),
    "hop bounds stay when a traversal is walked backwards": (
        "$p: Paper { doi: :d } $q cites{2,4} $p",
        """
        scan $p: Paper where $p.doi = :d
        expand $p <-[Cites{2,4}]- $q: Paper
        """,
    ),
    "each negation is an anti-join after the filters": (
        "not { $_ wrote $p } $p: Paper not { $p appearedIn $_ } $p.year > 1",
        """
        scan $p: Paper
        filter $p.year > 1
        not, given $p
          expand $p <-[Wrote]- #1: Author
        not, given $p
          expand $p -[AppearedIn]-> #2: Venue
        """,
    ),
    "a negation reads an edge backwards like any other block": (
        '$v: Venue not { $v appearedIn $p $p.status = "draft" }',
        """
        scan $v: Venue
        not, given $v
          expand $v <-[AppearedIn]- $p: Paper
          filter $p.status = "draft"
        """,
    ),
    "a variable that a reverse traversal introduces inside a negation stays inside": (
        "$v: Venue not { $p appearedIn $v $p.year >= :y }",
        """
        scan $v: Venue
        not, given $v
          expand $v <-[AppearedIn]- $p: Paper
          filter $p.year >= :y
        """,
    ),
    "a negation between two outer variables closes on them": (
        "$a: Author $p: Paper not { $a wrote $p }",
        """
        scan $a: Author
        scan $p: Paper
        not, given $a, $p
          expand $a -[Wrote]-> #1: Paper
          filter #1 is $p
        """,
    ),
    "a nested negation sees everything around it": (
        '$a: Author not { $a wrote $p $p: Paper { doi: "x" } not { $p.open = true $p cites $q } }',
        """
        scan $a: Author
        not, given $a
          expand $a -[Wrote]-> $p: Paper where $p.doi = "x"
          not, given $p
            expand $p -[Cites]-> $q: Paper
            filter $p.open = true
        """,
    ),
    "a negation may be related by its inner negation alone": (
        "$a: Author not { $p: Paper not { $a wrote $p } }",
        """
        scan $a: Author
        not, given $a
          scan $p: Paper
          not, given $a, $p
            expand $a -[Wrote]-> #1: Paper
            filter #1 is $p
        """,
    ),
    "a variable bound again inside a negation is filtered, not scanned": (
        "$p: Paper not { $p: Paper { open: true } $p cites $q }",
        """
        scan $p: Paper
        not, given $p
          filter $p.open = true
          expand $p -[Cites]-> $q: Paper
        """,
    ),
    "search clauses are filters": (
        '$a: Author $a wrote $p search($p.title, :d) fuzzy($p.doi, "x", 1) '
        'match_text($p.title, "y")',
        """
        scan $a: Author
        expand $a -[Wrote]-> $p: Paper
        filter search($p.title, :d)
        filter fuzzy($p.doi, "x", 1)
        filter match_text($p.title, "y")
        """,
    ),
    "contains is split by what it looks in": (
        '$p: Paper $p.title contains "a" $p.keywords contains "b" :d contains $p.doi '
        '["x"] contains $p.doi $p.title starts_with :d $p.seen < now()',
        """
        scan $p: Paper
        filter $p.title text_contains "a"
        filter $p.keywords list_contains "b"
        filter :d text_contains $p.doi
        filter ["x"] list_contains $p.doi
        filter $p.title starts_with :d
        filter $p.seen < now()
        """,
    ),
}


def _dedent(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[margin:] for line in lines)


@pytest.mark.parametrize(("match", "expected"), SHAPES.values(), ids=SHAPES)
def test_pipeline(match: str, expected: str) -> None:
    """A pattern lowers to exactly this pipeline. `:d` and `:y` stand for declared parameters."""
    source = match.replace(":d", "$d").replace(":y", "$y")

    assert pipeline(source, "return { 1 }", "$d: String, $y: I32") == _dedent(expected)


def test_a_parameter_and_a_binding_may_share_a_name() -> None:
    """A bare `$p` is the parameter, `$p.doi` the node."""
    source = read_text("$p: Paper { doi: $p } $p.title = $p", "return { $p, $p.doi }", "$p: String")

    assert format_ir(compiled(source).ir) == _dedent(
        """
        read q(:p String)
          scan $p: Paper where $p.doi = :p
          filter $p.title = :p
          return :p as p
          return $p.doi as p.doi
        """
    )


def test_columns_are_named_after_what_they_hold() -> None:
    tail = (
        'return { $p.title, $p, $x, "a", now(), $p.year as y } '
        "order { y desc, $p.doi, $p.title asc } limit 3"
    )

    text = format_ir(compiled(read_text("$p: Paper", tail, "$x: [I32]?")).ir)

    assert text == _dedent(
        """
        read q(:x [I32]?)
          scan $p: Paper
          return $p.title as p.title
          return $p as p
          return :x as x
          return "a" as literal
          return now() as now
          return $p.year as y
          order y desc
          order $p.doi asc
          order $p.title asc
          limit 3
        """
    )


def test_an_aggregate_is_named_after_its_argument() -> None:
    tail = "return { $p.year, count($p), sum($p.pages), min($p.title) as first, count(1) }"

    ir = compiled(read_text("$p: Paper", tail)).ir

    assert isinstance(ir, QueryIR)
    assert [item.column for item in ir.returns] == ["p.year", "p", "p.pages", "first", "literal"]


def test_a_ranking_keeps_its_arms_and_its_constant() -> None:
    source = read_text(
        "$d: Doc",
        "return { $d.slug } "
        "order { rrf(nearest($d.vec, [1, 0, 0.5]), bm25($d.body, $t), 30) desc } limit 5",
        "$t: String",
    )

    assert format_ir(compiled(source).ir) == _dedent(
        """
        read q(:t String)
          scan $d: Doc
          return $d.slug as d.slug
          order rrf(nearest($d.vec, [1, 0, 0.5]), bm25($d.body, :t), 30) desc
          limit 5
        """
    )


def test_a_mutation_keeps_its_statements_in_order() -> None:
    source = """
    query q($s: String) {
      insert Author { slug: $s, name: "Eve", tags: ["a", "b"] }
      insert Wrote { from: $s, to: "p4", position: 2 }
      update Paper set { seen: now(), released: date("2024-02-29") } where year >= 2022
    }
    """

    assert format_ir(compiled(source).ir) == _dedent(
        """
        mutation q(:s String)
          insert node:Author slug := :s, name := "Eve", tags := ["a", "b"]
          insert edge:Wrote src := :s, dst := "p4", position := 2
          update node:Paper seen := now(), released := date("2024-02-29") where year >= 2022
        """
    )


def test_a_deletion_names_columns() -> None:
    source = 'query q() { delete Wrote where from = "a" delete Paper where doi != "p" }'

    assert format_ir(compiled(source).ir) == _dedent(
        """
        mutation q()
          delete edge:Wrote where src = "a"
          delete node:Paper where doi != "p"
        """
    )


def test_every_variable_is_bound_exactly_once() -> None:
    """Over all shapes: an operator binds a new variable and starts from a bound one."""
    for match, _ in SHAPES.values():
        source = match.replace(":d", "$d").replace(":y", "$y")
        ir = compiled(read_text(source, "return { 1 }", "$d: String, $y: I32")).ir
        assert isinstance(ir, QueryIR)
        _assert_well_bound(ir.pipeline, set())


def _assert_well_bound(operators: tuple[Operator, ...], bound: set[str]) -> None:
    for operator in operators:
        match operator:
            case NodeScan(variable):
                assert variable not in bound
                bound.add(variable)
            case Expand(source, target):
                assert source in bound
                assert target not in bound
                bound.add(target)
            case AntiJoin(outer_variables, inner):
                assert bound.issuperset(outer_variables)
                _assert_well_bound(inner, set(bound))
