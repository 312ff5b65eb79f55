"""Tags: a name for a commit, and what it keeps from being removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    CommitStateGone,
    ConflictError,
    StorageError,
    TagExists,
    TagNotFound,
)
from omnigraph.storage.counters import counting
from tests.branch.people import change, merged, new_people, state_of

pytestmark = pytest.mark.slow


@pytest.fixture
def people(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "graph")


def add(graph: og.Graph, *names: str, branch: str = "main") -> None:
    for name in names:
        change(graph, "person", branch, name=name, age=1)


def names(graph: og.Graph, revision: str) -> set[str]:
    found = graph.query("query q() { match { $p: Person } return { $p.name } }", branch=revision)
    return {row["p.name"] for row in found}


FIRST = {"alice", "bob", "carol", "dan"}


def test_a_tag_says_what_it_names_who_gave_it_and_why(people: og.Graph) -> None:
    made = people.tag("v1", message="as published", actor="ada")
    again = og.open(people.uri, durability="process")

    assert again.tags() == [made]
    head = people.commits()[0]
    assert (made.name, made.commit_id, made.branch) == ("v1", head.commit_id, "main")
    assert (made.actor, made.message) == ("ada", "as published")
    assert made.created_at >= head.created_at
    assert made.to_json()["commit_id"] == head.commit_id


def test_a_tag_stays_where_it_is_and_is_read_like_a_branch(people: og.Graph) -> None:
    people.tag("v1")
    add(people, "eve")

    assert names(people, "v1") == names(people, "tag:v1") == FIRST
    assert names(people, "main") == {*FIRST, "eve"}
    changes = people.diff("tag:v1", "main")
    assert [(each.op, each.id) for each in changes] == [("insert", "eve")]


def test_setting_a_tag_again_on_its_commit_changes_nothing_and_elsewhere_is_refused(
    people: og.Graph,
) -> None:
    made = people.tag("v1", message="first")
    assert people.tag("v1", message="second") == made
    add(people, "eve")

    with pytest.raises(TagExists, match="tag 'v1' already exists"):
        people.tag("v1")

    assert people.tags() == [made]
    people.delete_tag("v1")
    assert people.tag("v1").commit_id == people.commits()[0].commit_id


def test_a_tag_that_is_not_there_is_named_with_the_nearest_one(people: og.Graph) -> None:
    people.tag("release-1")

    with pytest.raises(TagNotFound, match="did you mean `release-1`"):
        people.delete_tag("relase-1")
    with pytest.raises(TagNotFound):
        people.query("query q() { match { $p: Person } return { $p.name } }", branch="tag:v9")


@pytest.mark.parametrize(
    "name",
    ["", "a b", "../up", "a/../b", "x.lock", "main", "__tags", "v1~2", "a@{1}", "tag:v", "é" * 101],
)
def test_a_hostile_name_is_refused(people: og.Graph, name: str) -> None:
    with pytest.raises(BadRequestError, match="tag"):
        people.tag(name)

    assert people.tags() == []


@pytest.mark.parametrize(
    "name", ["v1.0", "team/ada/before-merge", "日本", "a%2Fb".replace("%", "-")]
)
def test_a_name_of_any_script_and_depth_is_kept_as_it_is(people: og.Graph, name: str) -> None:
    people.tag(name)

    assert [tag.name for tag in og.open(people.uri, durability="process").tags()] == [name]
    assert names(people, f"tag:{name}") == FIRST


def test_cleanup_leaves_what_a_tag_names_until_the_tag_goes(people: og.Graph) -> None:
    add(people, "eve")
    people.tag("v1")
    tagged = state_of(people)
    add(people, "fay", "gus", "hal")
    other = people.commits()[1].commit_id

    people.cleanup(keep=1, confirm=True)

    fresh = og.open(people.uri, durability="process")
    assert state_of(fresh, "tag:v1") == tagged
    with pytest.raises(CommitStateGone):
        names(fresh, other)
    fresh.create_branch("fix", from_="v1")
    assert state_of(fresh, "fix") == tagged
    assert not fresh.verify().errors
    fresh.delete_branch("fix")
    commit = fresh.tags()[0].commit_id
    fresh.delete_tag("v1")
    fresh.cleanup(keep=1, confirm=True)
    with pytest.raises(CommitStateGone):
        names(og.open(people.uri, durability="process"), commit)


def test_a_tag_outlives_the_branch_its_commit_was_made_on(people: og.Graph) -> None:
    people.create_branch("review")
    add(people, "eve", branch="review")
    people.tag("reviewed", at="review")
    tagged = state_of(people, "review")
    add(people, "fay")
    merged(people, "review")
    people.delete_branch("review")
    people.cleanup(keep=1, confirm=True)

    fresh = og.open(people.uri, durability="process")
    assert state_of(fresh, "reviewed") == tagged
    assert fresh.commit("reviewed").branch == "review"
    # A new branch of that name forks the same tables and does not touch the tagged rows.
    fresh.create_branch("review")
    add(fresh, "gus", branch="review")
    assert state_of(fresh, "tag:reviewed") == tagged
    with pytest.raises(ConflictError, match="no branch can start at commit"):
        fresh.create_branch("again", from_="reviewed")
    assert fresh.branches() == ["main", "review"]


def test_a_tag_of_a_branch_that_was_never_merged_survives_its_deletion(people: og.Graph) -> None:
    people.create_branch("try")
    add(people, "eve", branch="try")
    people.tag("tried", at="try")
    tagged = state_of(people, "try")

    people.delete_branch("try")
    people.cleanup(keep=1, confirm=True)

    fresh = og.open(people.uri, durability="process")
    assert state_of(fresh, "tried") == tagged
    assert [(each.op, each.id) for each in fresh.diff("main", "tried")] == [("insert", "eve")]


def test_a_tag_goes_along_when_the_graph_is_moved(people: og.Graph, tmp_path: Path) -> None:
    people.tag("v1")
    add(people, "eve")
    people.close()
    shutil.move(tmp_path / "graph", tmp_path / "moved")

    moved = og.open(tmp_path / "moved", durability="process")

    assert names(moved, "v1") == FIRST


def test_a_damaged_tag_stops_cleanup_is_reported_and_can_be_deleted(people: og.Graph) -> None:
    people.tag("v1")
    add(people, "eve", "fay")
    file = Path(people.uri) / "__tags" / "v1.json"
    file.write_text(file.read_text().replace("Person", "Parson"))

    with pytest.raises(StorageError, match="delete the tag 'v1'"):
        people.cleanup(keep=1, confirm=True)

    assert any("__tags/v1.json" in str(each) for each in people.verify().findings)
    people.delete_tag("v1")
    assert people.cleanup(keep=1, confirm=True).tables


NOTES = "node Person { name: String @key } node Note { text: String @key }"
NO_NOTES = "node Person { name: String @key }"


@pytest.fixture
def noted(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g", schema=NOTES, durability="process")
    graph.load([{"type": "Note", "data": {"text": "hello"}}], mode="append")
    graph.tag("with-notes")
    return graph


def test_a_tagged_state_keeps_a_type_that_was_dropped_since(noted: og.Graph) -> None:
    noted.apply_schema(NO_NOTES)
    noted.cleanup(keep=1, confirm=True)

    fresh = og.open(noted.uri, durability="process")
    ask = "query q() { match { $n: Note } return { $n.text } }"
    assert fresh.query(ask, branch="with-notes").rows() == [{"n.text": "hello"}]
    fresh.create_branch("old", from_="with-notes")
    assert fresh.query(ask, branch="old").rows() == [{"n.text": "hello"}]
    assert fresh.branch_schema("old") == NOTES


def test_what_a_tag_keeps_is_not_removed_for_good_while_it_is_there(noted: og.Graph) -> None:
    with pytest.raises(ConflictError, match="the tag 'with-notes' keeps rows of 'node:Note'"):
        noted.apply_schema(NO_NOTES, allow_data_loss=True)

    assert noted.schema == NOTES
    noted.delete_tag("with-notes")
    assert noted.apply_schema(NO_NOTES, allow_data_loss=True).applied


def test_a_reader_cannot_tag(people: og.Graph) -> None:
    reader = og.open(people.uri, mode="r")

    with pytest.raises(BadRequestError, match="reading only"):
        reader.tag("v1")
    with pytest.raises(BadRequestError, match="reading only"):
        reader.delete_tag("v1")


def test_a_tag_and_a_branch_at_a_commit_sync_as_few_files_at_any_size(tmp_path: Path) -> None:
    """A tag is a file; a branch is a mark that comes and goes, a version, its hint and a ref.

    Directories above that were new a moment ago are synced once more, which are two. A tag waits
    for its text and for its name, a branch for its mark and for all that it is.
    """
    syncs, waits, opens = [], [], []
    for size in (1, 5_000):
        graph = og.init(
            tmp_path / str(size), schema="node Person { name: String @key }", self_care=False
        )
        people = [{"type": "Person", "data": {"name": f"p{n}"}} for n in range(size)]
        graph.load(people, mode="append")
        graph.load([{"type": "Person", "data": {"name": "later"}}], mode="append")
        for name in ("warm-1", "warm-2"):
            graph.create_branch(name, "main~1")
            graph.tag(name, "main~1")
        with counting() as tagging:
            graph.tag("v1", "main~1")
        with counting() as branching:
            graph.create_branch("b", "main~1")
        syncs.append((tagging.fsyncs, branching.fsyncs))
        waits.append((tagging.sync_waits, branching.sync_waits))
        opens.append((tagging.opens, branching.opens))
        graph.close()

    assert {tagged for tagged, _ in syncs} == {2}
    assert {branched for _, branched in syncs} <= {11, 12, 13}
    assert waits == [(2, 2)] * 2
    assert opens == [(0, 1)] * 2


@pytest.mark.parametrize("name", ["x" * 201, "a.lock", "a..b"])
def test_a_refused_name_is_told_every_rule(people: og.Graph, name: str) -> None:
    with pytest.raises(BadRequestError, match=r"at most 200 bytes, without '\.\.' and '\.lock'"):
        people.tag(name)
