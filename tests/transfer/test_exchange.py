"""Branches travel between stores: whole or not at all, forward or refused, and merged by a pull."""

from __future__ import annotations

import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BranchNotFound,
    ConflictError,
    DamagedFile,
    GraphNotFound,
    MergeConflicts,
    NotFastForward,
    NotFoundError,
    UnrelatedHistories,
)
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.testing.crash import run_spawned
from tests.depth import depth, sample
from tests.graph.reading import add, ages, names, new_graph
from tests.storage.conftest import Store
from tests.transfer.conftest import OPTIONS, failing_at, find_damage, list_commits, show

pytestmark = pytest.mark.slow


@pytest.fixture
def away(home: Path, tmp_path: Path) -> Path:
    """A clone of `home`."""
    og.clone(home, tmp_path / "away", durability="process")
    return tmp_path / "away"


def write(path: Path | str, what: str, branch: str = "main", **params: object) -> str:
    with og.open(path, **OPTIONS) as graph:
        found = add(graph, what, branch, **params).commit_id
    assert found is not None
    return found


def push(
    path: Path | str, to: Path | str, branch: str = "main", **options: object
) -> og.TransferResult:
    with og.open(path, **OPTIONS) as graph:
        return graph.push(to, branch, **options)  # type: ignore[arg-type]


def pull(
    path: Path | str, of: Path | str, branch: str = "main", **options: object
) -> og.TransferResult:
    with og.open(path, **OPTIONS) as graph:
        return graph.pull(of, branch, **options)  # type: ignore[arg-type]


def head(path: Path | str, branch: str = "main", **options: object) -> str:
    with og.open(path, mode="r", **options) as graph:  # type: ignore[arg-type]
        return graph.commits(branch)[0].commit_id


def is_same(one: Path, other: Path, branch: str = "main") -> bool:
    """Whether a branch is the same in two stores: head, commits, and what each of them showed."""
    found = []
    for path in (one, other):
        with og.open(path, mode="r") as graph:
            line = [each.commit_id for each in graph.commits(branch)]
            past = {each: sorted(map(str, graph.export(commit=each))) for each in line}
            history = [
                each.commit.commit_id
                for each in graph.history("Person", "ann", branch=branch)
                if each.commit is not None
            ]
            found.append((set(line), line[0], past, history))
    return found[0] == found[1]


def test_a_push_moves_a_branch_with_its_commits(home: Path, away: Path) -> None:
    write(away, "pair", a="x", b="y")
    write(away, "age", name="ann", age=9)

    moved = push(away, home)

    assert moved.commits == 2
    assert is_same(home, away)
    assert push(away, home) == og.TransferResult(0, 0, 0)
    assert find_damage(home) == []
    assert write(home, "person", name="after") != head(away)
    assert pull(away, home).commits == 1
    assert is_same(home, away)
    assert find_damage(away) == []


def test_what_was_shown_before_an_exchange_stays_readable(home: Path, away: Path) -> None:
    """Each side forks what it received to write on; the forks of earlier rounds are its past."""
    for number in range(3):
        write(home, "person", name=f"home {number}")
        write(away, "person", name=f"away {number}")
        pull(away, home)
        push(away, home)

    write(home, "person", name="last")
    with og.open(home, **OPTIONS) as graph:
        graph.cleanup(keep=100, confirm=True)
        people = {
            each.commit_id: len(list(graph.export(commit=each.commit_id, types=["Person"])))
            for each in graph.commits()
        }
        for each in graph.commits():
            if each.merged_parent_id is None and each.parent_id in people:
                assert people[each.commit_id] - people[each.parent_id] in (0, 1, 2)


def test_a_push_makes_a_branch(home: Path, away: Path) -> None:
    with og.open(away, **OPTIONS) as graph:
        graph.create_branch("new/one", from_="team/b")
        add(graph, "person", branch="new/one", name="z")

    push(away, home, "new/one")

    assert is_same(home, away, "new/one")
    write(home, "person", branch="new/one", name="here too")
    pull(away, home, "new/one")
    assert is_same(home, away, "new/one")
    with og.open(home, **OPTIONS) as graph:
        graph.merge("new/one", into="main", delete_branch=True)
        graph.cleanup(keep=1, confirm=True)
        assert "z" in names(graph)
    assert find_damage(home) == find_damage(away) == []


def test_a_push_of_diverged_histories_is_refused_and_a_pull_merges(home: Path, away: Path) -> None:
    write(home, "person", name="here")
    write(away, "person", name="there")
    before = show(home)

    with pytest.raises(NotFastForward) as refused:
        push(away, home)

    assert refused.value.receiver_head == head(home)
    assert show(home) == before
    pull(away, home)
    with og.open(away, mode="r") as graph:
        merge = graph.commits()[0]
        assert merge.merged_parent_id == head(home)
        assert {"here", "there"} <= set(names(graph))
        assert graph.branches() == ["main", "origin/main", "team/a", "team/b"]
    push(away, home)
    assert head(home) == head(away)
    with og.open(home, mode="r") as graph:
        assert {"here", "there"} <= set(names(graph))
        for each in list_commits(graph):
            assert list(graph.export(commit=each)) or graph.commit(each).parent_id is None
    assert find_damage(home) == find_damage(away) == []


def test_conflicts_of_a_pull_are_listed_and_can_be_resolved(home: Path, away: Path) -> None:
    write(home, "age", name="ann", age=1)
    write(away, "age", name="ann", age=2)
    before = head(away)

    with pytest.raises(MergeConflicts) as found:
        pull(away, home)

    assert [each.row_id for each in found.value.conflicts] == ["ann"]
    assert head(away) == before
    pull(away, home, resolve="theirs")
    with og.open(away, mode="r") as graph:
        assert ages(graph)["ann"] == 1


def test_a_fetch_changes_no_branch(home: Path, away: Path) -> None:
    write(home, "person", name="here")
    write(home, "person", branch="team/a", name="team")
    before = {each: head(away, each) for each in ("main", "team/a", "team/b")}

    with og.open(away, **OPTIONS) as graph:
        moved = graph.fetch(home)

        assert moved.commits == 2
        assert {each: head(away, each) for each in before} == before
        assert "here" in names(graph, "origin/main")
        assert "team" in names(graph, "origin/team/a")
        assert graph.fetch(home) == og.TransferResult(0, 0, 0)


def test_a_fetch_follows_a_branch_that_was_made_again(home: Path, away: Path) -> None:
    with og.open(away, **OPTIONS) as graph:
        graph.fetch(home)
        with og.open(home, **OPTIONS) as other:
            other.delete_branch("team/b")
            other.create_branch("team/b")
            add(other, "person", branch="team/b", name="second life")

        graph.fetch(home)

        assert "second life" in names(graph, "origin/team/b")
        assert "team-b" not in names(graph, "origin/team/b")
    assert find_damage(away) == []


def test_writers_on_both_sides_lose_nothing(home: Path, away: Path) -> None:
    """Each side writes while the other exchanges with it; refused or outrun calls are repeated."""

    def work(path: Path, other: Path) -> None:
        with og.open(path, **OPTIONS) as graph:
            for number in range(depth(4, 20)):
                add(graph, "pair", a=f"{path.name} {number}", b=f"{path.name} {number} too")
                exchange(graph, other)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work, home, away), pool.submit(work, away, home)]:
            done.result()
    with og.open(home, **OPTIONS) as graph:
        exchange(graph, away)

    assert head(home) == head(away)
    wanted = {
        f"{side} {n}{end}" for side in ("home", "away") for n in range(4) for end in ("", " too")
    }
    for path in (home, away):
        with og.open(path, mode="r") as graph:
            assert wanted <= set(names(graph))
        assert find_damage(path) == []


def exchange(graph: og.Graph, other: Path) -> None:
    """Pull and push until both went through."""
    for _ in range(50):
        try:
            graph.pull(other)
            graph.push(other)
        except ConflictError:
            time.sleep(random.random() / 2)  # else both merge what the other has just merged
            continue
        return
    raise AssertionError("the other side never paused")


def test_unrelated_histories_are_refused(home: Path, tmp_path: Path) -> None:
    new_graph(tmp_path / "other").close()
    before = show(home)

    for call in (push, pull):
        with pytest.raises(UnrelatedHistories):
            call(home, tmp_path / "other")
    with pytest.raises(GraphNotFound):
        push(home, tmp_path / "nowhere")
    with pytest.raises(BranchNotFound):
        pull(home, home.parent / "other", "nobranch")

    assert show(home) == before


def test_upkeep_on_either_side_does_not_stand_in_the_way(home: Path, away: Path) -> None:
    for path in (home, away):
        with og.open(path, **OPTIONS) as graph:
            for number in range(3):
                add(graph, "person", branch="team/a", name=f"{path.name} {number}")
            graph.optimize()
    write(away, "person", name="there")
    with og.open(home, **OPTIONS) as graph:
        graph.optimize()
        graph.cleanup(keep=1, confirm=True)

    push(away, home)
    pull(away, home, "team/a")
    with og.open(away, **OPTIONS) as graph:
        graph.optimize()
        graph.cleanup(keep=1, confirm=True)
    push(away, home, "team/a")

    assert head(home) == head(away)
    assert head(home, "team/a") == head(away, "team/a")
    for path in (home, away):
        with og.open(path, mode="r") as graph:
            assert {"home 2", "away 2"} <= set(names(graph, "team/a"))
            assert "there" in names(graph)
        assert find_damage(path) == []


def test_a_push_moves_only_the_files_of_its_change(home: Path, away: Path) -> None:
    """Whatever the tables hold: one row is one data file and its transaction."""
    with og.open(away, **OPTIONS) as graph:
        graph.load(
            [{"type": "Person", "data": {"name": f"p{n}", "age": n % 99}} for n in range(20_000)],
            mode="append",
        )
    first = push(away, home)
    write(away, "person", name="one more")

    second = push(away, home)

    assert first.bytes > 100_000
    assert (second.files, second.commits) == (2, 1)
    assert second.bytes < 5_000


def count_files(home: Path, away: Path, tmp_path: Path) -> int:
    shutil.copytree(home, tmp_path / "counted")
    og.open(tmp_path / "counted", **OPTIONS).close()
    with arm_failpoints({Failpoint.TRANSFER_BEFORE_FILE: "count"}) as hits:
        push(away, tmp_path / "counted")
    return hits[Failpoint.TRANSFER_BEFORE_FILE]


def test_a_push_torn_at_any_file_changes_nothing_and_goes_on(
    home: Path, away: Path, tmp_path: Path
) -> None:
    write(away, "pair", a="x", b="y")
    write(away, "age", name="ann", age=9)
    before, count = show(home), count_files(home, away, tmp_path)
    assert count > 4

    for number in sample(range(1, count + 1), every=8):
        again = tmp_path / f"again{number}"
        shutil.copytree(home, again)
        with failing_at(Failpoint.TRANSFER_BEFORE_FILE, number):
            push(away, again)
        assert show(again) == before
        og.open(again, **OPTIONS).close()
        write(again, "person", branch="team/a", name="meanwhile")

        assert push(away, again).files == count - number + 1
        assert is_same(again, away)
        assert find_damage(again) == []


@pytest.mark.parametrize("arm", ["transfer.before_file=kill@2", "transfer.before_branch=kill"])
def test_a_push_that_is_killed_changes_nothing(home: Path, away: Path, arm: str) -> None:
    with og.open(away, **OPTIONS) as graph:
        graph.create_branch("fresh")
        add(graph, "person", branch="fresh", name="x")
    before = show(home)

    died = run_spawned(
        "tests.transfer.work:push",
        {"src": str(away), "dst": str(home), "branch": "fresh", "arm": arm},
    )

    assert died.was_killed, died.error
    assert show(home) == before
    push(away, home, "fresh")
    assert is_same(home, away, "fresh")
    assert find_damage(home) == []


def test_a_damaged_file_is_not_pushed(home: Path, away: Path) -> None:
    known = set(away.glob("nodes/*/data/*.lance"))
    write(away, "person", name="x")
    (path,) = set(away.glob("nodes/*/data/*.lance")) - known
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    before = show(home)

    with pytest.raises(DamagedFile, match=path.name):
        push(away, home)

    assert show(home) == before
    path.write_bytes(whole)
    push(away, home)
    assert is_same(home, away)


def test_branches_travel_to_an_object_store_and_back(
    home: Path, tmp_path: Path, s3_store: Store
) -> None:
    uri, options = s3_store.root.uri, s3_store.storage_options
    og.clone(home, uri, target_options=options)
    write(home, "person", name="first")

    with failing_at(Failpoint.TRANSFER_BEFORE_PUBLISH):
        push(home, uri, storage_options=options)
    push(home, uri, storage_options=options)
    with og.open(uri, storage_options=options) as graph:
        add(graph, "person", name="second")
        add(graph, "age", name="ann", age=1)
    write(home, "person", name="third")
    pull(home, uri, storage_options=options)
    push(home, uri, storage_options=options)

    assert head(home) == head(uri, storage_options=options)
    with og.open(uri, mode="r", storage_options=options) as graph:
        assert {"first", "second", "third"} <= set(names(graph))
    assert find_damage(home) == find_damage(uri, storage_options=options) == []


def test_a_version_that_a_store_shows_under_another_number_keeps_its_rows_in_a_third_store(
    tmp_path: Path,
) -> None:
    with new_graph(tmp_path / "first", self_care=False) as first:
        for age, name in enumerate(("a", "b", "c")):
            add(first, "person", name=name, age=age)
        first.optimize()
        add(first, "person", name="d", age=3)
        for each in ("second", "third"):
            og.clone(tmp_path / "first", tmp_path / each, durability="process")
        with og.open(tmp_path / "second", **OPTIONS) as second:
            second.optimize()  # counts on: the next version of the table is another one here
            second.create_branch("one")
            add(first, "person", name="e", age=4)
            first.create_branch("one")
            add(first, "person", name="f", age=5)
            second.fetch(tmp_path / "first", name="first")
            first.push(tmp_path / "second", "one")
            shown, received = (
                second.snapshot(each).entries["node:Person"] for each in ("one", "first/main")
            )
            assert shown.version == received.version, "both have this number"
            assert shown.transaction_uuid != received.transaction_uuid
    with og.open(tmp_path / "third", **OPTIONS) as third:
        third.pull(tmp_path / "second", "first/main")
        third.pull(tmp_path / "second", "one")

        assert ages(third, "one") == {name: age for age, name in enumerate("abcde")}
        assert ages(third, "first/main") == {name: age for age, name in enumerate("abcdef")}
    assert find_damage(tmp_path / "third") == []


def test_a_version_that_was_removed_is_not_taken_for_a_later_one_of_its_number(
    tmp_path: Path,
) -> None:
    """A middle store shows what it received as version 4; the first one makes a version 4 later."""
    first = new_graph(tmp_path / "first", self_care=False)
    add(first, "person", name="ann")
    for name in ("middle", "last"):
        og.clone(first.uri, tmp_path / name, durability="process")
    middle, last = (og.open(tmp_path / each, **OPTIONS) for each in ("middle", "last"))
    commit = add(first, "person", name="x").commit_id
    assert commit is not None
    middle.optimize()  # a version of its own, so that the received one needs another number
    first.push(middle.uri)
    add(last, "person", name="own")
    last.pull(middle.uri)
    last.push(middle.uri)
    last.fetch(middle.uri)
    last.cleanup(keep=1, confirm=True)

    add(first, "person", name="y")
    last.fetch(first.uri, name="far")

    assert names(last, "far/main") == ["ann", "x", "y"]
    with pytest.raises(NotFoundError):
        list(last.export(commit=commit))
    last.pull(first.uri, name="far")
    assert names(last) == ["ann", "own", "x", "y"]
    assert find_damage(last.uri) == []


def test_stores_that_both_removed_what_they_had_in_common_still_exchange(tmp_path: Path) -> None:
    """Their tables are the same ones, though no version that both have is left."""
    here = new_graph(tmp_path / "here", self_care=False)
    add(here, "person", name="ann")
    og.clone(here.uri, tmp_path / "there", durability="process")
    there = og.open(tmp_path / "there", **OPTIONS)
    for graph, name in ((here, "x"), (there, "y")):
        add(graph, "pair", a=name, b=f"{name}-2")
        graph.optimize()
        graph.cleanup(keep=1, confirm=True)

    there.fetch(here.uri)

    assert names(there, "origin/main") == ["ann", "x", "x-2"]
    with pytest.raises(ConflictError, match="no longer stored"):
        there.pull(here.uri)
    assert names(there) == ["ann", "y", "y-2"]
    assert find_damage(there.uri) == []


def test_a_branch_at_a_commit_that_the_receiver_removed_is_whole_there(tmp_path: Path) -> None:
    here = new_graph(tmp_path / "here", self_care=False)
    commit = add(here, "person", name="ann").commit_id
    assert commit is not None
    og.clone(here.uri, tmp_path / "there", durability="process")
    there = og.open(tmp_path / "there", **OPTIONS)
    there.create_branch("x")
    add(here, "person", name="bob")
    add(here, "age", name="ann", age=7)
    here.optimize()
    here.cleanup(keep=1, confirm=True)

    there.push(here.uri, "x")

    assert here.cleanup(keep=1, confirm=True).tables
    assert names(here, "x") == ["ann"]
    assert [row["data"]["name"] for row in here.export(commit=commit)] == ["ann"]
    add(here, "person", branch="x", name="cy")
    assert here.cleanup(keep=1, confirm=True).tables
    here.merge("x", into="main")  # both come from the commit that came back
    assert ages(here) == {"ann": 7, "bob": None, "cy": None}
    assert find_damage(here.uri) == []
