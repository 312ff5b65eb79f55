"""Schemas that grow with their data: new properties with values, other types, rules and keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import MigrationError
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from omnigraph.write.fork import open_pin
from tests.ready import copy_ready
from tests.upkeep.graphs import new_library, rows

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    big: I64
    share: F32
    born: Date?
    mood: String?
    tags: [String]?
    face: Vector(2)?
    photo: Blob?
}
edge Knows: Person -> Person { since: I32? }
"""

PEOPLE: list[dict[str, Any]] = [
    {"name": "ann", "age": 30, "big": 2**40, "share": 0.5, "born": "1990-02-03", "mood": "calm"},
    {"name": "bob", "age": None, "big": -1, "share": 0.25, "mood": "wild", "tags": ["x"]},
    {"name": "cy", "age": 2_000_000_000, "big": 7, "share": 0.125, "photo": "base64:AAEC"},
]
PAIRS = [("ann", "bob", 1), ("ann", "bob", 2), ("bob", "ann", 3)]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    copy_ready("growth", make_people, tmp_path / "graph")
    return reopen_at(tmp_path / "graph")


def make_people(path: Path) -> og.Graph:
    graph = new_library(path, SCHEMA)
    records: list[dict[str, Any]] = [{"type": "Person", "data": each} for each in PEOPLE]
    records += [
        {"edge": "Knows", "from": a, "to": b, "data": {"since": since}} for a, b, since in PAIRS
    ]
    graph.load(records, mode="append")
    return graph


def reopen_at(path: Path | str) -> og.Graph:
    return og.open(path, durability="process", self_care=False)


def edit(*changes: tuple[str, str]) -> str:
    text = SCHEMA
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def column(graph: og.Graph, name: str, key: str = "node:Person") -> list[Any]:
    return [row[name] for row in rows(graph, key)]


def data_files(graph: og.Graph, key: str = "node:Person") -> set[str]:
    """The data files that the table consists of."""
    tables = inside(graph).store.tables
    handle = open_pin(tables, graph.snapshot().entries[key])
    return {name for each in tables.reads.fragments(handle) for name in each.files}


# No row is written where none changes


NO_ROW_CHANGES = {
    "an optional property": ("    age: I32?\n", "    age: I32?\n    aaa: String?\n"),
    "optional ones of every form": (
        "    age: I32?\n",
        "    age: I32?\n    b: Blob?\n    l: [I32]?\n    v: Vector(3)?\n    zz: Date?\n",
    ),
    "an optional and unique one": ("    age: I32?\n", "    age: I32?\n    mail: String? @unique\n"),
    "required to optional": ("big: I64", "big: I64?"),
    "optional to required": ("mood: String?", "mood: String"),
    "text to enum": ("mood: String?", "mood: enum(calm, sad, wild)?"),
    "a range": ("    age: I32?\n", "    age: I32?\n    @range(big, -1..)\n"),
    "a unique property": ("big: I64", "big: I64 @unique"),
    "a bound on edges": ("-> Person {", "-> Person @card(0..2) {"),
    "a default": ("share: F32", "share: F32 @default(1)"),
}


@pytest.mark.parametrize("what", NO_ROW_CHANGES)
def test_a_change_of_no_row_writes_none(graph: og.Graph, what: str) -> None:
    desired = edit(NO_ROW_CHANGES[what])
    if what == "optional to required":
        graph.mutate('query q() { update Person set { mood: "sad" } where name = "cy" }')
    before = {key: data_files(graph, key) for key in graph.snapshot().entries}
    old = rows(graph, "node:Person")
    plan = graph.plan_schema(desired)

    with counting() as counters:
        assert graph.apply_schema(desired).applied

    assert {each.effect.value for each in plan.effects} == {"metadata only"}
    assert {key: data_files(graph, key) for key in graph.snapshot().entries} == before
    assert counters.bytes_staged == 0
    new = reopen_at(graph.uri)
    assert [
        {k: v for k, v in row.items() if k in old[0]} for row in rows(new, "node:Person")
    ] == old
    assert new.verify().errors == ()
    assert graph.plan_schema(desired).steps == ()


def test_a_table_goes_on_after_its_columns_changed(graph: og.Graph) -> None:
    """Written, queried, compacted, changed again: columns are known by identity, not by place."""
    first = edit(("    age: I32?\n", "    age: I32?\n    aaa: String?\n    zz: [I32]?\n"))
    graph.apply_schema(first)
    graph.mutate(
        'query q() { update Person set { aaa: "new" } where name = "bob" '
        'insert Person { name: "di", big: 1, share: 1.0, aaa: "di", zz: [1] } }'
    )
    graph.apply_schema(first.replace("big: I64", "big: I64?"))
    graph.optimize()
    second = first.replace("    aaa: String?\n", "").replace("big: I64", "big: I64?")
    graph.apply_schema(second)
    third = second.replace("    age: I32?\n", "    age: I32?\n    aaa: I64?\n")
    graph.apply_schema(third)

    assert column(graph, "aaa") == [None] * 4
    assert column(graph, "zz") == [None, None, None, [1]]
    assert column(graph, "age") == [30, None, 2_000_000_000, None]
    assert column(graph, "mood") == ["calm", "wild", None, None]
    found = graph.query('query q() { match { $p: Person { name: "di" } } return { $p.big } }')
    assert found.rows() == [{"p.big": 1}]
    assert graph.verify(content=True).errors == ()


# Types


def test_a_wider_type_keeps_every_value_and_is_no_change_of_a_row(graph: og.Graph) -> None:
    before = graph.snapshot().manifest_version

    graph.apply_schema(edit(("age: I32?", "age: I64?"), ("share: F32", "share: F64")))

    assert column(graph, "age") == [30, None, 2_000_000_000]
    assert column(graph, "share") == [0.5, 0.25, 0.125]
    assert len(graph.diff(before, "main")) == 0
    graph.mutate(
        'query q($a: I64) { update Person set { age: $a } where name = "bob" }', params={"a": 2**40}
    )
    (change,) = graph.diff(before, "main")
    assert change.id == "bob"
    # The past is read in its own type, and in that of today.
    old = "query q() { match { $p: Person  $p.age > 29 } return { $p.age } order { $p.age } }"
    assert graph.query(old, version=before).rows() == [{"p.age": 30}, {"p.age": 2_000_000_000}]
    today = graph.query(old, version=before, schema="current")
    assert today.rows() == [{"p.age": 30}, {"p.age": 2_000_000_000}]


@pytest.mark.parametrize(
    ("change", "code", "ids"),
    [
        (("big: I64", "big: I32"), "OG-MF-106", ["ann"]),
        (("big: I64", "big: U64"), "OG-MF-106", ["bob"]),
        (("age: I32?", "age: I32"), "OG-MF-104", ["bob"]),
        (("mood: String?", "mood: enum(calm)?"), "OG-MF-106", ["bob"]),
        (("share: F32", "share: I32"), "OG-MF-106", ["ann", "bob", "cy"]),
        (("big: I64", "big: I64\n    @range(big, 0..)"), None, ["bob"]),
        (("share: F32", 'share: F32\n    nick: String @unique @default("x")'), None, ["bob", "cy"]),
        (("share: F32", "share: F32\n    nick: String @backfill(mood)"), None, ["cy"]),
        (("share: F32", "share: F32\n    nick: enum(calm)? @backfill(mood)"), None, ["bob"]),
        (("-> Person {", "-> Person @card(0..1) {"), None, ["ann"]),
    ],
)
def test_rows_that_do_not_fit_refuse_the_change_by_name(
    graph: og.Graph, change: tuple[str, str], code: str | None, ids: list[str]
) -> None:
    version, before = graph.snapshot().manifest_version, rows(graph, "node:Person")

    plan = graph.plan_schema(edit(change))
    with pytest.raises(MigrationError) as caught:
        graph.apply_schema(edit(change))

    assert not plan.supported
    refused = [each for each in plan.effects if each.effect.value == "refused"]
    assert [(each.rows, list(each.samples)) for each in refused] == [(len(ids), ids)]
    assert caught.value.code == code
    assert f"such as {', '.join(ids)}" in str(caught.value)
    assert (graph.snapshot().manifest_version, rows(graph, "node:Person")) == (version, before)


def test_a_closer_type_that_all_rows_fit_is_taken(graph: og.Graph) -> None:
    graph.mutate('query q() { update Person set { big: 5 } where name = "ann" }')
    graph.mutate('query q() { update Person set { big: 6 } where name = "bob" }')

    graph.apply_schema(edit(("big: I64", "big: U32"), ("age: I32?", "age: F64?")))

    assert column(graph, "big") == [5, 6, 7]
    assert column(graph, "age") == [30.0, None, 2_000_000_000.0]


# New properties with values


def test_new_required_properties_are_filled(graph: og.Graph) -> None:
    graph.apply_schema(
        edit(
            (
                "    big: I64\n",
                "    big: I64\n"
                "    level: I32 @default(-1)\n"
                "    key: I64 @unique @backfill(big)\n"
                "    ident: String @unique @backfill(id)\n",
            ),
            ("since: I32?", 'since: I32?  way: String @backfill("{src}>{dst}")'),
        )
    )

    assert column(graph, "level") == [-1, -1, -1]
    assert column(graph, "key") == [2**40, -1, 7]
    assert column(graph, "ident") == ["ann", "bob", "cy"]
    assert sorted(column(graph, "way", "edge:Knows")) == ["ann>bob", "ann>bob", "bob>ann"]


def test_a_backfill_with_a_null_is_the_default(graph: og.Graph) -> None:
    desired = edit(
        (
            "share: F32",
            'share: F32  label: String @backfill("{name}/{born} {age}{{}}") @default("?")',
        )
    )

    graph.apply_schema(desired)

    assert column(graph, "label") == ["ann/1990-02-03 30{}", "?", "?"]
    assert (
        graph.apply_schema(desired.replace(' @backfill("{name}/{born} {age}{{}}")', "")).applied
        is False
    )


# Keys of edges


def test_edges_with_distinct_ends_get_a_key(graph: og.Graph) -> None:
    keyed = edit(("since: I32?", "since: I32?  @key(src, dst)"))
    refused = graph.plan_schema(keyed)
    with pytest.raises(MigrationError, match=r"cannot add @key\(src, dst\) to edge Knows: 1 row"):
        graph.apply_schema(keyed)
    graph.mutate("query q() { delete Knows where since = 2 }")
    before = graph.snapshot().manifest_version

    plan = graph.plan_schema(keyed)
    graph.apply_schema(keyed)
    graph.mutate('query q() { insert Knows { from: "ann", to: "bob", since: 9 } }')

    assert [each.rows for each in refused.effects] == [1]
    assert [(each.effect.value, each.rows) for each in plan.effects] == [("rewrites", 2)]
    found = {row["id"]: row["since"] for row in rows(graph, "edge:Knows")}
    assert found == {'["ann","bob"]': 9, '["bob","ann"]': 3}
    # To a diff these are other edges: the ones before are gone, and new ones are there.
    ops = sorted(change.op.value for change in graph.diff(before, "main"))
    assert ops == ["delete", "delete", "insert", "insert"]

    graph.apply_schema(edit(("since: I32?", "since: I32?")))
    graph.mutate('query q() { insert Knows { from: "ann", to: "bob" } }')

    assert len(rows(graph, "edge:Knows")) == 3
    assert found.keys() < {row["id"] for row in rows(graph, "edge:Knows")}
