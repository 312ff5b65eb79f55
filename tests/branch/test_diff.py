"""Diff and change feed: net, exact, filtered before the work, in a fixed order."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    CommitNotFound,
    NotFoundError,
    VersionNotFound,
)
from omnigraph.storage.counters import counting
from tests.branch.people import change, merged, new_people, state_of


@pytest.fixture
def people(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "graph")


def describe(changes: Any) -> list[tuple[str, str, str]]:
    return [(each.op.value, each.type_name, each.id) for each in changes]


def test_a_diff_has_every_entity_with_both_images_in_order(people: og.Graph) -> None:
    before = people.snapshot().manifest_version
    change(people, "person", name="eve", age=1)
    change(people, "age", name="alice", age=31)
    change(people, "gone", name="bob")

    found = list(people.diff(before, "main"))

    nodes = [each for each in found if each.kind == "node"]
    assert describe(nodes) == [
        ("update", "Person", "alice"),
        ("delete", "Person", "bob"),
        ("insert", "Person", "eve"),
    ]
    alice, bob, eve = nodes
    assert (alice.before or {})["age"] == 30
    assert (alice.after or {})["age"] == 31
    assert alice.properties == ["age"]
    assert (bob.after, eve.before) == (None, None)
    edges = [each for each in found if each.kind == "edge"]
    assert found == [*edges, *nodes]
    assert [(each.type_name, each.endpoints) for each in edges] == [
        ("Knows", ("bob", "carol")),
        ("WorksAt", ("bob", "f1")),
    ]


def test_stats_and_forms_say_the_same(people: og.Graph) -> None:
    before = people.snapshot().manifest_version
    change(people, "person", name="eve", age=1)
    change(people, "gone", name="dan")

    changes = people.diff(before, "main")

    assert changes.stats.to_json() == {
        "inserts": 1,
        "updates": 0,
        "deletes": 1,
        "types_affected": ["Person"],
    }
    assert len(changes) == 2
    assert changes.branch == "main"
    whole = json.loads(json.dumps(changes.to_json()))
    assert whole["changes"] == [json.loads(line) for line in changes.to_jsonl()]
    assert (whole["from_version"], whole["to_version"]) == (before, before + 2)


def test_what_came_and_went_or_came_back_is_no_change(people: og.Graph) -> None:
    before = people.snapshot().manifest_version
    change(people, "person", name="eve", age=1)
    change(people, "gone", name="eve")
    change(people, "age", name="alice", age=99)
    change(people, "age", name="alice", age=30)
    change(people, "person", name="fay", age=1)
    change(people, "age", name="fay", age=2)

    assert describe(people.diff(before, "main")) == [("insert", "Person", "fay")]


def test_a_diff_turned_round_is_the_reverse(people: og.Graph) -> None:
    people.create_branch("b")
    change(people, "person", "b", name="eve", age=1)
    change(people, "gone", "b", name="dan")
    change(people, "age", name="alice", age=31)

    forth, back = people.diff("main", "b"), people.diff("b", "main")

    assert describe(forth) == [
        ("update", "Person", "alice"),
        ("delete", "Person", "dan"),
        ("insert", "Person", "eve"),
    ]
    assert [(e.before, e.after) for e in forth] == [(e.after, e.before) for e in back]
    assert forth.branch is None


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"kinds": ["edge"]}, [("insert", "Knows")]),
        ({"types": ["Person"]}, [("update", "Person"), ("delete", "Person")]),
        ({"ops": ["delete"]}, [("delete", "Person")]),
        ({"ops": ["insert", "update"]}, [("insert", "Knows"), ("update", "Person")]),
        ({"kinds": ["node"], "types": ["Knows"]}, []),
    ],
)
def test_filters_leave_out_the_rest(people: og.Graph, filters: Any, expected: Any) -> None:
    before = people.snapshot().manifest_version
    change(people, "knows", a="alice", b="bob")
    change(people, "age", name="alice", age=31)
    change(people, "gone", name="dan")

    changes = people.diff(before, "main", **filters)

    assert [(each.op.value, each.type_name) for each in changes] == expected


def test_what_a_filter_leaves_out_is_not_compared(people: og.Graph) -> None:
    before = people.snapshot().manifest_version
    change(people, "age", name="alice", age=31)

    with counting() as counters:
        people.diff(before, "main", kinds=["edge"])
        people.diff(before, "main", ops=["insert"])

    assert counters.rows_taken == 0


@pytest.mark.parametrize(
    "filters", [{"kinds": ["vertex"]}, {"types": ["Persn"]}, {"ops": "insert"}]
)
def test_a_filter_that_matches_nothing_ever_is_refused(people: og.Graph, filters: Any) -> None:
    with pytest.raises(BadRequestError):
        people.diff("main", "main", **filters)


def test_a_state_is_named_by_branch_commit_version_or_time(people: og.Graph) -> None:
    people.create_branch("team/b")
    version = people.snapshot().manifest_version
    commit = people.commits()[0]
    moment = datetime.fromtimestamp(commit.created_at / 1e6, UTC) + timedelta(milliseconds=1)
    change(people, "person", "team/b", name="gil", age=3)
    change(people, "person", name="eve", age=1)

    expected = [("insert", "Person", "eve")]
    names = (
        version,
        f"main@{version}",
        f"@{version}",
        commit.commit_id,
        people.commits()[1].commit_id,
    )
    for target in names:
        assert describe(people.diff(target, "main")) == expected
    text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if people.commits()[0].created_at > moment.timestamp() * 1e6 + 1_000:
        for time in (moment, text, f"main@{text}"):
            assert describe(people.diff(time, "main")) == expected
    assert describe(people.diff("team/b@" + str(version), "team/b")) == [
        ("insert", "Person", "gil")
    ]
    assert describe(people.diff(people.snapshot(), "main")) == []


def test_what_names_no_state_is_not_found(people: og.Graph) -> None:
    with pytest.raises(BranchNotFound):
        people.diff("nowhere", "main")
    with pytest.raises(CommitNotFound):
        people.diff("01ARZ3NDEKTSV4RRFFQ69G5FAV", "main")
    with pytest.raises(VersionNotFound):
        people.diff(99, "main")
    with pytest.raises(NotFoundError):
        people.diff("1999-01-01", "main")


def test_the_feed_tells_every_commit_since_one_oldest_first(people: og.Graph) -> None:
    since = people.commits()[0].commit_id
    people.create_branch("b")
    change(people, "person", "b", name="gil", age=3)
    change(people, "person", "b", name="hal", age=4)
    change(people, "person", name="eve", age=1)
    merged(people, "b")

    blocks = list(people.changes(since))

    assert [[each.id for each in block.changes] for block in blocks] == [["eve"], ["gil", "hal"]]
    assert blocks[0].commit.parent_id == since
    assert blocks[1].to_json()["cause"]["merged_parent_commit_id"] is not None
    assert list(people.changes(blocks[-1].commit.commit_id)) == []
    assert [describe(block.changes) for block in people.changes(since, types=["Firm"])] == [[], []]


def test_the_feed_of_a_branch_goes_back_through_where_it_came_from(people: og.Graph) -> None:
    since = people.commits()[0].commit_id
    change(people, "person", name="eve", age=1)
    people.create_branch("b")
    change(people, "person", "b", name="gil", age=3)

    found = people.changes(since, branch="b")

    assert [[each.id for each in block.changes] for block in found] == [["eve"], ["gil"]]


def test_a_feed_cannot_start_beside_the_line_of_its_branch(people: og.Graph) -> None:
    people.create_branch("b")
    change(people, "person", "b", name="gil", age=3)

    with pytest.raises(NotFoundError, match="not on the line of branch 'main'"):
        people.changes(people.commits("b")[0].commit_id)


def test_an_entity_is_as_it_was(people: og.Graph) -> None:
    before = people.snapshot().manifest_version
    change(people, "age", name="alice", age=31)

    then = people.entity_at("node:Person", "alice", before)

    assert then == {"id": "alice", "age": 30, "email": None, "name": "alice"}
    assert people.entity_at("node:Person", "nobody", before) is None
    with pytest.raises(NotFoundError, match="node:<Type>"):
        people.entity_at("Person", "alice", before)


def test_a_branch_made_again_under_the_same_name_is_not_taken_for_the_old_one(
    people: og.Graph,
) -> None:
    people.create_branch("b")
    change(people, "person", "b", name="old", age=1)
    people.delete_branch("b")
    people.create_branch("b")
    change(people, "person", "b", name="new", age=1)

    assert describe(people.diff("main", "b")) == [("insert", "Person", "new")]
    merged(people, "b")
    assert "old" not in state_of(people)["node:Person"]
