"""Statements of mutations: upsert, edges, `where`, `match`, `for` and what comes back.

The conformance cases say what each means; here is what they promise beside other writers, other
statements and the rules of the schema.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.compiler import require_mutation
from omnigraph.errors import (
    BadRequestError,
    ConstraintError,
    ExpectedVersionMismatch,
    ResourceLimitError,
)
from omnigraph.write.mutate import STAGED_ROWS_MAX
from omnigraph.write.touched import find_decisive_tables
from tests.graph.reading import reopen
from tests.ready import copy_ready

SCHEMA = """
node Item {
    sku: String @key
    label: String
    stock: I32?
    note: String? @default("new")
    tags: [String]?
}
node User { slug: String @key  visits: I32  mail: String? @unique }
node Event { text: String  n: I32? }
node Doc { name: String @key  body: String?  vec: Vector(64)? @embed("body")  data: Blob? }
edge Likes: User -> Item { stars: I32?  why: String? }
edge Pays: User -> User { day: Date  amount: F64?  @key(src, dst, day) }
"""
DATA: list[dict[str, Any]] = [
    {"type": "Item", "data": {"sku": "i1", "label": "Pen", "stock": 5, "note": "blue"}},
    {"type": "Item", "data": {"sku": "i2", "label": "Ink", "stock": 0, "note": None}},
    {"type": "User", "data": {"slug": "ann", "visits": 3, "mail": "a@x"}},
    {"type": "User", "data": {"slug": "bob", "visits": 0}},
    {"edge": "Likes", "from": "ann", "to": "i1", "data": {"stars": 5, "why": "smooth"}},
    {"edge": "Likes", "from": "bob", "to": "i1", "data": {"stars": 1}},
    {"edge": "Pays", "from": "ann", "to": "bob", "data": {"day": "2024-01-02", "amount": 1.0}},
]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    def make(path: Path) -> og.Graph:
        graph = og.init(path, schema=SCHEMA, durability="process")
        graph.load(DATA, mode="append")
        return graph

    copy_ready("statements", make, tmp_path / "graph")
    return og.open(tmp_path / "graph", durability="process")


def run(graph: og.Graph, body: str, declared: str = "", **params: Any) -> og.MutationResult:
    return graph.mutate(f"query q({declared}) {{ {body} }}", params=params)


def counts(result: og.MutationResult) -> tuple[int, int]:
    return result.affected_nodes, result.affected_edges


def table(graph: og.Graph, type_name: str, *columns: str) -> list[tuple[Any, ...]]:
    kind = graph.edges if type_name in graph.catalog.edges else graph.nodes
    found = kind(type_name).to_arrow().to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in found), key=str)


# Upsert


def test_an_upsert_uses_defaults_for_new_rows_only(graph: og.Graph) -> None:
    run(graph, 'upsert Item { sku: "i2", label: "x" } upsert Item { sku: "i3", label: "y" }')

    assert table(graph, "Item", "sku", "label", "stock", "note") == [
        ("i1", "Pen", 5, "blue"),
        ("i2", "x", 0, None),
        ("i3", "y", None, "new"),
    ]


def test_an_upsert_sees_what_the_query_wrote_before_it(graph: og.Graph) -> None:
    result = run(
        graph,
        'insert Item { sku: "n", label: "a", stock: 1 } upsert Item { sku: "n", label: "b" }',
    )

    assert counts(result) == (2, 0)
    assert ("n", "b", 1) in table(graph, "Item", "sku", "label", "stock")


def test_an_upsert_makes_vectors_anew_where_their_text_changed(graph: og.Graph) -> None:
    run(graph, 'insert Doc { name: "d", body: "soup", data: "base64:AQI=" }')
    first = table(graph, "Doc", "name", "vec")

    run(graph, 'upsert Doc { name: "d" }')
    kept = table(graph, "Doc", "name", "vec")
    run(graph, 'upsert Doc { name: "d", body: "shares" } upsert Doc { name: "e", body: "soup" }')
    changed = dict(table(graph, "Doc", "name", "vec"))

    assert kept == first
    assert changed["d"] not in (None, first[0][1])
    assert changed["e"] == first[0][1]
    assert graph.read_blob("node", "Doc", "d", "data").read() == b"\x01\x02"


def test_an_edge_with_a_key_is_upserted_by_its_key(graph: og.Graph) -> None:
    body = 'upsert Pays { from: "ann", to: "bob", day: $day, amount: $amount }'
    declared = "$day: Date, $amount: F64?"
    run(graph, body, declared, day="2024-01-02", amount=2.0)
    run(graph, body, declared, day="2024-01-03", amount=3.0)
    run(graph, 'upsert Pays { from: "ann", to: "bob", day: date("2024-01-03") }')

    assert table(graph, "Pays", "amount") == [(2.0,), (3.0,)]
    with pytest.raises(og.errors.TypeCheckError, match="T42: upsert needs the key"):
        run(graph, 'upsert Pays { from: "ann", to: "bob" }')


def test_an_upsert_is_prepared_again_when_its_table_moved(graph: og.Graph) -> None:
    """It means the same whatever is there, so it never fails for being behind."""
    stale = reopen(graph)
    run(graph, 'update Item set { stock: 9 } where sku = "i1"')

    run(stale, 'upsert Item { sku: "i1", label: "again" }')

    assert ("i1", "again", 9) in table(graph, "Item", "sku", "label", "stock")


# Match


@pytest.mark.parametrize(
    "body",
    [
        "match { $u: User  $u likes $i } update $u set { visits: 1 }",
        "match { $u: User  $u likes $i } insert Event { text: $i.sku }",
        "match { $u: User  $u $l:likes $i  $i.stock > 1 } delete $l",
    ],
)
def test_a_match_over_rows_that_changed_is_refused(graph: og.Graph, body: str) -> None:
    """Also when the table that moved is only read: the match decided what is written."""
    stale = reopen(graph)
    run(graph, 'update Item set { stock: 0 } where sku = "i1"')
    commits = len(graph.commits())

    with pytest.raises(ExpectedVersionMismatch) as caught:
        run(stale, body)

    assert caught.value.table_key == "node:Item"
    assert len(graph.commits()) == commits


def test_rows_that_disagree_are_refused_by_name_and_change_nothing(graph: og.Graph) -> None:
    for body in (
        "match { $u: User  $u likes $i } update $i set { note: $u.slug }",
        "match { $u: User  $u likes $i } upsert Item { sku: $i.sku, label: $u.slug }",
        "match { $u: User  $u likes $i } update $i set { stock: $u.visits }",
    ):
        with pytest.raises(BadRequestError, match=r"ambiguous: .* Item 'i1'"):
            run(graph, body)

    assert len(graph.commits()) == 2
    same = 'match { $u: User  $u likes $i } update $i set { tags: ["a"], note: null }'
    assert counts(run(graph, same)) == (1, 0)


def test_statements_after_a_match_see_the_graph_before_them(graph: og.Graph) -> None:
    result = run(
        graph,
        """
        match { $u: User { slug: "ann" }  $u likes $i }
        update $i set { stock: $i.stock + 1 }
        update $i set { note: case when $i.stock = 5 then "five" else "other" end }
        return { $i.stock, $i.note, $u.slug }
        """,
    )

    assert result.returned is not None
    assert result.returned.rows() == [{"i.stock": 6, "i.note": "five", "u.slug": "ann"}]


def test_what_an_optional_did_not_find_is_left_alone(graph: og.Graph) -> None:
    result = run(
        graph,
        """
        match { $u: User  optional { $u likes $i  $u.visits > 0 } }
        update $i set { note: "seen" }
        return { $u.slug as user, $i.note as note }
        """,
    )

    assert counts(result) == (1, 0)
    assert result.returned is not None
    assert sorted(result.returned.rows(), key=str) == [
        {"user": "ann", "note": "seen"},
        {"user": "bob", "note": None},
    ]


def test_a_path_of_the_match_is_returned_as_it_was(graph: og.Graph) -> None:
    result = run(
        graph,
        """
        match { $a: User { slug: "ann" }  $a $t:pays{1,2} $b }
        update $b set { visits: hops($t) + 10 }
        return { hops($t) as hops, $b.visits as visits }
        """,
    )

    assert result.returned is not None
    assert result.returned.rows() == [{"hops": 1, "visits": 11}]


def test_an_interface_variable_shows_what_the_statements_leave(tmp_path: Path) -> None:
    """Each row is read from the table of its type, also where two types share an id."""
    schema = """
    interface Named { slug: String @key  name: String?  tags: [String]? }
    interface Unused { other: String? }
    node Author implements Named { born: I32? }
    node Group implements Named { city: String? }
    edge MemberOf: Author -> Group
    """
    graph = og.init(tmp_path / "graph", schema=schema, durability="process")
    records: list[dict[str, Any]] = [
        {"type": "Author", "data": {"slug": "a", "name": "Ada", "tags": ["x"]}},
        {"type": "Group", "data": {"slug": "a", "name": "Alps"}},
        {"edge": "MemberOf", "from": "a", "to": "a"},
    ]
    graph.load(records, mode="append")

    result = run(
        graph,
        """
        match { $x: Named  optional { $x memberOf $g }  $a: Author }
        update $a set { name: "new", born: 3 }
        return {
            type($x) as kind, $x as id, $x { * },
            $x.name as name, $x { name } as o, $g.slug as g
        }
        """,
    )
    narrowed = run(
        graph,
        """
        match { $x: Named  $x memberOf $g  $g: Named }
        update $g set { name: "hill" }
        return { $x { slug }, $g { name, slug }, type($g) as kind }
        """,
    )
    empty = run(graph, "match { $x: Unused } insert Group { slug: $x.other } return { $x { * } }")

    ada = {"id": "a", "name": "new", "slug": "a", "tags": ["x"]}
    alps = {"id": "a", "name": "Alps", "slug": "a", "tags": None}
    assert result.returned is not None
    assert sorted(result.returned.rows(), key=lambda row: row["kind"]) == [
        {"kind": "Author", "id": "a", "x": ada, "name": "new", "o": {"name": "new"}, "g": "a"},
        {"kind": "Group", "id": "a", "x": alps, "name": "Alps", "o": {"name": "Alps"}, "g": None},
    ]
    assert narrowed.returned is not None
    assert narrowed.returned.rows() == [
        {"x": {"slug": "a"}, "g": {"name": "hill", "slug": "a"}, "kind": "Group"}
    ]
    assert empty.returned is not None
    assert empty.returned.rows() == []


def test_the_tables_of_a_match_decide_a_write_and_those_of_an_upsert_do_not(
    graph: og.Graph,
) -> None:
    """A server compares these with what the branch showed when the request came."""

    def decisive(body: str) -> frozenset[str]:
        compiled = og.compile_query(f"query q() {{ {body} }}", graph.catalog)
        return find_decisive_tables(require_mutation(compiled), graph.catalog)

    assert decisive('upsert Item { sku: "a", label: "b" } insert Event { text: "x" }') == set()
    assert decisive("match { $u likes $i } insert Event { text: $i.sku }") == {
        "node:Event",
        "node:User",
        "node:Item",
        "edge:Likes",
    }
    assert decisive("update Likes set { stars: 1 } where stars > 1") == {"edge:Likes"}


def test_a_match_that_would_add_too_many_rows_is_refused_before_it_does(graph: og.Graph) -> None:
    run(
        graph,
        "for $r in $rows { insert Event { text: $r.t } }",
        "$rows: [{ t: String }]",
        rows=[{"t": str(number)} for number in range(100)],
    )

    with pytest.raises(ResourceLimitError) as caught:
        run(graph, "match { $a: Event  $b: Event } insert Event { text: $a.text + $b.text }")

    assert (caught.value.limit, caught.value.actual) == (STAGED_ROWS_MAX, 10_000)


# For


BODIES = {
    "insert": "insert Item { sku: $r.sku, label: lower($r.label), stock: $r.stock }",
    "upsert": "upsert Item { sku: $r.sku, label: $r.label, stock: coalesce($r.stock, 0) + 1 }",
    "edges": "upsert User { slug: $r.label, visits: 1 } "
    "upsert Likes { from: $r.label, to: $r.sku, stars: $r.stock }",
    "more edges": 'insert Likes { from: "ann", to: $r.sku, stars: $r.stock } '
    'insert Likes { from: "bob", to: $r.sku }',
}
ROWS = [
    {"sku": "i1", "label": "B", "stock": 7},
    {"sku": "i2", "label": "C", "stock": None},
    {"sku": "i1", "label": "B"},
    {"sku": "i2", "label": "ann", "stock": 2},
]


@pytest.mark.parametrize("name", BODIES)
def test_a_batch_leaves_what_the_elements_leave_one_by_one(graph: og.Graph, name: str) -> None:
    """An update among the statements makes them take turns; this one finds nothing."""
    declared = "$rows: [{ sku: String, label: String, stock: I32? }]"
    other = reopen(graph)
    other.create_branch("turns")
    batch = f"query q({declared}) {{ for $r in $rows {{ {BODIES[name]} }} }}"
    idle = 'update Event set { n: 1 } where text = "none"'
    turns = f"query q({declared}) {{ for $r in $rows {{ {BODIES[name]} {idle} }} }}"

    results = [
        graph.mutate(batch, params={"rows": ROWS}),
        graph.mutate(turns, params={"rows": ROWS}, branch="turns"),
    ]

    assert counts(results[0]) == counts(results[1])
    for type_name, columns in (
        ("Item", ("sku", "label", "stock", "note")),
        ("User", ("slug", "visits", "mail")),
        ("Likes", ("src", "dst", "stars", "why")),
    ):
        kind = "edges" if type_name == "Likes" else "nodes"
        main, branch = (
            sorted(
                (
                    tuple(row[each] for each in columns)
                    for row in getattr(graph, kind)(type_name, branch=at).to_arrow().to_pylist()
                ),
                key=str,
            )
            for at in ("main", "turns")
        )
        assert main == branch


def test_statements_of_one_type_take_turns(graph: og.Graph) -> None:
    """The second element changes what the first one inserted, and keeps the rest of it."""
    run(
        graph,
        """
        for $r in $rows {
            upsert Item { sku: $r.a, label: "upserted" }
            insert Item { sku: $r.b, label: "inserted", stock: 9 }
        }
        """,
        "$rows: [{ a: String, b: String }]",
        rows=[{"a": "x", "b": "y"}, {"a": "y", "b": "z"}],
    )

    assert ("y", "upserted", 9) in table(graph, "Item", "sku", "label", "stock")


def test_elements_that_take_turns_see_the_writes_of_earlier_ones(graph: og.Graph) -> None:
    result = run(
        graph,
        "for $r in $rows { update Item set { stock: stock + $r.n } where sku = $r.sku }",
        "$rows: [{ sku: String, n: I32 }]",
        rows=[{"sku": "i1", "n": 1}, {"sku": "i1", "n": 10}, {"sku": "zz", "n": 1}],
    )

    assert counts(result) == (2, 0)
    assert ("i1", 16) in table(graph, "Item", "sku", "stock")
    assert len(graph.commits()) == 3


def test_a_broken_rule_in_one_element_undoes_all(graph: og.Graph) -> None:
    declared = "$rows: [{ slug: String, mail: String? }]"
    body = "for $r in $rows { upsert User { slug: $r.slug, visits: 1, mail: $r.mail } }"

    with pytest.raises(ConstraintError, match=r"@unique violation on User\.mail"):
        run(graph, body, declared, rows=[{"slug": "c"}, {"slug": "d", "mail": "a@x"}])

    assert table(graph, "User", "slug") == [("ann",), ("bob",)]
    assert run(graph, body, declared, rows=[]).commit_id is None


# Edges and where


def test_an_edge_is_found_by_its_ends_its_id_and_its_properties(graph: og.Graph) -> None:
    assert counts(run(graph, 'update Likes set { stars: stars + 1 } where to = "i1"')) == (0, 2)
    assert table(graph, "Likes", "src", "stars", "why") == [("ann", 6, "smooth"), ("bob", 2, None)]

    ann = next(row["id"] for row in graph.edges("Likes").to_arrow().to_pylist() if row["why"])
    body = "update Likes set { why: from + to } where id = $id or from = $id"
    assert counts(run(graph, body, "$id: String", id=ann)) == (0, 1)
    assert counts(run(graph, 'delete Likes where why ends_with "i1" and from != to')) == (0, 1)
    assert table(graph, "Likes", "src") == [("bob",)]


def test_a_set_reads_the_values_before_it(graph: og.Graph) -> None:
    run(graph, 'update Item set { label: coalesce(note, "none"), note: label } where stock >= 0')

    assert table(graph, "Item", "label", "note") == [("blue", "Pen"), ("none", "Ink")]


def test_a_value_that_does_not_fit_its_property_changes_nothing(graph: og.Graph) -> None:
    with pytest.raises(ConstraintError, match=r"5000000000 exceeds I32 range"):
        run(graph, 'update Item set { stock: stock * 1000000000 } where sku = "i1"')
    with pytest.raises(ConstraintError, match=r"exceeds I32 range"):
        run(
            graph,
            "for $r in $rows { upsert Item { sku: $r.s, label: $r.s, stock: $r.n + 1 } }",
            "$rows: [{ s: String, n: I32 }]",
            rows=[{"s": "k", "n": 2**31 - 1}],
        )

    assert len(graph.commits()) == 2


def test_a_property_called_null_is_that_property(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", schema="node T { k: String @key  null: I32?  in: I32? }")
    run(graph, 'insert T { k: "a", null: 1 in: 2 }')

    assert counts(run(graph, "update T set { in: null + 1 } where null = 1")) == (1, 0)
    assert table(graph, "T", "null", "in") == [(1, 2)]


# Return


def test_what_is_returned_is_what_the_query_left(graph: og.Graph) -> None:
    result = run(
        graph,
        """
        insert Event { text: "a" } as $e
        return { $e, $e.text as text, $e.n is null as empty }
        """,
    )
    assert result.returned is not None
    ((row),) = result.returned.rows()
    assert (row["text"], row["empty"]) == ("a", True)
    assert row["e"] == table(graph, "Event", "id")[0][0]

    later = run(
        graph,
        """
        update Item set { stock: 1 } where sku = "i1" as $i
        update Item set { stock: stock + 1 } where sku = "i1"
        return { $i.stock }
        """,
    )
    assert later.returned is not None
    assert later.returned.rows() == [{"i.stock": 2}]


@pytest.mark.parametrize("idle", ["", 'update Event set { n: 1 } where text = "none"'])
def test_a_label_of_for_comes_back_with_its_element(graph: og.Graph, idle: str) -> None:
    """In a batch, and when the elements take turns."""
    result = run(
        graph,
        f"""
        for $r in $rows {{
            upsert Likes {{ from: $r.who, to: "i1", stars: $r.stars }} as $l
            {idle}
        }}
        return {{ $r.who as who, $l.stars as stars, $l.why as why }}
        """,
        "$rows: [{ who: String, stars: I32 }]",
        rows=[{"who": "bob", "stars": 2}, {"who": "ann", "stars": 3}, {"who": "bob", "stars": 4}],
    )

    assert result.returned is not None
    assert result.returned.rows() == [
        {"who": "bob", "stars": 4, "why": None},
        {"who": "ann", "stars": 3, "why": "smooth"},
        {"who": "bob", "stars": 4, "why": None},
    ]
    assert counts(result) == (0, 3)


def test_whole_entities_and_distinct_rows_come_back(graph: og.Graph) -> None:
    result = run(
        graph,
        """
        match { $u: User  $u $l:likes $i }
        update $i set { stock: 8 }
        return distinct { $i { sku, stock } }
        """,
    )
    edge = run(graph, 'upsert Likes { from: "ann", to: "i2", stars: 4 } as $l return { $l { * } }')

    assert result.returned is not None
    assert result.returned.rows() == [{"i": {"sku": "i1", "stock": 8}}]
    assert edge.returned is not None
    ((row),) = edge.returned.rows()
    assert row["l"].pop("id")
    assert row["l"] == {"src": "ann", "dst": "i2", "stars": 4, "why": None}
