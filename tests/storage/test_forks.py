"""Forks: exact, free of copies, and told apart when they collide."""

from __future__ import annotations

import os
from pathlib import Path

import lance
import pytest

from omnigraph.errors import BranchNotFound, ForkExists, ForkInUse, InvariantViolated, StorageError
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.location import TableLocation
from omnigraph.storage.tables import TableStorage
from tests.storage.conftest import People, people


def ids(storage: TableStorage, handle: TableHandle) -> list[str]:
    return sorted(storage.reads.scan(handle, ["id"]).column("id").to_pylist())


def append_people(storage: TableStorage, handle: TableHandle, first: int, last: int) -> TableHandle:
    version = storage.commit_staged(storage.rows.stage_append(handle, people(first, last))).version
    return storage.open_at(handle.location, version)


def test_a_fork_starts_at_an_exact_version_and_leaves_main_alone(any_table: People) -> None:
    any_table.append(0, 3)
    any_table.append(3, 5)

    fork = any_table.storage.fork_branch(any_table.location, 2, "feat/x")

    assert fork.location == TableLocation(any_table.location.uri, "feat/x")
    assert (fork.version, fork.row_count) == (2, 3)
    changed = append_people(any_table.storage, fork, 100, 102)
    assert changed.version == 3
    assert ids(any_table.storage, changed) == ["p0", "p1", "p100", "p101", "p2"]
    assert any_table.ids() == ["p0", "p1", "p2", "p3", "p4"]


def test_a_fork_of_a_fork_continues_it(any_table: People) -> None:
    any_table.append(0, 2)
    storage = any_table.storage
    parent = append_people(storage, storage.fork_branch(any_table.location, 2, "parent"), 10, 11)

    child = storage.fork_branch(parent.location, parent.version, "child")

    assert ids(storage, child) == ["p0", "p1", "p10"]
    found = storage.forks.list(any_table.location.uri)
    assert found["child"].parent_branch == "parent"
    assert found["child"].parent_version == 3


NAMES = ["a", "b/c", "d/e/f", "x.y-z_0", "0", "größe", "日本/語", "A"]


def test_forks_are_found_as_lance_lists_them(any_table: People) -> None:
    """Their refs are read from where Lance keeps them, in its own encoding of names."""
    storage, uri = any_table.storage, any_table.location.uri
    for name in NAMES:
        storage.fork_branch(any_table.location, 1, name)
    storage.fork_branch(TableLocation(uri, "b/c"), 1, "child")
    dataset = lance.dataset(uri, storage_options=dict(storage.storage_options))

    ours, theirs = storage.forks.list(uri), dataset.branches.list()

    assert set(ours) == set(theirs) == {*NAMES, "child"}
    for name, facts in theirs.items():
        assert ours[name].parent_branch == facts["parent_branch"]
        assert ours[name].parent_version == facts["parent_version"]
        assert ours[name].created_at == facts["create_at"]
        identifier = "/".join(f"{at}:{token}" for at, token in facts["branch_identifier"])
        assert ours[name].identifier == identifier
    assert storage.forks.find(uri, "b") is None


def test_a_damaged_ref_is_named(table: People) -> None:
    storage, uri = table.storage, table.location.uri
    storage.fork_branch(table.location, 1, "b")
    Path(uri, "_refs/branches/b.json").write_text("{}")

    with pytest.raises(StorageError, match=r"b\.json' is damaged"):
        storage.forks.find(uri, "b")


def test_every_staged_write_works_on_a_fork(any_table: People) -> None:
    any_table.append(0, 5)
    storage = any_table.storage
    fork = storage.fork_branch(any_table.location, 2, "b")

    merged = storage.commit_staged(storage.rows.stage_merge_insert(fork, people(4, 6, age=50)))
    head = storage.open_at(fork.location, merged.version)
    compacted = storage.compaction.stage(head)

    assert compacted is not None
    assert storage.commit_staged(compacted).row_count == 6
    assert storage.restore(fork.location, 2) == 5
    assert any_table.storage.head_version(any_table.location) == 2


def test_a_taken_name_and_leftover_files_have_errors_of_their_own(table: People) -> None:
    storage, location = table.storage, table.location
    storage.fork_branch(location, 1, "taken")
    storage.fork_branch(location, 1, "left")
    ref = Path(location.uri, "_refs/branches/left.json")
    ref.unlink()

    with pytest.raises(ForkExists) as taken:
        storage.fork_branch(location, 1, "taken")
    with pytest.raises(ForkExists) as left:
        storage.fork_branch(location, 1, "left")

    assert taken.value.has_ref
    assert not left.value.has_ref
    storage.forks.delete_tree(location.uri, "left")
    assert storage.fork_branch(location, 1, "left").version == 1


def test_a_live_fork_is_not_deleted_as_leftover(table: People) -> None:
    storage, location = table.storage, table.location
    storage.fork_branch(location, 1, "a/b")

    with pytest.raises(InvariantViolated):
        storage.forks.delete_tree(location.uri, "a/b")
    with pytest.raises(ForkInUse):
        storage.forks.delete_tree(location.uri, "a")

    assert os.path.isdir(f"{location.uri}/tree/a/b")


def test_a_fork_is_deleted_with_its_files(any_table: People) -> None:
    storage, uri = any_table.storage, any_table.location.uri
    storage.fork_branch(any_table.location, 1, "b")

    storage.forks.delete(uri, "b")

    assert storage.forks.list(uri) == {}
    with pytest.raises(BranchNotFound):
        storage.forks.delete(uri, "b")


def test_a_fork_that_another_stands_on_stays(table: People) -> None:
    storage, location = table.storage, table.location
    parent = storage.fork_branch(location, 1, "parent")
    storage.fork_branch(parent.location, 1, "child")

    with pytest.raises(ForkInUse):
        storage.forks.delete(location.uri, "parent")

    assert set(storage.forks.list(location.uri)) == {"parent", "child"}


def test_a_fork_made_again_shows_its_own_rows(table: People) -> None:
    """Same name, same version number, other rows: nothing may come from a cache."""
    storage, location = table.storage, table.location
    first = append_people(storage, storage.fork_branch(location, 1, "b"), 0, 2)
    identifier = storage.forks.list(location.uri)["b"].identifier
    storage.forks.delete(location.uri, "b")

    second = append_people(storage, storage.fork_branch(location, 1, "b"), 10, 15)

    assert second.version == first.version
    assert ids(storage, second) == ["p10", "p11", "p12", "p13", "p14"]
    assert storage.forks.list(location.uri)["b"].identifier != identifier


def test_a_fork_shares_the_files_of_its_parent(table: People) -> None:
    table.append(0, 3)

    table.storage.fork_branch(table.location, 2, "b")

    assert not os.path.exists(f"{table.location.uri}/tree/b/data")
    assert lance.dataset(f"{table.location.uri}/tree/b").count_rows() == 3


def test_a_fork_with_a_tag_on_it_stays(any_table: People) -> None:
    storage, uri = any_table.storage, any_table.location.uri
    storage.fork_branch(any_table.location, 1, "feat/x")
    dataset = lance.dataset(uri, storage_options=dict(storage.storage_options))
    dataset.tags.create("kept", ("feat/x", 1))

    with pytest.raises(ForkInUse):
        storage.forks.delete(uri, "feat/x")


def test_deleting_a_fork_spares_one_that_lies_below_it(any_table: People) -> None:
    storage, uri = any_table.storage, any_table.location.uri
    storage.fork_branch(any_table.location, 1, "feat")
    below = append_people(storage, storage.fork_branch(any_table.location, 1, "feat/x"), 10, 11)

    storage.forks.delete(uri, "feat")

    storage.forget()
    assert ids(storage, storage.open_at(below.location, below.version)) == ["p10"]
    assert set(storage.forks.list(uri)) == {"feat/x"}
