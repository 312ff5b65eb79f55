"""A plan says what touches data, how many rows, and which rows stand in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.upkeep.graphs import SCHEMA


def effects(graph: og.Graph, *edits: tuple[str, str]) -> list[tuple[str, int, tuple[str, ...]]]:
    desired = SCHEMA
    for old, new in edits:
        assert old in desired
        desired = desired.replace(old, new)
    plan = graph.plan_schema(desired)
    return [(each.effect.value, each.rows, each.samples) for each in plan.effects]


def test_metadata_changes_and_rewrites_are_distinguished(library: og.Graph) -> None:
    assert effects(library, ("enum(junior, senior)", "enum(emeritus, junior, senior)")) == [
        ("metadata only", 0, ())
    ]
    assert effects(library, ("    age: I32?\n", "    email: String?\n")) == [
        ("rewrites", 12, ()),
        ("rewrites", 12, ()),
    ]
    assert effects(library, ("edge Wrote: Author -> Paper { pos: I32? }", "")) == [("hides", 6, ())]


def test_rows_that_block_a_change_are_counted_and_sampled(library: og.Graph) -> None:
    required = effects(library, ("    name: String", "    name: String\n    email: String"))
    narrowed = effects(library, ("enum(junior, senior)?", "enum(junior)?"))
    not_null = effects(library, ("    bio: String? @index", "    bio: String @index"))

    assert required == [("refused", 12, ("a000", "a001", "a002"))]
    assert narrowed == [("refused", 4, ("a001", "a004", "a007"))]
    assert not_null == [("metadata only", 0, ())]


def test_rows_that_would_break_a_new_rule_are_counted_and_sampled(library: og.Graph) -> None:
    """Levels are junior, senior and null in turn; ages are 0 to 11."""
    unique = effects(library, ("? @index\n    bio", "? @unique @index\n    bio"))
    ranged = effects(library, ("    photo: Blob?", "    photo: Blob?\n    @range(age, 0..9)"))
    checked = effects(
        library, ("    photo: Blob?", '    photo: Blob?\n    @check(name, "^Name [0-4]$")')
    )
    both = effects(
        library,
        ("    age: I32?", '    years: I32? @rename_from("age")'),
        ("    photo: Blob?", "    photo: Blob?\n    @range(years, 0..0)"),
    )
    bounded = effects(library, ("Paper { pos", "Paper @card(2..) { pos"))
    on_new = effects(library, ("    age: I32?", "    age: I32?\n    mail: String? @unique"))

    assert unique == [("refused", 6, ("a003", "a004", "a006"))]
    assert ranged == [("refused", 2, ("a010", "a011"))]
    assert checked == [("refused", 7, ("a005", "a006", "a007"))]
    assert both[-1] == ("refused", 11, ("a001", "a002", "a003"))
    assert bounded == [("refused", 6, ("a000", "a002", "a004"))]
    assert on_new[-1] == ("metadata only", 0, ())


def test_it_prints_as_a_small_table(library: og.Graph) -> None:
    plan = library.plan_schema(
        SCHEMA.replace("    age: I32?", "    age: I32?\n    @range(age, 9..)")
    )

    assert str(plan).splitlines()[0].split("|")[1].strip() == "effect"
    assert str(plan).splitlines()[2].endswith(" 9 such as a000, a001, a002")
    assert str(library.plan_schema(SCHEMA)) == "no schema changes"
    assert plan.supported is False
    assert plan.effects[0].to_json()["samples"] == ["a000", "a001", "a002"]


def test_planning_changes_nothing(library: og.Graph) -> None:
    version = library.snapshot().manifest_version

    library.plan_schema("node Other { name: String @key }", allow_data_loss=True)

    assert library.snapshot().manifest_version == version
    assert library.schema == SCHEMA


RULES_NO_ROW_BREAKS = {
    "unique": ("    name: String\n", "    name: String @unique\n"),
    "card": ("Paper { pos", "Paper @card(0..9) { pos"),
    "unique pair of ends": ("Paper { pos: I32? }", "Paper { pos: I32?  @unique(src, dst) }"),
}


@pytest.mark.parametrize("rule", RULES_NO_ROW_BREAKS)
def test_a_rule_that_no_row_breaks_counts_no_rows(library: og.Graph, rule: str) -> None:
    assert effects(library, RULES_NO_ROW_BREAKS[rule]) == [("metadata only", 0, ())]


def test_a_rule_for_a_type_without_rows_counts_no_rows(tmp_path: Path) -> None:
    schema = "node P { name: String  mail: String? }\nedge K: P -> P"
    graph = og.init(tmp_path / "graph", schema=schema)

    for old, new in (
        ("name: String", "name: String @key"),
        ("mail: String?", "mail: String? @unique"),
        ("K: P -> P", "K: P -> P @card(0..1)"),
        ("K: P -> P", "K: P -> P { @unique(src, dst) }"),
    ):
        plan = graph.plan_schema(schema.replace(old, new))

        assert [(each.rows, each.samples) for each in plan.effects] == [(0, ())]


def test_nodes_get_a_key_only_when_it_is_their_id_already(tmp_path: Path) -> None:
    """Edges name nodes by id, so a new key must not change one."""
    graph = og.init(tmp_path / "graph", schema="node P { name: String }")
    graph.load([{"type": "P", "data": {"name": n, "id": n}} for n in "ab"], mode="append")
    keyed = "node P { name: String @key }"
    assert [each.effect.value for each in graph.plan_schema(keyed).effects] == ["metadata only"]

    graph.load([{"type": "P", "data": {"name": "c", "id": "other"}}], mode="append")
    plan = graph.plan_schema(keyed)

    assert [(each.rows, each.samples) for each in plan.effects] == [(1, ("other",))]
    assert not plan.supported
