"""Rows of the manifest: what is visible, and what must not be there."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import BadRequestError, InvariantViolated
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.model import MAIN, GraphCommit, RegisterTable, Tombstone, UpdatePin
from omnigraph.manifest.rows import (
    LINEAGE_KEY,
    change_to_row,
    commit_to_row,
    commits_newest_first,
    default_path,
    revoke_tombstone,
    row_to_commit,
    rows_to_state,
    rows_to_table,
)

COMMIT = GraphCommit("01A", MAIN, 1, None, None, "ada", 7)


def commit_row(commit: GraphCommit = COMMIT) -> dict[str, Any]:
    return {
        "object_id": commit.commit_id,
        "object_type": "graph_commit",
        "metadata": json.dumps(
            {
                "branch": commit.branch,
                "parent": commit.parent_id,
                "merged_parent": commit.merged_parent_id,
                "actor": commit.actor,
                "created_at": commit.created_at,
            }
        ),
        "table_key": LINEAGE_KEY,
        "table_version": commit.manifest_version,
    }


def fold(*changes: Any) -> dict[str, int]:
    rows = [commit_row(), *map(change_to_row, changes)]
    state = rows_to_state(MAIN, 1, rows_to_table(rows))
    return {key: entry.version for key, entry in state.entries.items()}


REGISTERED = RegisterTable("node:A", default_path("node:A"))


def test_the_greatest_version_of_a_table_is_shown() -> None:
    pins = [UpdatePin("node:A", version, None, 0) for version in (2, 10, 9)]

    assert fold(REGISTERED, *pins) == {"node:A": 10}


@pytest.mark.parametrize(("hidden", "shown"), [(1, True), (4, True), (5, False), (6, False)])
def test_a_tombstone_hides_what_is_not_newer(hidden: int, shown: bool) -> None:
    found = fold(REGISTERED, UpdatePin("node:A", 5, None, 0), Tombstone("node:A", hidden))

    assert ("node:A" in found) is shown


def test_versions_and_tombstones_belong_to_the_table_at_their_location() -> None:
    """A key that is used for another table starts anew, below the versions of the one before."""
    old = [change_to_row(UpdatePin("node:A", version, None, 0)) for version in (1, 7)]
    old.append(change_to_row(Tombstone("node:A", 8)))
    registered = change_to_row(RegisterTable("node:A", "nodes/x"))
    new = change_to_row(UpdatePin("node:A", 2, None, 0), "nodes/x")

    state = rows_to_state(MAIN, 1, rows_to_table([commit_row(), *old, registered, new]))

    assert {key: (e.table_path, e.version) for key, e in state.entries.items()} == {
        "node:A": ("nodes/x", 2)
    }
    assert not state.hidden
    assert state.hidden_paths == {default_path("node:A")}
    gone = change_to_row(Tombstone("node:A", 8), "nodes/x")
    assert gone["object_id"] != old[-1]["object_id"]


def test_a_tombstone_can_be_taken_back() -> None:
    path = default_path("node:A")
    rows = [
        change_to_row(REGISTERED),
        change_to_row(UpdatePin("node:A", 5, None, 0)),
        revoke_tombstone("node:A", 6, path),
    ]

    state = rows_to_state(MAIN, 1, rows_to_table([commit_row(), *rows]))

    assert rows[-1]["object_id"] == change_to_row(Tombstone("node:A", 6), path)["object_id"]
    assert state.entries["node:A"].version == 5
    assert not state.hidden
    assert not state.hidden_paths


def test_tables_are_sorted_by_key() -> None:
    changes = [
        change
        for key in ("node:B", "edge:Z", "node:A")
        for change in (RegisterTable(key, default_path(key)), UpdatePin(key, 1, None, 0))
    ]

    assert list(fold(*changes)) == ["edge:Z", "node:A", "node:B"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "names no graph commit"),
        ([commit_row(), change_to_row(UpdatePin("node:A", 1, None, 0))], "does not register"),
        (
            [
                commit_row(),
                change_to_row(REGISTERED),
                {**change_to_row(UpdatePin("node:A", 1, None, 0)), "metadata": None},
            ],
            "has no metadata",
        ),
        ([commit_row(), {**change_to_row(REGISTERED), "location": None}], "has no location"),
    ],
)
def test_a_manifest_that_lacks_something_is_loud(rows: list[Any], message: str) -> None:
    with pytest.raises(InvariantViolated, match=message):
        rows_to_state(MAIN, 1, rows_to_table(rows))


@pytest.mark.parametrize(
    "name", ["b", "review/x", "a.b-c_d", "ветка", "日本", "__run__x", "1", "a/b/c", "x" * 200]
)
def test_a_plain_name_is_kept(name: str) -> None:
    assert canonical_branch(f"  {name} ") == name


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "/", "a/", "/a", "a//b", ".", "..", "../x", "a/../b", "a/./b", "a..b"),
        *("a b", "a\\b", "a\0b", "a\nb", "a%2e", "x.lock", "a/b.lock", "a:b", "a*", "a?", "~"),
        *("ä" * 101, "x" * 201, "__schema_apply_lock__", "\ud800", "a\u202eb", "$(x)", "'", '"'),
    ],
)
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(BadRequestError):
        canonical_branch(name)


@given(st.text(max_size=40))
def test_a_canonical_name_stays_below_its_directory(name: str) -> None:
    try:
        branch = canonical_branch(name)
    except BadRequestError:
        return

    assert canonical_branch(branch) == branch
    assert not branch.startswith("/")
    assert all(part not in ("", ".", "..") for part in branch.split("/"))
    assert "\\" not in branch
    assert branch.isprintable()


@pytest.mark.parametrize("seed", range(5))
def test_commits_come_newest_first_and_are_parsed_as_they_are_asked_for(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of one publish, which share a manifest version, in rows of any order."""
    chance = random.Random(seed)
    commits = [
        GraphCommit(f"{number:026d}", "main", chance.randint(1, 60), None, None, None, number)
        for number in chance.sample(range(200), 100)
    ]
    rows = rows_to_table(map(commit_to_row, commits))
    parsed: list[str] = []

    def count(row: dict[str, Any]) -> GraphCommit:
        parsed.append(row["object_id"])
        return row_to_commit(row)

    monkeypatch.setattr("omnigraph.manifest.rows.row_to_commit", count)

    newest_first = commits_newest_first(rows)

    expected = sorted(commits, key=lambda each: each.order, reverse=True)
    assert next(newest_first) == expected[0]
    assert len(parsed) < 30
    assert list(newest_first) == expected[1:]
