"""Acknowledged means synced: every file a write made, before it returns."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.storage import durability, file_times
from omnigraph.storage.control import ControlTable
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import IndexKind, IndexSpec, StagedTransaction
from omnigraph.storage.location import graph_root
from omnigraph.storage.predicates import Compare, CompareOp
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text_local import LocalTextStore
from tests.storage.conftest import SCHEMA, People, people
from tests.storage.racers import row

# Lance keeps a hint of the latest version here; without it the latest is found by listing.
HINT = "latest_version_hint.json"

STAGES: dict[str, Callable[[People], StagedTransaction | None]] = {
    "append": lambda t: t.storage.rows.stage_append(t.head(), with_large_blob()),
    "merge_insert": lambda t: t.storage.rows.stage_merge_insert(t.head(), people(8, 12)),
    "replace_rows": lambda t: t.storage.rows.stage_replace_rows(
        t.head(), people(8, 9).to_batches(), t.row_ids("p8")
    ),
    "overwrite": lambda t: t.storage.rows.stage_overwrite(t.head(), people(50, 52)),
    "delete": lambda t: t.storage.rows.stage_delete(
        t.head(), Compare("age", CompareOp.GT, pa.scalar(7))
    ),
    "create_indices": lambda t: (
        t.storage.indexes.stage_create(
            t.head(),
            [
                IndexSpec("id", IndexKind.BTREE),
                IndexSpec("name", IndexKind.INVERTED),
                IndexSpec("vector", IndexKind.VECTOR),
            ],
        ).transaction
    ),
    "compaction": lambda t: t.storage.compaction.stage(t.head()),
    "restore": lambda t: t.storage.stage_restore(t.head(), 2),
}


def with_large_blob() -> pa.Table:
    return pa.table({"id": ["big"], "photo": pa.array([b"z" * 5_000_000], pa.large_binary())})


def files(top: str) -> set[str]:
    """All but hints and checksums: both may be lost, and are not synced on their own."""
    return {
        os.path.join(directory, name)
        for directory, _, names in os.walk(top)
        for name in names
        if name != HINT and not directory.endswith("_checksums")
    }


@pytest.fixture
def sync_log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every path that was synced, in order."""
    paths: list[str] = []
    real = durability.sync_path

    def recording(path: str) -> None:
        real(path)
        paths.append(path)

    monkeypatch.setattr(durability, "sync_path", recording)
    return paths


@pytest.fixture
def full_table(table: People) -> People:
    table.append(0, 5)
    table.append(5, 10)
    return table


@pytest.mark.parametrize("kind", STAGES)
def test_every_file_of_a_write_and_its_directory_is_synced(
    full_table: People, sync_log: list[str], kind: str
) -> None:
    """After staging: all data files. After commit: manifest and transaction as well."""
    top = full_table.location.uri
    before, folders = files(top), set(os.listdir(top))
    sync_log.clear()

    staged = STAGES[kind](full_table)
    staged_new = files(top) - before
    staged_synced = set(sync_log)
    full_table.commit(staged)

    assert staged_new <= staged_synced
    committed_new = files(top) - before
    assert committed_new <= set(sync_log)
    assert {os.path.dirname(path) for path in committed_new} <= set(sync_log)
    assert top in sync_log or set(os.listdir(top)) == folders


def test_creating_and_forking_sync_everything(tmp_path: Path, sync_log: list[str]) -> None:
    root = graph_root(str(tmp_path / "graph"))
    storage = TableStorage(root)
    location = root.table("nodes/people")

    storage.create_table(location, SCHEMA)
    storage.fork_branch(location, 1, "feat/x")

    assert files(location.uri) <= set(sync_log)
    assert os.path.dirname(location.uri) in sync_log
    assert {f"{location.uri}/tree", f"{location.uri}/tree/feat"} <= set(sync_log)


def test_deleting_a_fork_syncs_its_ref_before_its_files_go(
    tmp_path: Path, sync_log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut in between must not leave a ref whose files are gone."""
    root = graph_root(str(tmp_path / "graph"))
    storage = TableStorage(root)
    location = root.table("nodes/people")
    storage.create_table(location, SCHEMA)
    storage.fork_branch(location, 1, "feat/x")
    sync_log.clear()
    remove_tree = shutil.rmtree

    def removing(path: str) -> None:
        assert f"{location.uri}/_refs/branches" in sync_log
        remove_tree(path)

    monkeypatch.setattr(shutil, "rmtree", removing)
    storage.forks.delete(location.uri, "feat/x")

    assert f"{location.uri}/tree/feat" in sync_log


def test_a_publish_is_synced(tmp_path: Path, sync_log: list[str]) -> None:
    root = graph_root(str(tmp_path))
    manifest = ControlTable(root, "__manifest", key="object_id")
    manifest.create(row("a", 0))
    before = files(manifest.uri)
    assert before <= set(sync_log)
    sync_log.clear()

    manifest.merge_rows(pa.concat_tables([row("a", 1), row("b", 1)]), read_version=1)
    manifest.append(row("c", 1))
    manifest.set_metadata({"k": "v"})

    assert files(manifest.uri) - before <= set(sync_log)
    manifest.compact()
    assert files(manifest.uri) - before <= set(sync_log)


def test_a_text_is_synced_before_it_is_named(tmp_path: Path) -> None:
    with counting() as counters:
        LocalTextStore("power").write_text(str(tmp_path / "a/b/x"), "x")
        synced = counters.fsyncs
        LocalTextStore("process").write_text(str(tmp_path / "a/b/y"), "y")

    assert synced > 0
    assert counters.fsyncs == synced


def test_mode_process_syncs_nothing(tmp_path: Path, sync_log: list[str]) -> None:
    root = graph_root(str(tmp_path / "graph"))
    storage = TableStorage(root, durability="process")
    location = root.table("nodes/people")

    storage.create_table(location, SCHEMA)
    storage.commit_staged(storage.rows.stage_append(storage.open_at(location, 1), people(0, 3)))
    ControlTable(root, "__manifest", key="object_id", durability="process").create(row("a", 0))

    assert sync_log == []


def make_old(path: Path) -> None:
    """Let the clock of the file system go on from the last change of a directory."""
    changed_ns = path.stat().st_ctime_ns
    while time.time_ns() - changed_ns <= file_times.stable_after(changed_ns):
        time.sleep(0.005)


def test_a_directory_in_which_nothing_changed_is_synced_once(
    tmp_path: Path, sync_log: list[str]
) -> None:
    make_old(tmp_path)

    durability.sync_paths([str(tmp_path)])
    durability.sync_paths([str(tmp_path)])

    assert sync_log == [str(tmp_path)]


@pytest.mark.parametrize("change", ["add", "remove", "replace", "make again"])
def test_a_directory_that_changed_since_is_synced_again(
    tmp_path: Path, sync_log: list[str], change: str
) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / "old").touch()
    (tmp_path / "new").touch()
    make_old(directory)
    durability.sync_paths([str(directory)])

    match change:
        case "add":
            (directory / "new").touch()
        case "remove":
            (directory / "old").unlink()
        case "replace":
            os.replace(tmp_path / "new", directory / "old")
        case _:
            shutil.rmtree(directory)
            directory.mkdir()
            (directory / "old").touch()
    durability.sync_paths([str(directory)])

    assert sync_log == [str(directory)] * 2


def test_a_directory_that_has_just_changed_is_not_taken_for_synced(
    tmp_path: Path, sync_log: list[str]
) -> None:
    """A second change in the same tick of the clock would leave the same time."""
    (tmp_path / "new").touch()

    durability.sync_paths([str(tmp_path)])
    durability.sync_paths([str(tmp_path)])

    assert sync_log == [str(tmp_path)] * 2


def test_many_files_are_all_synced(tmp_path: Path, sync_log: list[str]) -> None:
    paths = [str(tmp_path / f"{number}") for number in range(50)]
    for path in paths:
        Path(path).touch()

    durability.sync_paths(paths)

    assert sorted(sync_log) == sorted(paths)
