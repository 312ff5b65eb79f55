"""Merges of branches in different schemas: schemas by identity, then rows under the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts, PolicyError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from tests.branch.test_branch_schemas import (
    EMAIL,
    NO_PLACE,
    PHONE,
    RENAMED,
    SCHEMA,
    WITH_PET,
    is_sound,
    new_graph,
    people,
    reopen,
    rows,
)
from tests.policy.test_direct_writes import ADA, only

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = new_graph(tmp_path)
    made.create_branch("x")
    return made


def add(
    graph: og.Graph, slug: str, branch: str = "main", type_: str = "Person", **more: Any
) -> None:
    name = "full_name" if type_ == "Human" else "name"
    facts = {"slug": slug, **({name: slug.title()} if type_ != "Place" else {}), **more}
    graph.load([{"type": type_, "data": facts}], mode="merge", branch=branch)


def refused(graph: og.Graph, source: str = "x", target: str = "main") -> list[tuple[str, str]]:
    """Kind and message of every conflict; a merge that is refused changes nothing."""
    before = graph.snapshot(target).manifest_version
    with pytest.raises(MergeConflicts) as error:
        graph.merge(source, target)
    assert graph.snapshot(target).manifest_version == before
    preview = graph.merge(source, target, preview=True)
    assert [each.message for each in preview.conflicts] == [
        each.message for each in error.value.conflicts
    ]
    is_sound(graph)
    return [(each.kind, each.message) for each in error.value.conflicts]


# One side changed its schema


@pytest.mark.parametrize("desired", [EMAIL, WITH_PET, NO_PLACE, RENAMED])
def test_a_fast_forward_carries_the_schema(graph: og.Graph, desired: str) -> None:
    graph.apply_schema(desired, branch="x")
    steps = graph.diff("main", "x").schema_steps
    preview = graph.merge("x", preview=True)

    result = graph.merge("x", actor="ada")

    assert result.outcome.value == "fast_forward"
    assert preview.changes.schema_steps == steps != ()
    for each in (graph, reopen(graph), reopen(graph, mode="r")):
        assert each.schema == each.branch_schema("x") == desired
        assert (len(each.diff("main", "x")), each.diff("main", "x").schema_steps) == (0, ())
    assert graph.merge("x").outcome.value == "already_up_to_date"
    graph.delete_branch("x")
    is_sound(reopen(graph))


@pytest.mark.parametrize("desired", [EMAIL, WITH_PET, NO_PLACE, RENAMED])
def test_a_branch_catches_up_with_main(graph: og.Graph, desired: str) -> None:
    """Rows that the branch wrote in the old schema are there in the new one; nothing is copied."""
    add(graph, "sam", "x")
    graph.apply_schema(desired)

    assert graph.merge("main", "x").outcome.value == "merged"

    type_ = "Human" if desired is RENAMED else "Person"
    assert graph.branch_schema("x") == desired
    assert [row["slug"] for row in rows(graph, type_, "x")] == ["ada", "lin", "sam"]
    assert graph.merge("x").outcome.value == "fast_forward"
    assert rows(graph, type_) == rows(graph, type_, "x")
    is_sound(reopen(graph))


def test_rows_of_a_branch_follow_a_rename_on_main(graph: og.Graph) -> None:
    graph.apply_schema(RENAMED)
    graph.mutate(
        'query q() { update Person set { name: "Ada L." } where slug = "ada" }', branch="x"
    )
    add(graph, "sam", "x")

    graph.merge("x")

    assert [row["full_name"] for row in rows(graph, "Human")] == ["Ada L.", "Lin", "Sam"]
    assert graph.branch_schema("x") == SCHEMA
    is_sound(graph)


def test_defaults_and_backfills_reach_the_rows_of_the_other_side(graph: og.Graph) -> None:
    """A row that only got a default has not changed: what the other side did to it is taken."""
    desired = SCHEMA.replace(
        "    age: I32?\n",
        "    age: I32?\n    level: I32 @default(1)\n    label: String @backfill(name)\n",
    )
    graph.apply_schema(desired, branch="x")
    graph.mutate('query q() { update Person set { level: 5 } where slug = "lin" }', branch="x")
    graph.mutate('query q() { update Person set { age: 40 } where slug = "ada" }')
    add(graph, "kim")

    graph.merge("x")

    assert [(r["slug"], r["age"], r["level"], r["label"]) for r in people(graph)] == [
        ("ada", 40, 1, "Ada"),
        ("kim", None, 1, "Kim"),
        ("lin", None, 5, "Lin"),
    ]
    is_sound(graph)


def test_rows_that_the_new_rule_does_not_allow_are_a_conflict(graph: og.Graph) -> None:
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32? @unique"), branch="x")
    add(graph, "kim", age=36)

    [(kind, message)] = refused(graph)

    assert kind == "rows_do_not_fit"
    assert "@unique" in message
    graph.mutate('query q() { update Person set { age: 37 } where slug = "kim" }')
    graph.merge("x")
    is_sound(graph)


def test_a_narrower_type_that_does_not_hold_the_values_is_a_conflict(tmp_path: Path) -> None:
    wide = SCHEMA.replace("age: I32?", "age: I64?")
    graph = og.init(tmp_path / "g", schema=wide, durability="process", self_care=False)
    add(graph, "ada", age=1)
    graph.create_branch("x")
    graph.apply_schema(SCHEMA, branch="x")
    add(graph, "big", age=2**40)

    [(kind, message)] = refused(graph)

    assert kind == "rows_do_not_fit"
    assert "'big'" in message
    graph.apply_schema(wide, branch="x")
    graph.merge("x")
    assert [row["age"] for row in people(graph)] == [1, 2**40]


# Both sides changed it


def test_different_changes_are_joined(graph: og.Graph) -> None:
    graph.apply_schema(PHONE + "node Pet {\n    slug: String @key\n}\n", branch="x")
    graph.apply_schema(EMAIL.replace("name: String", 'title: String @rename_from("name")'))
    graph.load([{"type": "Pet", "data": {"slug": "rex"}}], mode="append", branch="x")
    add(graph, "sam", "x", phone="1")
    graph.load(
        [{"type": "Person", "data": {"slug": "kim", "title": "Kim", "email": "e"}}], mode="append"
    )

    graph.merge("x")

    found = [(r["slug"], r["title"], r["email"], r["phone"]) for r in people(graph)]
    assert found == [
        ("ada", "Ada", None, None),
        ("kim", "Kim", "e", None),
        ("lin", "Lin", None, None),
        ("sam", "Sam", None, "1"),
    ]
    assert [row["slug"] for row in rows(graph, "Pet")] == ["rex"]
    assert graph.merge("main", "x").outcome.value == "fast_forward"
    assert people(graph, "x") == people(graph)
    assert [each.op.value for each in graph.history("Person", "sam")] == ["insert"]
    is_sound(reopen(graph))


def test_what_both_added_alike_is_one(graph: og.Graph) -> None:
    """And it stays one: later merges know both identities."""
    desired = WITH_PET.replace("    age: I32?\n", "    age: I32?\n    email: String?\n")
    for branch in ("main", "x"):
        graph.apply_schema(desired, branch=branch)
        graph.load([{"type": "Pet", "data": {"slug": branch}}], mode="append", branch=branch)
        add(graph, f"of-{branch}", branch, email=branch)

    graph.merge("x")
    graph.mutate('query q() { update Person set { email: "new" } where slug = "of-x" }', branch="x")
    graph.mutate('query q() { update Pet set { kind: "cat" } where slug = "x" }', branch="x")
    graph.merge("x")

    assert {r["slug"]: r["email"] for r in people(graph)} == {
        "ada": None,
        "lin": None,
        "of-main": "main",
        "of-x": "new",
    }
    assert {r["slug"]: r["kind"] for r in rows(graph, "Pet")} == {"main": None, "x": "cat"}
    assert graph.diff("main", "x").schema_steps == ()
    assert graph.merge("main", "x").outcome.value == "fast_forward"
    assert rows(graph, "Pet", "x") == rows(graph, "Pet")
    assert graph.blame("Person", "of-x")["email"].value == "new"
    is_sound(reopen(graph))


@pytest.mark.parametrize(
    ("ours", "theirs", "named"),
    [
        (
            EMAIL,
            EMAIL.replace("email: String?", "email: I32?"),
            "node:Person.email was added on both",
        ),
        (
            SCHEMA.replace("name: String", 'title: String @rename_from("name")'),
            SCHEMA.replace("name: String", 'label: String @rename_from("name")'),
            "the name of node:Person.title was changed on both sides",
        ),
        (NO_PLACE, SCHEMA + "edge Lives: Person -> Place\n", "edge Lives ends at node Place"),
        (
            SCHEMA.replace("    age: I32?\n", ""),
            SCHEMA.replace("age: I32?", "age: I64?"),
            "property node:Person.age was dropped in the target and changed in the source",
        ),
    ],
)
def test_changes_that_contradict_each_other_are_conflicts(
    graph: og.Graph, ours: str, theirs: str, named: str
) -> None:
    graph.apply_schema(ours)
    graph.apply_schema(theirs, branch="x")

    found = refused(graph)

    assert [kind for kind, _ in found] == ["divergent_schema"] * len(found)
    assert any(named in message for _, message in found), found


@pytest.mark.parametrize("is_fast_forward", [True, False])
def test_names_that_change_hands_are_no_contradiction(
    graph: og.Graph, is_fast_forward: bool
) -> None:
    spot = SCHEMA.replace("node Place {", 'node Spot @rename_from("Place") {')
    graph.apply_schema(spot, branch="x")
    moved = spot.replace("node Person {", 'node Place @rename_from("Person") {')
    graph.apply_schema(moved.replace("Person -> Person", "Place -> Place"), branch="x")
    if not is_fast_forward:
        graph.apply_schema(SCHEMA.replace("age: I32?", "age: I64?"))
        add(graph, "kim", age=2**40)

    graph.merge("x")

    others = [] if is_fast_forward else ["kim"]
    for each in (graph, reopen(graph)):
        assert [row["slug"] for row in rows(each, "Place")] == sorted(["ada", "lin", *others])
        assert [row["slug"] for row in rows(each, "Spot")] == ["rome"]
        is_sound(each)
    graph.cleanup(keep=1, confirm=True)
    is_sound(reopen(graph))


def test_a_name_that_is_used_again_is_another_type(graph: og.Graph) -> None:
    """Dropped and added again on the branch: the rows that main has are of the first one."""
    graph.apply_schema(NO_PLACE, branch="x")
    graph.apply_schema(SCHEMA, branch="x")
    add(graph, "oslo", "x", type_="Place")

    graph.merge("x")

    for each in (graph, reopen(graph)):
        assert [row["slug"] for row in rows(each, "Place")] == ["oslo"]
        is_sound(each)


@pytest.mark.parametrize("who", ["main", "x"])
def test_dropping_what_the_other_side_used_is_a_conflict_that_names_both(
    graph: og.Graph, who: str
) -> None:
    other = "x" if who == "main" else "main"
    graph.apply_schema(NO_PLACE.replace("    age: I32?\n", ""), branch=who)
    add(graph, "oslo", other, type_="Place")
    add(graph, "sam", other, age=5)

    found = refused(graph)

    assert [kind for kind, _ in found] == ["drop_vs_use", "drop_vs_use"]
    assert "property age of node Person is dropped on the other side" in found[0][1]
    assert f"branch '{other}' has written 1 row of it" in found[1][1]
    graph.apply_schema(NO_PLACE.replace("    age: I32?\n", ""), branch=other)
    graph.merge("x")
    assert [row["slug"] for row in people(graph)] == ["ada", "lin", "sam"]
    is_sound(reopen(graph))


def test_dropping_what_the_other_side_left_alone_is_taken(graph: og.Graph) -> None:
    graph.apply_schema(NO_PLACE)
    add(graph, "sam", "x")

    graph.merge("x")

    assert graph.schema == NO_PLACE
    assert len(people(graph)) == 3
    is_sound(graph)


def test_row_conflicts_are_resolved_under_the_merged_schema(graph: og.Graph) -> None:
    graph.apply_schema(RENAMED)
    graph.apply_schema(PHONE, branch="x")
    graph.mutate('query q() { update Human set { full_name: "A" } where slug = "ada" }')
    graph.mutate('query q() { update Person set { name: "B" } where slug = "ada" }', branch="x")

    [(kind, message)] = refused(graph)

    assert kind == "divergent_update"
    assert "full_name" in message
    graph.merge("x", resolve="theirs")
    assert [row["full_name"] for row in rows(graph, "Human")] == ["B", "Lin"]
    is_sound(graph)


# Merging goes on


def test_a_third_branch_is_merged_through(graph: og.Graph) -> None:
    """Its base is a commit of a branch that is gone, in a schema that no branch is in any more."""
    graph.apply_schema(EMAIL, branch="x")
    graph.create_branch("y", "x")
    graph.apply_schema(EMAIL + "node Pet {\n    slug: String @key\n}\n", branch="y")
    add(graph, "kim", "y", email="k")
    graph.merge("x")
    graph.apply_schema(EMAIL.replace("age: I32?", "age: I64?"))

    graph.merge("y")

    assert {r["slug"]: r["email"] for r in people(graph)} == {"ada": None, "kim": "k", "lin": None}
    assert "Pet" in graph.catalog.nodes
    graph.delete_branch("y")
    graph.delete_branch("x")
    graph.cleanup(keep=1, confirm=True)
    is_sound(reopen(graph))


@pytest.mark.parametrize(("ours", "theirs"), [(PHONE, EMAIL), (EMAIL, EMAIL)])
def test_merges_in_both_directions_at_once_are_merged(
    graph: og.Graph, ours: str, theirs: str
) -> None:
    """There are two bases, in two schemas; both sides have joined them already."""
    graph.apply_schema(ours)
    graph.apply_schema(theirs, branch="x")
    add(graph, "kim", age=1)
    add(graph, "sam", "x", email="e")
    graph.create_branch("then", "main")
    graph.merge("x")
    graph.merge("then", "x")
    update = "query q() {{ update Person set {{ {0} }} where slug = {1} }}"
    graph.mutate(update.format('email: "new"', '"sam"'), branch="x")
    graph.mutate(update.format("age: 2", '"kim"'))
    graph.mutate('query q() { delete Person where slug = "lin" }', branch="x")

    graph.merge("x")

    found = [(row["slug"], row["age"], row["email"]) for row in people(graph)]
    assert found == [("ada", 36, None), ("kim", 2, None), ("sam", None, "new")]
    graph.merge("main", "x")
    assert people(graph, "x") == people(graph)
    is_sound(reopen(graph))


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_schema_files_that_lag_behind_a_merge_are_brought_up(graph: og.Graph, moved: int) -> None:
    """The merge dies after its publish, with none, one or two of its files in place."""
    graph.apply_schema(EMAIL, branch="x")
    other = reopen(graph)
    point, nth = Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT, "raise"
    if moved:
        point, nth = Failpoint.SCHEMA_APPLY_AFTER_FILE_PROMOTED, f"raise@{moved}"
    with arm_failpoints({point: nth}), pytest.raises(FailpointError):
        graph.merge("x")

    reader = reopen(graph, mode="r")
    assert reader.schema == EMAIL
    assert "email" in people(reader)[0]
    assert "email" in people(other)[0]
    assert other.schema == EMAIL
    again = reopen(graph)
    assert (Path(graph.uri) / "_schema.pg").read_text() == EMAIL
    assert not list(Path(graph.uri).glob("*.staging"))
    is_sound(again)


def test_a_merge_that_changes_the_schema_needs_the_permission_for_it(graph: og.Graph) -> None:
    add(graph, "sam", "x")
    limited = only("actions: [branch_merge, change]")
    guarded = reopen(graph, policy=limited, actor=ADA)
    guarded.merge("x")
    graph.apply_schema(EMAIL, branch="x")

    with pytest.raises(PolicyError, match="schema_apply"):
        guarded.merge("x")

    assert guarded.schema == SCHEMA
    allowed = only("actions: [branch_merge, schema_apply, change]")
    reopen(graph, policy=allowed, actor=ADA).merge("x")
    assert graph.schema == EMAIL
