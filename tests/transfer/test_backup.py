"""A backup is a list of hashes, whole or not there; restoring proves every one of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BackupNotFound,
    ConflictError,
    DamagedFile,
    GraphExists,
    OmnigraphError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.testing.crash import run_spawned
from tests.depth import sample
from tests.graph.reading import SCHEMA, add, names, new_graph
from tests.storage.conftest import Store
from tests.transfer.conftest import OPTIONS, failing_at, find_damage, show

pytestmark = pytest.mark.slow


def back_up(home: Path | str, vault: Path | str, **options: object) -> og.TransferResult:
    with og.open(home, **OPTIONS) as graph:
        return graph.backup(vault, **options)  # type: ignore[arg-type]


def list_backups(vault: Path) -> list[str]:
    return sorted(each.stem for each in vault.glob("backups/*.json"))


def restore(vault: Path | str, target: Path | str, **options: object) -> og.TransferResult:
    return og.restore_backup(vault, target, durability="process", **options)  # type: ignore[arg-type]


def test_a_backup_restores_the_whole_graph(home: Path, tmp_path: Path) -> None:
    before = show(home)
    back_up(home, tmp_path / "vault")
    shutil.rmtree(home)

    found = restore(tmp_path / "vault", tmp_path / "back")

    assert show(tmp_path / "back") == before
    assert found.commits == len(before["commits"])
    assert find_damage(tmp_path / "back") == []


def test_a_backup_stores_what_is_new(home: Path, tmp_path: Path) -> None:
    """And every backup stays: each restores the state it was made of."""
    vault = tmp_path / "vault"
    first, states = back_up(home, vault), [show(home)]
    assert back_up(home, vault) == og.TransferResult(0, 0, 0)

    with og.open(home, **OPTIONS) as graph:
        add(graph, "person", name="late")
        graph.delete_branch("team/b")
        graph.create_branch("team/b")
        add(graph, "person", branch="team/b", name="second life")
    second, states = back_up(home, vault), [*states, show(home)]

    assert second.files < first.files / 2
    assert second.commits == 1
    for state, name in zip(states, [list_backups(vault)[0], None], strict=True):
        target = tmp_path / f"back {name}"
        restore(vault, target, name=name)
        assert show(target) == state
        assert find_damage(target) == []


def test_a_backup_that_fails_anywhere_is_none_and_goes_on(home: Path, tmp_path: Path) -> None:
    with arm_failpoints({Failpoint.TRANSFER_BEFORE_FILE: "count"}) as hits:
        back_up(home, tmp_path / "counted")
        count = hits[Failpoint.TRANSFER_BEFORE_FILE]

    for number in sample(range(1, count + 1), every=18):
        vault, target = tmp_path / f"vault{number}", tmp_path / f"back{number}"
        with failing_at(Failpoint.TRANSFER_BEFORE_FILE, number):
            back_up(home, vault)
        with pytest.raises(BackupNotFound):
            restore(vault, target)

        assert back_up(home, vault).files == count - number + 1
        restore(vault, target)
        assert show(target) == show(home)


def test_a_backup_that_is_killed_is_none(home: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    arguments = {"src": str(home), "dst": str(vault), "arm": "transfer.before_claim=kill"}

    died = run_spawned("tests.transfer.work:backup", arguments)

    assert died.was_killed, died.error
    assert list_backups(vault) == []
    assert back_up(home, vault).files == 0
    assert len(list_backups(vault)) == 1


def test_a_restore_that_fails_does_not_open_and_goes_on(home: Path, tmp_path: Path) -> None:
    vault, target = tmp_path / "vault", tmp_path / "back"
    back_up(home, vault)

    with failing_at(Failpoint.TRANSFER_BEFORE_FILE, 20):
        restore(vault, target)
    with pytest.raises(OmnigraphError):
        og.open(target, mode="r")
    restore(vault, target)

    assert show(target) == show(home)
    with pytest.raises(GraphExists):
        restore(vault, target)


def test_damage_in_a_backup_is_refused_and_named(home: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    back_up(home, vault)

    for number, path in enumerate(sample(sorted(vault.glob("objects/*/*")), every=6)):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(DamagedFile, match=path.name):
            restore(vault, tmp_path / f"back{number}")
        with pytest.raises(OmnigraphError):
            og.open(tmp_path / f"back{number}", mode="r")
        path.unlink()
        with pytest.raises(OmnigraphError):
            restore(vault, tmp_path / f"again{number}")
        path.write_bytes(whole)


def test_a_damaged_list_is_refused(home: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    back_up(home, vault)
    path = next(vault.glob("backups/*.json"))
    facts = json.loads(path.read_text())
    facts["texts"].pop("__tags/v1.json")
    path.write_text(json.dumps(facts))

    with pytest.raises(StorageError, match="is damaged"):
        restore(vault, tmp_path / "back")


def test_a_backup_of_a_damaged_graph_is_refused(home: Path, tmp_path: Path) -> None:
    path = next(home.glob("nodes/*/data/*.lance"))
    path.write_bytes(path.read_bytes()[:-9] + bytes(9))

    with pytest.raises(DamagedFile, match=path.name):
        back_up(home, tmp_path / "vault")

    assert list_backups(tmp_path / "vault") == []


def test_backups_of_two_graphs_do_not_mix(home: Path, tmp_path: Path) -> None:
    back_up(home, tmp_path / "vault")
    new_graph(tmp_path / "other").close()

    with pytest.raises(ConflictError, match="another graph"):
        back_up(tmp_path / "other", tmp_path / "vault")


def test_backups_live_on_an_object_store(home: Path, tmp_path: Path, s3_store: Store) -> None:
    uri, options = s3_store.root.uri, s3_store.storage_options
    back_up(home, uri, storage_options=options)

    restore(uri, tmp_path / "back", storage_options=options, target_options={})

    assert show(tmp_path / "back") == show(home)
    assert find_damage(tmp_path / "back") == []


@pytest.mark.parametrize("died", ["apply", "push"])
def test_a_graph_is_copied_although_a_schema_change_died_after_its_publish(
    tmp_path: Path, died: str
) -> None:
    """Its schema files are those of before, until the next write opens it."""
    graph = new_graph(tmp_path / "graph", self_care=False)
    add(graph, "person", name="ann")
    og.clone(graph.uri, tmp_path / "away", durability="process")
    wider = SCHEMA + "\nnode City { name: String @key }\n"
    with og.open(tmp_path / "away", **OPTIONS) as away:
        away.apply_schema(wider)
        change: Callable[[], object] = lambda: away.push(graph.uri)  # noqa: E731
        if died == "apply":
            change = lambda: graph.apply_schema(wider)  # noqa: E731
        point = Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT
        with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
            change()

    og.clone(graph.uri, tmp_path / "copy", durability="process")
    graph.backup(tmp_path / "backup")
    og.restore_backup(tmp_path / "backup", tmp_path / "restored", durability="process")

    for name in ("copy", "restored"):
        with og.open(tmp_path / name, **OPTIONS) as copy:
            assert copy.schema == (tmp_path / name / "_schema.pg").read_text() == wider
            copy.mutate('query q() { insert City { name: "Rome" } }')
            assert names(copy) == ["ann"]
        assert find_damage(tmp_path / name) == []
