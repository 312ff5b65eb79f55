"""Branches: isolated, forked only where written, and never confused with an earlier namesake."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    BranchExists,
    BranchNotFound,
    ConflictError,
    OmnigraphError,
)
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from tests.graph.reading import (
    TABLES,
    add,
    ages,
    heads,
    links,
    names,
    pins,
    reopen,
    run,
    sidecars,
    standing,
)


def forks(graph: og.Graph) -> dict[str, list[str]]:
    """Table key → the Lance branches it has, where it has any."""
    tables = inside(graph).store.tables
    found = {
        key: sorted(tables.forks.list(tables.root.child(entry.table_path)))
        for key, entry in graph.snapshot().entries.items()
    }
    return {key: branches for key, branches in found.items() if branches}


@pytest.mark.accepts("S-016")
def test_the_first_write_on_a_branch_forks_only_the_table_it_writes(pair: og.Graph) -> None:
    pair.create_branch("b")
    assert forks(pair) == {}

    add(pair, "person", branch="b", name="cy")

    assert forks(pair) == {"node:Person": ["b"]}
    entries = pair.snapshot("b").entries
    assert {key: entry.table_branch for key, entry in entries.items()} == {
        **dict.fromkeys(TABLES),
        "node:Person": "b",
    }
    add(pair, "person", branch="b", name="dee")
    assert forks(pair) == {"node:Person": ["b"]}


@pytest.mark.accepts("S-053")
def test_a_branch_reads_shared_tables_through_its_parent_and_forked_ones_from_itself(
    pair: og.Graph,
) -> None:
    pair.create_branch("b")
    add(pair, "person", branch="b", name="cy")
    add(pair, "person", name="main-only")
    add(pair, "knows", a="ann", b="main-only")

    assert names(pair, "b") == ["ann", "bob", "cy"]
    assert names(pair) == ["ann", "bob", "main-only"]
    assert links(pair, branch="b") == [("ann", "bob")]
    assert add(pair, "knows", branch="b", a="cy", b="ann").affected_edges == 1
    with pytest.raises(og.errors.ConstraintError):
        add(pair, "knows", branch="b", a="main-only", b="ann")


def test_a_branch_of_a_branch_shows_what_its_parent_showed(pair: og.Graph) -> None:
    pair.create_branch("a")
    add(pair, "person", branch="a", name="on-a")
    pair.create_branch("b", "a")
    add(pair, "person", branch="a", name="later")

    assert names(pair, "b") == ["ann", "bob", "on-a"]
    add(pair, "gone", branch="b", name="ann")
    assert names(pair, "b") == ["bob", "on-a"]
    assert names(pair, "a") == ["ann", "bob", "later", "on-a"]
    assert names(pair) == ["ann", "bob"]


def test_creating_a_branch_copies_and_commits_nothing(pair: og.Graph) -> None:
    with counting() as counters:
        pair.create_branch("b")

    assert (counters.commits, counters.control_merges, counters.bytes_staged) == (0, 0, 0)
    assert pair.snapshot("b").head == pair.snapshot().head


def test_branches_are_listed_with_main_first(graph: og.Graph) -> None:
    for name in ("zoo", "alpha", "review/x"):
        graph.create_branch(name)
    inside(graph).store.manifest.create_branch("__schema_apply_lock__", source=None, version=1)

    assert graph.branches() == ["main", "alpha", "review/x", "zoo"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("main", BadRequestError),
        ("", BadRequestError),
        ("   ", BadRequestError),
        ("__schema_apply_lock__", BadRequestError),
        ("taken", BranchExists),
        (" taken ", BranchExists),
        ("taken/below", ConflictError),
        ("x" * 300, BadRequestError),
    ],
)
def test_a_name_that_cannot_be_is_refused(
    graph: og.Graph, name: str, error: type[OmnigraphError]
) -> None:
    graph.create_branch("taken")
    before = standing(graph)

    with pytest.raises(error):
        graph.create_branch(name)

    assert standing(graph) == before


def test_an_unknown_branch_is_not_found_anywhere(pair: og.Graph) -> None:
    pair.create_branch("review")
    for act in (
        lambda: add(pair, "person", branch="revew", name="cy"),
        lambda: pair.snapshot("revew"),
        lambda: pair.commits("revew"),
        lambda: pair.delete_branch("revew"),
        lambda: pair.create_branch("x", "revew"),
        lambda: pair.load([{"type": "Firm", "data": {"code": "f"}}], mode="merge", branch="revew"),
    ):
        with pytest.raises(BranchNotFound, match="revew"):
            act()


def test_deleting_a_branch_removes_it_and_its_forks(pair: og.Graph) -> None:
    pair.create_branch("b")
    add(pair, "pair", branch="b", a="cy", b="dee")

    pair.delete_branch("b")

    assert pair.branches() == ["main"]
    assert forks(pair) == {}
    assert not list(Path(pair.uri).glob("*/*/tree/b"))
    assert names(pair) == ["ann", "bob"]
    with pytest.raises(BranchNotFound):
        add(pair, "person", branch="b", name="x")


def test_a_branch_that_others_stand_on_cannot_go(pair: og.Graph) -> None:
    pair.create_branch("a")
    add(pair, "person", branch="a", name="on-a")
    pair.create_branch("b", "a")

    with pytest.raises(ConflictError, match=r"delete 'b' first|came from it"):
        pair.delete_branch("a")
    with pytest.raises(BadRequestError, match="'main'"):
        pair.delete_branch("main")

    assert names(pair, "b") == ["ann", "bob", "on-a"]
    pair.delete_branch("b")
    pair.delete_branch("a")
    assert pair.branches() == ["main"]


def test_a_branch_made_again_is_a_new_branch(pair: og.Graph) -> None:
    """Version numbers repeat, rows must not: a reader on another handle is not fooled."""
    other = reopen(pair)
    pair.create_branch("b")
    add(pair, "person", branch="b", name="first")
    assert names(other, "b") == ["ann", "bob", "first"]
    old = pins(pair, "b")

    pair.delete_branch("b")
    pair.create_branch("b")
    add(pair, "person", branch="b", name="second")

    assert pins(pair, "b") == old
    assert names(pair, "b") == ["ann", "bob", "second"]
    assert names(other, "b") == ["ann", "bob", "second"]


@pytest.mark.parametrize("what", ["age", "gone"])
def test_a_strict_write_prepared_on_an_earlier_namesake_is_refused(
    pair: og.Graph, what: str
) -> None:
    """The stale handle saw the row on the old branch; the new one has other rows at that number."""
    other = reopen(pair)
    pair.create_branch("b")
    add(pair, "person", branch="b", name="first")
    assert names(other, "b") == ["ann", "bob", "first"]
    pair.delete_branch("b")
    pair.create_branch("b")
    add(pair, "person", branch="b", name="second")

    params = {"name": "first", "age": 5} if what == "age" else {"name": "first"}
    with pytest.raises(ConflictError):
        add(other, what, branch="b", **params)

    assert names(pair, "b") == ["ann", "bob", "second"]
    assert add(other, what, branch="b", **params).affected_nodes == 0
    assert heads(pair, "b") == pins(pair, "b")


def test_an_insert_prepared_on_an_earlier_namesake_lands_on_the_new_branch(pair: og.Graph) -> None:
    other = reopen(pair)
    pair.create_branch("b")
    add(pair, "person", branch="b", name="first")
    assert names(other, "b") == ["ann", "bob", "first"]
    pair.delete_branch("b")
    pair.create_branch("b")
    add(pair, "person", branch="b", name="second")

    add(other, "person", branch="b", name="third")

    assert names(pair, "b") == ["ann", "bob", "second", "third"]
    with pytest.raises(og.errors.ConstraintError, match="not found"):
        add(other, "knows", branch="b", a="first", b="ann")


@pytest.mark.accepts("S-014")
def test_an_unowned_fork_is_created_again(pair: og.Graph) -> None:
    """What a writer leaves that forked and died: a ref, and rows that were never published."""
    pair.create_branch("b")
    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: "raise"}), pytest.raises(FailpointError):
        add(pair, "person", branch="b", name="lost")
    assert forks(pair) == {"node:Person": ["b"]}
    add(pair, "person", name="newer-on-main")

    add(pair, "person", branch="b", name="cy")

    assert names(pair, "b") == ["ann", "bob", "cy"]
    assert heads(pair, "b") == pins(pair, "b")


@pytest.mark.accepts("S-014")
def test_a_fork_left_without_its_ref_is_made_anew(pair: og.Graph) -> None:
    pair.create_branch("b")
    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: "raise"}), pytest.raises(FailpointError):
        add(pair, "person", branch="b", name="lost")
    for ref in Path(pair.uri).glob("nodes/*/_refs/branches/b.json"):
        ref.unlink()

    add(pair, "person", branch="b", name="cy")

    assert names(pair, "b") == ["ann", "bob", "cy"]


def test_a_fork_whose_owner_cannot_be_found_out_is_left_alone(pair: og.Graph) -> None:
    """Invariant I18: nothing is destroyed on a guess."""
    pair.create_branch("b")
    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: "raise"}), pytest.raises(FailpointError):
        add(pair, "person", branch="b", name="lost")

    def unreadable() -> None:
        raise og.errors.StorageError("the store does not answer")

    with (
        arm_failpoints({Failpoint.CLASSIFY_FRESH_READ: unreadable}),
        pytest.raises(ConflictError, match="could not verify"),
    ):
        add(pair, "person", branch="b", name="cy")

    assert forks(pair) == {"node:Person": ["b"]}
    assert names(pair, "b") == ["ann", "bob"]


def test_a_delete_waits_for_a_writer_of_the_branch(pair: og.Graph) -> None:
    """The writer's commit is acknowledged and no sidecar is left for a branch that is gone."""
    pair.create_branch("b")
    deleting = threading.Thread(target=lambda: reopen(pair).delete_branch("b"))

    def delete_now() -> None:
        deleting.start()
        deleting.join(0.5)

    with arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: delete_now}):
        result = add(pair, "person", branch="b", name="cy")
    deleting.join()

    assert result.commit_id is not None
    assert pair.branches() == ["main"]
    assert sidecars(pair) == []
    assert forks(pair) == {}


def test_a_delete_never_takes_the_fork_of_a_new_namesake(pair: og.Graph) -> None:
    """The name is free as soon as its ref is gone; a new branch of it keeps what is written."""
    pair.create_branch("b")
    add(pair, "person", branch="b", name="old")
    other = reopen(pair)
    failed: list[BaseException] = []

    def take_over() -> None:
        try:
            other.create_branch("b")
            add(other, "person", branch="b", name="new")
        except BaseException as error:
            failed.append(error)

    taking = threading.Thread(target=take_over)

    def take_now() -> None:
        taking.start()
        taking.join(0.5)

    with arm_failpoints({Failpoint.BRANCH_DELETE_BEFORE_TABLE_CLEANUP: take_now}):
        pair.delete_branch("b")
    taking.join()

    assert failed == []
    assert names(reopen(pair), "b") == ["ann", "bob", "new"]


def test_of_many_concurrent_creations_of_one_name_exactly_one_wins(pair: og.Graph) -> None:
    handles = [reopen(pair) for _ in range(4)]

    def attempt(graph: og.Graph) -> str:
        try:
            graph.create_branch("b")
        except BranchExists:
            return "exists"
        return "made"

    with ThreadPoolExecutor(4) as threads:
        outcomes = sorted(threads.map(attempt, handles))

    assert outcomes == ["exists", "exists", "exists", "made"]
    add(pair, "person", branch="b", name="cy")
    assert names(handles[2], "b") == ["ann", "bob", "cy"]


def test_a_creation_that_died_before_its_ref_does_not_block_the_name(pair: og.Graph) -> None:
    pair.create_branch("b")
    for ref in Path(pair.uri).glob("__manifest/_refs/branches/b.json"):
        ref.unlink()
    assert pair.branches() == ["main"]

    pair.create_branch("b")

    assert names(pair, "b") == ["ann", "bob"]


def test_commits_of_a_branch_follow_those_it_came_from(pair: og.Graph) -> None:
    pair.create_branch("b")
    result = add(pair, "person", branch="b", name="cy")
    add(pair, "person", name="dee")

    on_branch = pair.commits("b")

    assert on_branch[0].commit_id == result.commit_id
    assert [commit.branch for commit in on_branch] == ["b", "main", "main"]
    assert on_branch[0].parent_id == on_branch[1].commit_id
    assert pair.commit(str(result.commit_id)).branch == "b"
    assert result.commit_id not in {commit.commit_id for commit in pair.commits()}


def test_a_load_may_create_its_branch(pair: og.Graph) -> None:
    records = [{"type": "Person", "data": {"name": "cy", "age": 3}}]

    result = pair.load(records, mode="merge", branch="in", base="main")

    assert (result.branch, result.base_branch, result.branch_created) == ("in", "main", True)
    assert ages(pair, "in")["cy"] == 3
    assert names(pair) == ["ann", "bob"]
    assert not pair.load(records, mode="merge", branch="in", base="main").branch_created


def test_writers_on_different_branches_do_not_wait_for_each_other(pair: og.Graph) -> None:
    """A writer of one branch finishes while one of another branch is held in mid-commit."""
    pair.create_branch("b")
    done: list[object] = []
    other = reopen(pair)

    def write_elsewhere() -> None:
        if not done:
            done.append(None)
            thread = threading.Thread(
                target=lambda: done.append(add(other, "person", branch="b", name="cy"))
            )
            thread.start()
            thread.join(30)

    with arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: write_elsewhere}):
        add(pair, "person", name="dee")

    assert len(done) == 2
    assert names(pair, "b") == ["ann", "bob", "cy"]
    assert names(pair) == ["ann", "bob", "dee"]


def test_a_reader_keeps_its_snapshot_while_a_branch_moves(pair: og.Graph) -> None:
    snapshot = pair.snapshot()
    run(pair, 'delete Person where name = "ann"')

    assert snapshot.version_of("node:Person") == pins(pair)["node:Person"] - 1
    assert names(pair, version=snapshot.manifest_version) == ["ann", "bob"]
