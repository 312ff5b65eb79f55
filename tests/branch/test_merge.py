"""Merge: what it does, what it costs, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.branch.apply import apply_merge
from omnigraph.branch.choices import Side
from omnigraph.branch.descent import open_entry
from omnigraph.branch.merge import MergeOutcome
from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    ExpectedVersionMismatch,
    MergeConflicts,
)
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import IndexKind, IndexSpec
from omnigraph.testing.inside import inside
from tests.branch.bulk import write_bulk
from tests.branch.people import change, merged, new_people, previewed, state_of
from tests.graph.reading import heads, pins, sidecars

pytestmark = pytest.mark.slow


@pytest.fixture
def people(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "graph")


def diverge(graph: og.Graph) -> None:
    """Both sides change Alice, each in its own way; each side also does something of its own."""
    graph.create_branch("review")
    change(graph, "age", "review", name="alice", age=31)
    change(graph, "person", "review", name="eve", age=1)
    change(graph, "age", name="alice", age=32)
    change(graph, "person", name="fay", age=2)


# Outcomes and lineage


@pytest.mark.accepts("S-163")
def test_a_merge_is_one_publish_and_one_commit_with_two_parents(people: og.Graph) -> None:
    people.create_branch("review")
    change(people, "person", "review", name="eve", age=1)
    change(people, "knows", "review", a="eve", b="bob")
    change(people, "person", name="fay", age=2)
    version = people.snapshot().manifest_version
    parent, merged_parent = people.commits()[0], people.commits("review")[0]

    with counting() as counters:
        result = merged(people, "review", actor="ada")

    assert result.outcome is MergeOutcome.MERGED
    assert counters.control_merges == 1
    assert people.snapshot().manifest_version == version + 1
    made = people.commits()[0]
    assert made.commit_id == result.commit_id
    assert (made.parent_id, made.merged_parent_id) == (parent.commit_id, merged_parent.commit_id)
    assert made.actor == "ada"
    assert made.properties["merged_from"] == "review"
    counts = {
        key: (each.inserted, each.updated, each.deleted) for key, each in result.tables.items()
    }
    assert counts == {"edge:Knows": (1, 0, 0), "node:Person": (1, 0, 0)}
    assert heads(people) == pins(people)
    assert sidecars(people) == []


def test_a_branch_that_did_nothing_is_up_to_date_and_nothing_is_written(people: og.Graph) -> None:
    people.create_branch("review")
    version = people.snapshot().manifest_version

    result = merged(people, "review")

    assert (result.outcome, result.commit_id) == (MergeOutcome.ALREADY_UP_TO_DATE, None)
    assert people.snapshot().manifest_version == version


def test_a_second_merge_starts_from_the_first(people: og.Graph) -> None:
    """What was merged once is not merged again, even when the target has changed it since."""
    people.create_branch("review")
    change(people, "age", "review", name="alice", age=31)
    merged(people, "review")
    change(people, "age", name="alice", age=60)
    change(people, "age", "review", name="bob", age=26)

    assert merged(people, "review").outcome is MergeOutcome.MERGED
    assert {k: v["age"] for k, v in state_of(people)["node:Person"].items()} == {
        "alice": 60,
        "bob": 26,
        "carol": 40,
        "dan": 50,
    }


def test_criss_cross_merges_find_a_base(people: og.Graph) -> None:
    people.create_branch("a")
    people.create_branch("b")
    change(people, "age", "a", name="alice", age=31)
    change(people, "age", "b", name="bob", age=26)
    people.create_branch("a-first", "a")
    merged(people, "b", "a")
    merged(people, "a-first", "b")
    change(people, "age", "a", name="carol", age=41)

    assert merged(people, "a", "b").outcome is MergeOutcome.MERGED
    assert state_of(people, "a") == state_of(people, "b")


def test_siblings_that_took_over_the_same_branch_know_it(people: og.Graph) -> None:
    """The base is a commit that neither side's own branch has a row of."""
    for name in ("common", "one", "two"):
        people.create_branch(name)
    change(people, "age", "common", name="alice", age=31)
    merged(people, "common", "one")
    merged(people, "common", "two")
    change(people, "age", "one", name="alice", age=70)

    merged(people, "one", "two")

    assert state_of(people, "two")["node:Person"]["alice"]["age"] == 70


def test_a_branch_of_a_branch_merges_into_its_parent_and_on(people: og.Graph) -> None:
    people.create_branch("parent")
    change(people, "person", "parent", name="eve", age=1)
    people.create_branch("child", "parent")
    change(people, "gone", "child", name="eve")
    change(people, "person", "child", name="gil", age=3)

    assert merged(people, "child", "parent").outcome is MergeOutcome.FAST_FORWARD
    assert merged(people, "parent").outcome is MergeOutcome.FAST_FORWARD
    assert sorted(state_of(people)["node:Person"]) == ["alice", "bob", "carol", "dan", "gil"]


def test_content_that_came_back_is_recorded_but_moves_no_table(people: og.Graph) -> None:
    people.create_branch("review")
    change(people, "age", "review", name="alice", age=99)
    change(people, "age", "review", name="alice", age=30)
    before = pins(people)

    result = merged(people, "review")

    assert (result.outcome, result.tables) == (MergeOutcome.FAST_FORWARD, {})
    assert pins(people) == before
    assert merged(people, "review").outcome is MergeOutcome.ALREADY_UP_TO_DATE


def test_a_branch_cannot_be_merged_into_itself_or_from_nowhere(people: og.Graph) -> None:
    with pytest.raises(BadRequestError, match="into itself"):
        people.merge("main", "main")
    with pytest.raises(BranchNotFound):
        people.merge("nowhere")
    with pytest.raises(BranchNotFound):
        people.merge("main", "nowhere")


# How tables are taken over


def test_a_branch_that_does_not_own_a_table_is_pointed_at_mains(people: og.Graph) -> None:
    people.create_branch("review")
    change(people, "person", name="eve", age=1)

    with counting() as counters:
        merged(people, "main", "review")

    entry, main = people.snapshot("review").entries["node:Person"], people.snapshot()
    assert entry == main.entries["node:Person"]
    assert (counters.commits, counters.forks, sum(counters.stages.values())) == (0, 0, 0)


def test_a_branch_that_does_not_own_a_table_forks_it_from_another_branch(people: og.Graph) -> None:
    people.create_branch("review")
    people.create_branch("other")
    change(people, "person", "other", name="eve", age=1)

    with counting() as counters:
        merged(people, "other", "review")

    assert people.snapshot("review").entries["node:Person"].table_branch == "review"
    assert (counters.forks, counters.commits, sum(counters.stages.values())) == (1, 0, 0)
    change(people, "person", "review", name="fay", age=2)
    assert "eve" in state_of(people, "review")["node:Person"]
    assert "fay" not in state_of(people, "other")["node:Person"]


def test_a_branch_keeps_its_own_lineage_when_main_comes_back_to_it(people: og.Graph) -> None:
    """Its version numbers may be ahead of main's; its history stays readable."""
    people.create_branch("review")
    for age in range(1, 6):
        change(people, "age", "review", name="alice", age=age)
    old = people.snapshot("review").manifest_version
    merged(people, "review")
    change(people, "age", name="bob", age=77)

    assert merged(people, "main", "review").outcome is MergeOutcome.FAST_FORWARD
    assert people.snapshot("review").entries["node:Person"].table_branch == "review"
    assert state_of(people, "review") == state_of(people)
    assert people.entity_at("node:Person", "bob", old, branch="review") == {
        "id": "bob",
        "age": 25,
        "email": None,
        "name": "bob",
    }


def test_the_source_can_be_deleted_with_the_merge(people: og.Graph) -> None:
    people.create_branch("review")
    change(people, "person", "review", name="eve", age=1)
    expected = state_of(people, "review")

    result = merged(people, "review", delete_branch=True)

    assert (result.branch_deleted, result.branch_delete_error) == (True, None)
    assert people.branches() == ["main"]
    assert state_of(people) == expected


def test_a_source_that_cannot_be_deleted_does_not_undo_the_merge(people: og.Graph) -> None:
    people.create_branch("review")
    people.create_branch("child", "review")
    change(people, "person", "review", name="eve", age=1)

    result = merged(people, "review", delete_branch=True)

    assert result.outcome is MergeOutcome.FAST_FORWARD
    assert result.branch_deleted is False
    assert "came from it" in str(result.branch_delete_error)
    assert "branch_delete_error" in result.to_json()


# What it costs


@pytest.mark.accepts("S-154")
def test_only_changed_rows_are_replaced_new_ones_appended_gone_ones_deleted(
    people: og.Graph,
) -> None:
    people.create_branch("review")
    for number in range(5):
        change(people, "person", "review", name=f"new{number}", age=number)
    change(people, "age", "review", name="alice", age=31)
    change(people, "gone", "review", name="dan")

    with counting() as counters:
        merged(people, "review")

    assert dict(counters.stages) == {"append": 1, "update": 1, "delete": 1}
    assert (counters.stage_append_rows, counters.stage_update_rows) == (5, 1)


@pytest.mark.accepts("S-155", "S-157", "S-164")
def test_an_append_only_fast_forward_merges_nothing_and_compares_nothing(people: og.Graph) -> None:
    people.create_branch("review")
    for number in range(5):
        change(people, "person", "review", name=f"new{number}", age=number)

    with counting() as counters:
        merged(people, "review")

    assert dict(counters.stages) == {"append": 1}
    # No row is read to be compared: each is read once, to be appended.
    assert counters.rows_taken == 5
    assert counters.index_builds == 0


@pytest.mark.accepts("S-157")
def test_content_is_read_only_where_both_sides_have_the_row(people: og.Graph) -> None:
    people.create_branch("review")
    change(people, "age", "review", name="alice", age=31)
    change(people, "gone", "review", name="dan")
    change(people, "person", "review", name="eve", age=1)

    with counting() as counters:
        changes = people.diff("main", "review")

    # Alice on both sides, and the id of the row that is gone.
    assert (len(changes), counters.rows_taken) == (3, 3)


@pytest.mark.accepts("S-153", "S-155")
def test_wide_vectors_are_merged_within_a_gigabyte(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.branch.merge_memory",
        str(tmp_path / "g"),
        "8000",
        "3072",
    ]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    found = json.loads(done.stdout)
    assert found["outcome"] == "fast_forward"
    assert (found["rows"], found["stages"], found["index_builds"]) == (8_000, {"append": 1}, 0)
    assert found["rss_after_mib"] < 1_024


@pytest.mark.accepts("S-158", "S-159", "S-164")
@pytest.mark.parametrize("is_rewrite", [False, True])
def test_a_fast_forward_builds_no_index_and_a_rewrite_continues_what_there_is(
    people: og.Graph, is_rewrite: bool
) -> None:
    def index(tables: Any, handle: Any) -> Any:
        staged = tables.indexes.stage_create(handle, [IndexSpec("name", IndexKind.BTREE)])
        return staged.transaction

    write_bulk(people, "node:Person", index)
    people.create_branch("review")
    change(people, "person", "review", name="eve", age=1)
    if is_rewrite:
        change(people, "person", name="fay", age=1)
        before = list_uncovered(people)
        assert before == 1

    with counting() as counters:
        merged(people, "review")

    assert counters.index_builds == (1 if is_rewrite else 0)
    assert list_uncovered(people) == (0 if is_rewrite else 1)
    found = people.query('query q() { match { $p: Person { name: "eve" } } return { $p.age } }')
    assert found.rows() == [{"p.age": 1}]


def list_uncovered(graph: og.Graph) -> int:
    """Rows that the index on names does not cover."""
    tables = inside(graph).store.tables
    handle = open_entry(tables, graph.snapshot().entries["node:Person"])
    (info,) = tables.indexes.describe(handle)
    return info.rows_unindexed


# Values


VALUES = """
node Thing {
    key: String @key
    text: String?
    number: F64?
    numbers: [I64]?
    vector: Vector(2)?
    day: Date?
    moment: DateTime?
    data: Blob?
}
"""


def things(path: Path, **data: Any) -> og.Graph:
    graph = og.init(path, schema=VALUES, durability="process")
    graph.load([{"type": "Thing", "data": {"key": "t", **data}}], mode="append")
    return graph


@pytest.mark.accepts("S-156")
@pytest.mark.parametrize("is_rewrite", [False, True])
def test_blobs_and_every_type_survive_a_merge(tmp_path: Path, is_rewrite: bool) -> None:
    graph = things(tmp_path / "graph", data="base64:b2xk")
    graph.create_branch("b")
    full = {
        "text": "",
        "number": -0.0,
        "numbers": [1, 3],
        "vector": [0.5, -1.5],
        "day": "2026-04-14",
        "moment": "2026-04-14T09:30:00.125Z",
        "data": "base64:bmV3",
    }
    records = [
        {"type": "Thing", "data": {"key": "t", **full}},
        {"type": "Thing", "data": {"key": "u", **full}},
        {"type": "Thing", "data": {"key": "empty"}},
    ]
    graph.load(records, mode="merge", branch="b")
    if is_rewrite:
        graph.load([{"type": "Thing", "data": {"key": "other"}}], mode="append")

    merged(graph, "b")

    found = state_of(graph)["node:Thing"]
    assert {key: found[key] for key in ("t", "u", "empty")} == state_of(graph, "b")["node:Thing"]
    assert {name: found["u"][name] for name in full} == full
    assert found["empty"]["data"] is None


UNEQUAL = [
    ("text", None, ""),
    ("text", "a\x1fb", "a"),
    ("number", 0.0, -0.0),
    ("numbers", [], None),
    ("numbers", [1], [1, 1]),
    ("numbers", [1, 2], [2, 1]),
    ("vector", [0.0, 1.0], [-0.0, 1.0]),
    ("data", None, "base64:"),
    ("data", "base64:YQ==", "base64:Yg=="),
    ("moment", "2026-04-14T00:00:00.001Z", "2026-04-14T00:00:00.002Z"),
]


@pytest.mark.parametrize(("name", "one", "other"), UNEQUAL)
def test_values_that_are_not_the_same_are_a_change(
    tmp_path: Path, name: str, one: Any, other: Any
) -> None:
    graph = things(tmp_path / "graph", **{name: one})
    graph.create_branch("b")
    graph.load([{"type": "Thing", "data": {"key": "t", name: other}}], mode="merge", branch="b")

    (found,) = graph.diff("main", "b")

    assert found.properties == [name]


# Conflicts


def test_every_conflict_is_listed_with_its_three_sides(people: og.Graph) -> None:
    diverge(people)
    change(people, "gone", "review", name="dan")
    change(people, "age", name="dan", age=51)
    before = state_of(people)

    with pytest.raises(MergeConflicts) as raised:
        people.merge("review")

    assert [each.to_json() for each in raised.value.conflicts] == [
        {
            "table_key": "node:Person",
            "row_id": "alice",
            "kind": "divergent_update",
            "message": "Person 'alice': changed on both sides, with different age",
            "base": {"age": 30},
            "ours": {"age": 32},
            "theirs": {"age": 31},
        },
        {
            "table_key": "node:Person",
            "row_id": "dan",
            "kind": "delete_vs_update",
            "message": "Person 'dan': deleted in the source, changed in the target",
            "base": {"age": 50},
            "ours": {"age": 51},
            "theirs": None,
        },
    ]
    assert str(raised.value) == (
        "merge conflicts: node:Person 'alice' divergent_update; node:Person 'dan' delete_vs_update"
    )
    assert raised.value.http_status == 409
    assert state_of(people) == before
    assert heads(people) == pins(people)


def test_a_long_list_of_conflicts_is_shortened_in_the_text_only(people: og.Graph) -> None:
    people.create_branch("review")
    for name in ("alice", "bob", "carol", "dan"):
        change(people, "age", "review", name=name, age=1)
        change(people, "age", name=name, age=2)

    with pytest.raises(MergeConflicts, match=r"; and 1 more") as raised:
        people.merge("review")

    assert len(raised.value.conflicts) == 4


def test_a_composite_unique_that_only_the_combination_breaks_is_found(tmp_path: Path) -> None:
    schema = "node Seat { key: String @key  row: I32?  place: I32?  @unique(row, place) }"
    graph = og.init(tmp_path / "graph", schema=schema, durability="process")
    graph.load([{"type": "Seat", "data": {"key": "a", "row": 1, "place": 1}}], mode="append")
    graph.create_branch("b")
    for branch, key in (("b", "x"), ("main", "y")):
        record = {"type": "Seat", "data": {"key": key, "row": 2, "place": 7}}
        graph.load([record], mode="append", branch=branch)

    with pytest.raises(MergeConflicts) as raised:
        graph.merge("b")

    (conflict,) = raised.value.conflicts
    assert (conflict.kind, conflict.row_id) == ("unique_violation", "x")
    assert "'y' has it" in conflict.message
    merged(graph, "b", resolve="ours")
    assert sorted(state_of(graph)["node:Seat"]) == ["a", "y"]


def test_a_row_of_the_source_that_breaks_a_value_rule_is_a_conflict(people: og.Graph) -> None:
    """No write lets one in, so it is brought in behind their back. Only `ours` can resolve it."""
    people.create_branch("b")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.graph.mutations.check_change", lambda _: None)
        change(people, "age", "b", name="alice", age=151)
    change(people, "age", name="bob", age=26)

    with pytest.raises(MergeConflicts) as raised:
        people.merge("b", resolve="theirs")

    (conflict,) = raised.value.conflicts
    assert (conflict.kind, conflict.row_id) == ("value_constraint_violation", "alice")
    assert conflict.message == "@range violation on Person.age"
    merged(people, "b", resolve="ours")
    ages = {name: row["age"] for name, row in state_of(people)["node:Person"].items()}
    assert (ages["alice"], ages["bob"]) == (30, 26)


@pytest.mark.parametrize(("side", "holder"), [("ours", "bob"), ("theirs", "alice")])
def test_a_unique_value_goes_to_the_side_that_is_kept(
    people: og.Graph, side: Side, holder: str
) -> None:
    people.create_branch("b")
    change(people, "email", "b", name="alice", email="b@")
    change(people, "email", name="bob", email="b@")
    change(people, "email", "b", name="carol", email="b2@")
    change(people, "email", name="dan", email="main@")

    merged(people, "b", resolve=side)

    rows = state_of(people)["node:Person"]
    assert {name: row["email"] for name, row in rows.items()} == {
        "alice": None,
        "bob": None,
        "carol": "b2@",
        "dan": "main@",
        holder: "b@",
    }
    assert people.verify().errors == ()


@pytest.mark.parametrize(("side", "firm"), [("ours", "f1"), ("theirs", "f2")])
def test_edges_beyond_a_bound_are_those_of_the_side_that_is_kept(
    people: og.Graph, side: Side, firm: str
) -> None:
    people.create_branch("b")
    change(people, "works", "b", a="alice", b="f2")
    change(people, "works", "b", a="carol", b="f2")
    change(people, "works", a="alice", b="f1")

    with pytest.raises(MergeConflicts) as raised:
        people.merge("b")
    assert [each.kind for each in raised.value.conflicts] == ["cardinality_violation"]
    merged(people, "b", resolve=side)

    jobs = {row["src"]: row["dst"] for row in state_of(people)["edge:WorksAt"].values()}
    assert jobs == {"bob": "f1", "alice": firm, "carol": "f2"}
    assert people.verify().errors == ()


@pytest.mark.parametrize(("side", "left"), [("ours", "f2"), ("theirs", "f1")])
def test_edges_below_a_bound_are_those_of_the_side_that_is_kept(
    tmp_path: Path, side: Side, left: str
) -> None:
    schema = "node P { n: String @key }\nnode F { n: String @key }\nedge At: P -> F @card(1..2)"
    graph = og.init(tmp_path / "graph", schema=schema, durability="process")
    nodes: list[dict[str, object]] = [
        {"type": kind, "data": {"n": n}} for kind, n in (("P", "p"), ("F", "f1"), ("F", "f2"))
    ]
    edges: list[dict[str, object]] = [
        {"edge": "At", "from": "p", "to": to, "data": {}} for to in ("f1", "f2")
    ]
    graph.load([*nodes, *edges], mode="append")
    graph.create_branch("b")
    graph.mutate('query q() { delete At where to = "f1" }')
    graph.mutate('query q() { delete At where to = "f2" }', branch="b")

    with pytest.raises(MergeConflicts):
        graph.merge("b")
    merged(graph, "b", resolve=side)

    assert [row["dst"] for row in state_of(graph)["edge:At"].values()] == [left]
    assert graph.verify().errors == ()


# Preview and resolution


def test_a_preview_shows_everything_and_writes_nothing(people: og.Graph) -> None:
    diverge(people)
    version = people.snapshot().manifest_version

    with counting() as counters:
        seen = previewed(people, "review")

    assert seen.outcome is MergeOutcome.MERGED
    assert [(each.op.value, each.id) for each in seen.changes] == [("insert", "eve")]
    assert [each.row_id for each in seen.conflicts] == ["alice"]
    assert (counters.text_writes, counters.commits, counters.control_merges) == (0, 0, 0)
    assert people.snapshot().manifest_version == version
    assert json.loads(json.dumps(seen.to_json()))["outcome"] == "merged"


def test_a_preview_works_on_a_graph_that_is_open_for_reading(people: og.Graph) -> None:
    diverge(people)

    reader = og.open(people.uri, mode="r")

    assert len(previewed(reader, "review").conflicts) == 1
    with pytest.raises(BadRequestError, match="reading only"):
        reader.merge("review")


@pytest.mark.parametrize(
    ("resolution", "age"),
    [
        ("ours", 32),
        ("theirs", 31),
        ({"node:Person": "theirs"}, 31),
        ({"node:Person": {"alice": "ours"}}, 32),
        ([{"table_key": "node:Person", "row_id": "alice", "take": "theirs"}], 31),
    ],
)
def test_a_resolution_resolves_conflicts_and_the_commit_records_how(
    people: og.Graph, resolution: Any, age: int
) -> None:
    diverge(people)

    result = merged(people, "review", resolve=resolution)

    rows = state_of(people)["node:Person"]
    assert rows["alice"]["age"] == age
    assert {"eve", "fay"} <= rows.keys()
    (noted,) = people.commit(str(result.commit_id)).properties["resolved"]
    assert noted == {
        "table_key": "node:Person",
        "row_id": "alice",
        "kind": "divergent_update",
        "take": "ours" if age == 32 else "theirs",
    }
    assert merged(people, "review").outcome is MergeOutcome.ALREADY_UP_TO_DATE


def test_what_a_resolution_leaves_open_is_still_a_conflict(people: og.Graph) -> None:
    diverge(people)
    change(people, "age", "review", name="bob", age=1)
    change(people, "age", name="bob", age=2)

    with pytest.raises(MergeConflicts) as raised:
        people.merge("review", resolve={"node:Person": {"alice": "ours"}})

    assert [each.row_id for each in raised.value.conflicts] == ["bob"]


@pytest.mark.parametrize(
    "resolution", ["mine", {"node:Person": "mine"}, [{"row_id": "alice"}], [1], 7]
)
def test_a_resolution_in_no_known_form_is_refused(people: og.Graph, resolution: Any) -> None:
    diverge(people)

    with pytest.raises(BadRequestError, match=r"cannot resolve with|resolve is"):
        people.merge("review", resolve=resolution)


def test_a_choice_about_a_row_without_conflict_is_refused(people: og.Graph) -> None:
    diverge(people)

    with pytest.raises(BadRequestError, match="no conflict on node:Person 'alcie'"):
        people.merge("review", resolve={"node:Person": {"alcie": "ours", "alice": "ours"}})


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("deleter", ["review", "main"])
def test_an_orphaned_edge_is_resolved_by_keeping_the_edge_or_the_deletion(
    people: og.Graph, side: str, deleter: str
) -> None:
    people.create_branch("review")
    adder = "main" if deleter == "review" else "review"
    change(people, "gone", deleter, name="dan")
    change(people, "knows", adder, a="alice", b="dan")

    merged(people, "review", resolve=side)

    kept_by = "main" if side == "ours" else "review"
    state = state_of(people)
    has_edge = any(edge["dst"] == "dan" for edge in state["edge:Knows"].values())
    assert has_edge == ("dan" in state["node:Person"]) == (kept_by == adder)


def test_resolving_one_conflict_resolves_what_depends_on_it(people: og.Graph) -> None:
    """Theirs deleted Alice and ours changed her and gave her an edge: theirs takes both away."""
    people.create_branch("review")
    change(people, "gone", "review", name="alice")
    change(people, "age", name="alice", age=31)
    change(people, "knows", a="alice", b="bob")

    merged(people, "review", resolve="theirs")

    state = state_of(people)
    assert "alice" not in state["node:Person"]
    assert all(edge["src"] != "alice" for edge in state["edge:Knows"].values())


# Races


def test_a_target_that_moves_under_a_merge_makes_it_fail_without_effect(people: og.Graph) -> None:
    people.create_branch("review")
    change(people, "person", "review", name="eve", age=1)
    other = og.open(people.uri, durability="process")
    moved = threading.Event()

    def move() -> None:
        if not moved.is_set():
            moved.set()
            change(other, "person", name="fay", age=2)

    with pytest.raises(ExpectedVersionMismatch):
        plan_then_move(people, move)

    assert moved.is_set()
    assert sorted(state_of(people)["node:Person"]) == ["alice", "bob", "carol", "dan", "fay"]
    assert sidecars(people) == []
    assert merged(people, "review").outcome is MergeOutcome.MERGED


def plan_then_move(graph: og.Graph, move: Any) -> None:
    """Run a merge whose target is changed between its plan and its commit."""

    def late(environment: Any, request: Any) -> Any:
        move()
        return apply_merge(environment, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.branch.merge.apply_merge", late)
        merged(graph, "review")


def test_a_target_that_is_only_laid_out_anew_under_a_merge_does_not_make_it_fail(
    people: og.Graph,
) -> None:
    people.create_branch("review")
    change(people, "person", "review", name="eve", age=1)
    change(people, "person", name="fay", age=2)
    before = pins(people)["node:Person"]
    other = og.open(people.uri, durability="process")

    plan_then_move(people, other.optimize)

    assert pins(people)["node:Person"] > before + 1  # the new layout, and the merge
    assert sorted(state_of(people)["node:Person"]) == ["alice", "bob", "carol", "dan", "eve", "fay"]


def test_merges_of_many_branches_at_once_all_land_or_say_so(people: og.Graph) -> None:
    names = [f"b{number}" for number in range(4)]
    for name in names:
        people.create_branch(name)
        change(people, "person", name, name=name, age=1)
    lost: list[str] = []

    def run(name: str) -> None:
        graph = og.open(people.uri, durability="process")
        while True:
            try:
                graph.merge(name)
                return
            except ExpectedVersionMismatch:
                lost.append(name)

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(names) <= state_of(people)["node:Person"].keys()
    assert heads(people) == pins(people)


def test_rows_are_compared_by_id_where_the_descent_cannot_be_proved(
    people: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverge(people)
    change(people, "gone", "review", name="dan")
    expected = [each.to_json() for each in people.diff("main", "review")]

    monkeypatch.setattr("omnigraph.branch.descent.Descent.common_ancestor", lambda *_: None)

    assert [each.to_json() for each in people.diff("main", "review")] == expected
    merged(people, "review", resolve="theirs")
    assert sorted(state_of(people)["node:Person"]) == ["alice", "bob", "carol", "eve", "fay"]


def test_a_merge_of_rows_in_many_pieces_is_whole(people: og.Graph, monkeypatch: Any) -> None:
    """Batches of one row: every stream is cut into batches."""
    monkeypatch.setattr("omnigraph.branch.row_batches.BATCH_ROWS_MAX", 1)
    people.create_branch("review")
    for name in ("alice", "bob", "carol", "dan", "eve", "fay"):
        known = name in state_of(people)["node:Person"]
        change(people, "age" if known else "person", "review", name=name, age=1)

    with counting() as counters:
        merged(people, "review")

    assert dict(counters.stages) == {"append": 1, "update": 1}
    assert state_of(people) == state_of(people, "review")


@pytest.mark.accepts("S-155")
def test_an_append_holds_one_bounded_piece_of_the_delta_at_a_time(people: og.Graph) -> None:
    people.create_branch("review")
    for number in range(4):
        change(people, "person", "review", name=f"new{number}", age=number)
    held: list[int] = []
    take = inside(people).store.tables.reads.take_stream

    def watched(*args: Any, **kwargs: Any) -> Any:
        for batch in take(*args, **kwargs):
            held.append(batch.num_rows)
            yield batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inside(people).store.tables.reads, "take_stream", watched)
        patch.setattr("omnigraph.branch.row_batches.BATCH_ROWS_MAX", 1)
        merged(people, "review")

    assert held == [1, 1, 1, 1]
