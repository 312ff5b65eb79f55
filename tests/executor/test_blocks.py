"""Optional, either and interfaces: what they add to rows, and that null and types survive."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ResourceLimitError
from omnigraph.executor import blocks, match
from omnigraph.executor.rows import ROWS_VARIABLE

SCHEMA = """
interface Named { slug: String @key  name: String? @index  size: I32? }
interface Ghostly { slug: String @key  age: I32? }
node Person implements Named { age: I32?  vec: Vector(2)? }
node Firm implements Named { city: String? }
node Topic { slug: String @key }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Firm
edge Owns: Firm -> Firm
"""


def named(kind: str, slug: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"slug": slug} | data}


RECORDS: list[dict[str, Any]] = [
    named("Person", "ann", name="Ann", size=3, age=40, vec=[1.0, 0.0]),
    named("Person", "bob", name="Bob", vec=[0.0, 1.0]),
    named("Person", "acme", name="Acme Jones", size=1),
    named("Firm", "acme", name="Acme", size=7, city="Rome"),
    named("Firm", "zeta", name="Zeta"),
    {"type": "Topic", "data": {"slug": "graphs"}},
    *({"edge": "Knows", "from": a, "to": b, "data": {"since": n}} for n, (a, b) in enumerate(
        [("ann", "bob"), ("ann", "bob"), ("bob", "acme"), ("bob", "bob")]
    )),
    *({"edge": "WorksAt", "from": a, "to": b} for a, b in [("ann", "acme"), ("bob", "zeta")]),
]  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("blocks") / "g", schema=SCHEMA, durability="process")
    graph.load(RECORDS, mode="overwrite")
    return graph


def rows(graph: og.Graph, clauses: str, returned: str, tail: str = "") -> list[tuple[Any, ...]]:
    text = f"query q() {{ match {{ {clauses} }} return {{ {returned} }} {tail} }}"
    return [tuple(row.values()) for row in graph.query(text).rows()]


def test_null_survives_filters_groups_orders_and_ties(graph: og.Graph) -> None:
    known = "$p: Person  optional { $p $k:knows $f  $f.slug != $p.slug }"

    assert rows(graph, known, "$p.slug, $f, $k.since", "order { $k.since, $p.slug }") == [
        ("acme", None, None), ("ann", "bob", 0), ("ann", "bob", 1), ("bob", "acme", 2),
    ]  # fmt: skip
    assert rows(graph, f"{known} $f is null", "$p.slug") == [("acme",)]
    assert sorted(rows(graph, f"{known} not ($f.slug = 'x')".replace("'", '"'), "$p.slug")) == [
        ("ann",), ("ann",), ("bob",),
    ]  # fmt: skip
    counts = "$f as f, count($p) as n, count($f) as m, sum($f.size) as s, min($f.name) as least"
    assert rows(graph, known, counts, "order { n, f }") == [
        (None, 1, 0, None, None), ("acme", 1, 1, 1.0, "Acme Jones"), ("bob", 2, 2, None, "Bob"),
    ]  # fmt: skip


def test_a_null_variable_leads_nowhere_and_is_seen_by_conditions(graph: og.Graph) -> None:
    firm = "$p: Person  optional { $p worksAt $w }"

    later = f"{firm} optional {{ $q worksAt $w }}"
    assert rows(graph, later, "$p.slug, $q", "order { $p.slug }") == [
        ("acme", None), ("ann", "ann"), ("bob", "bob"),
    ]  # fmt: skip
    assert rows(graph, f"{firm} not {{ $_ worksAt $w }}", "$p.slug") == [("acme",)]
    assert rows(graph, f"{firm} not {{ $w.city is null }}", "$p.slug") == [("ann",)]
    inner = "optional { $p knows $f  $w is null }"
    assert rows(graph, f'$p.slug = "ann" {firm} {inner}', "$f") == [(None,)]
    rebound = "optional { $w: Firm  $f knows $p }"
    found = rows(graph, f"{firm} {rebound}", "$p.slug, count($f) as n", "order { $p.slug }")
    assert found == [("acme", 0), ("ann", 0), ("bob", 2)]


def test_a_ranking_leaves_out_rows_in_which_its_variable_is_null(graph: og.Graph) -> None:
    nearest = "order { nearest($f.vec, [1.0, 0.0]) } limit 5"

    found = rows(graph, "$p: Person  optional { $p knows $f }", "$p.slug, $f", nearest)

    assert found == [("ann", "bob"), ("bob", "bob")]


def test_an_either_is_a_set_per_outer_row(graph: og.Graph) -> None:
    both = "$p: Person  either { $p knows $q } or { $q knows $p } or { $p knows $q  $q.size = 1 }"

    assert rows(graph, both, "$p.slug, $q", "order { $p.slug }") == [
        ("acme", "bob"), ("ann", "bob"), ("bob", "acme"), ("bob", "ann"), ("bob", "bob"),
    ]  # fmt: skip
    local = "$p: Person  either { $p knows $x } or { $p worksAt $y }"
    assert rows(graph, local, "$p.slug", "order { $p.slug }") == [("ann",), ("bob",)]
    edges = "$p: Person  either { $p $k:knows $q } or { $p $k:knows $q  $k.since > 0 }"
    assert rows(graph, edges, "$p.slug, count($k.since) as n", "order { $p.slug }") == [
        ("ann", 2), ("bob", 2),
    ]  # fmt: skip


def test_equal_ids_of_two_types_stay_apart(graph: og.Graph) -> None:
    kinds = rows(graph, "$x: Named", "$x, type($x) as t", "order { $x.slug, t desc }")

    assert kinds[:2] == [("acme", "Person"), ("acme", "Firm")]
    tied = rows(graph, "$x: Named", "$x, type($x) as t", "order { length($x.slug) }")
    assert [kind for _, kind in tied] == [
        "Person", "Person", "Firm", "Person", "Firm",
    ]  # fmt: skip
    assert sorted(rows(graph, "$x: Named", "$x, count($x) as n")) == [
        ("acme", 1), ("acme", 1), ("ann", 1), ("bob", 1), ("zeta", 1),
    ]  # fmt: skip
    # The firm has an employee, the person of the same id has not.
    assert rows(graph, '$x: Named { slug: "acme" }  not { $_ worksAt $x }', "type($x) as t") == [
        ("Person",)
    ]
    either = (
        '$x: Named { slug: "acme" }  either { $y worksAt $x } or { $x knows $y } or { $y knows $x }'
    )
    assert sorted(rows(graph, either, "type($x) as t, $y")) == [("Firm", "ann"), ("Person", "bob")]


def test_of_equal_ids_the_type_breaks_ties_before_the_next_variable_does(graph: og.Graph) -> None:
    pairs = rows(
        graph,
        '$a: Named { slug: "acme" }  $b: Person',
        "type($a) as kind, $b",
        "order { length($a.slug) }",
    )

    people = ("acme", "ann", "bob")
    assert pairs == [(kind, person) for kind in ("Firm", "Person") for person in people]


@pytest.mark.parametrize(
    ("block", "count"),
    [
        ("optional { $x owns $z }", 4),
        ("either { $x owns $x } or { $x knows $_ }", 4),
        ('either { $x owns $z } or { $x.slug = "acme"  $x owns $z }', 0),
        ("not { $x owns $x }", 4),
    ],
)
def test_a_block_that_no_type_allows_knows_only_what_it_mentions(
    graph: og.Graph, block: str, count: int
) -> None:
    """`$y` has one type as well where it stands, and is not in the block."""
    clauses = f"$x: Named  $y: Named  $x $k:knows $y  {block}"

    assert len(rows(graph, clauses, "$k { * } as k, $y.slug")) == count


def test_positions_of_a_type_become_those_of_the_interface_again(graph: og.Graph) -> None:
    idle = rows(graph, "$x: Named  not { $x worksAt $_ }", "$x.name", "order { $x.name }")
    either = "$p: Person  either { $x: Named  $p knows $x } or { $x: Named  $p worksAt $x }"

    assert idle == [("Acme",), ("Acme Jones",), ("Zeta",)]
    found = rows(graph, either, "$p.slug, type($x) as t, $x.name", "order { $p.slug, t, $x.name }")
    assert found == [
        ("ann", "Firm", "Acme"), ("ann", "Person", "Bob"),
        ("bob", "Firm", "Zeta"), ("bob", "Person", "Acme Jones"), ("bob", "Person", "Bob"),
    ]  # fmt: skip


def test_an_interface_narrows_by_each_traversal(graph: og.Graph) -> None:
    assert rows(graph, '$x: Named  $x worksAt $c  $c: Named { name: "Acme" }', "$x, $c.city") == [
        ("ann", "Rome")
    ]
    assert rows(graph, "$x: Named  $a worksAt $x  $x worksAt $b", "$x") == []
    assert rows(
        graph, "$x: Named  optional { $a worksAt $x  $x worksAt $b }", "count($a) as n"
    ) == [(0,)]
    assert rows(graph, "$x: Ghostly", "count($x) as n, min($x.age) as a") == [(0, None)]
    assert rows(graph, "$x: Ghostly", "$x, $x.age, type($x) as t") == []
    assert rows(graph, "$x: Named  search($x.name, \"acme\")", "type($x) as t", "order { t }") == [
        ("Firm",), ("Person",),
    ]  # fmt: skip
    types = '$x: Named  type($x) = "Firm" or $x.size = 3'
    assert rows(graph, types, "$x.name", "order { $x.name }") == [("Acme",), ("Ann",), ("Zeta",)]


def test_a_limit_cuts_before_an_optional_and_not_before_an_either(graph: og.Graph) -> None:
    assert len(rows(graph, "$p: Person  optional { $p worksAt $w }", "$p.slug, $w", "limit 2")) == 2
    one = rows(graph, "$p: Person  either { $p.size = 1 } or { $p.age = -1 }", "$p.slug", "limit 1")
    assert one == [("acme",)]
    first = "order { $p.slug desc } limit 1"
    assert rows(graph, "$p: Person  optional { $p worksAt $w } $w is null", "$p.slug", first) == [
        ("acme",)
    ]


def test_rows_come_in_blocks_and_are_folded_with_null(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the blocks are, and however early groups are folded, the answer is the same."""
    clauses = "$p: Person  $x: Named  optional { $p knows $f  $f.size = $x.size }"
    returned = "$f as f, count($f) as n, count($p) as m, sum($f.size) as s, max($f.name) as most"
    expected = rows(graph, clauses, returned, "order { f }")

    monkeypatch.setattr(blocks, "ROWS_PER_BLOCK", 1)
    monkeypatch.setattr(match, "HELD_BEFORE_FOLDING", 1)

    assert rows(graph, clauses, returned, "order { f }") == expected


def test_what_a_block_multiplies_is_bounded(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = "optional {{ ${0}: Named  ${0}.slug != $x.name }}"
    monkeypatch.setenv(ROWS_VARIABLE, "20")
    monkeypatch.setattr(match, "HELD_BEFORE_FOLDING", 1)

    with pytest.raises(ResourceLimitError, match="add a filter or a limit"):
        rows(graph, f"$x: Named  {one.format('y')} {one.format('z')}", "$x, $y, $z")
