"""Scratch: what a load leaves when it dies is gone at the next one, and no live load loses any."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from ulid import ULID

from omnigraph.storage import scratch
from omnigraph.storage.location import graph_root
from omnigraph.storage.scratch import (
    ABANDONED_SECONDS,
    DIRECTORY,
    FRAMES_PREFIX,
    open_scratch,
    sweep,
)
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text import open_text_store
from tests.storage.conftest import Store


@pytest.fixture
def tables(tmp_path: Path) -> TableStorage:
    return TableStorage(graph_root(str(tmp_path)))


def list_scratch(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "__load").iterdir())


def test_scratch_has_its_lock_from_the_moment_it_has_its_name(
    tables: TableStorage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[str, bool]] = []
    rename = os.rename

    def watch(old: str, new: str) -> None:
        seen.append((Path(new).name, Path(old, "lock").exists()))
        rename(old, new)

    monkeypatch.setattr(os, "rename", watch)
    opened = open_scratch(tables, {})

    assert seen == [(opened.load_id, True)]
    opened.close()
    assert list_scratch(tmp_path) == []


@pytest.mark.parametrize("files", [[], ["lock"], ["nodes/data.lance"]])
def test_half_removed_scratch_is_gone_at_the_next_sweep(
    tables: TableStorage, tmp_path: Path, files: list[str]
) -> None:
    for suffix in ("", ".gone"):
        folder = tmp_path / "__load" / f"01ARZ3NDEKTSV4RRFFQ69G5FAV{suffix}"
        folder.mkdir(parents=True)
        for name in files:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()

    assert sweep(tables, {}) == 2
    assert list_scratch(tmp_path) == []


def test_a_removal_that_dies_leaves_nothing_that_looks_alive(
    tables: TableStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_scratch(tables, {})

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(opened._texts), "delete_prefix", die)
        with pytest.raises(KeyboardInterrupt):
            opened.close()

    assert list_scratch(tmp_path) == [f"{opened.load_id}.gone"]
    assert sweep(tables, {}) == 1
    assert list_scratch(tmp_path) == []


def test_live_scratch_stays_also_while_it_is_being_made(
    tables: TableStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_scratch(tables, {})
    monkeypatch.setattr(scratch, "_live", set())  # as another process sees it
    young = tmp_path / "__load" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.new"
    young.mkdir()
    old = tmp_path / "__load" / "01ARZ3NDEKTSV4RRFFQ69G5FAW.new"
    old.mkdir()
    os.utime(old, (time.time() - 61, time.time() - 61))

    assert sweep(tables, {}) == 1
    assert list_scratch(tmp_path) == sorted([young.name, opened.load_id])
    opened.leave()
    assert sweep(tables, {}) == 1
    assert list_scratch(tmp_path) == [young.name]


@pytest.mark.parametrize("prefix", ["", FRAMES_PREFIX])
def test_scratch_of_a_dead_load_on_an_object_store_is_swept(s3_store: Store, prefix: str) -> None:
    texts = open_text_store(s3_store.root, s3_store.storage_options)
    tables = TableStorage(s3_store.root, s3_store.storage_options)
    old = ULID.from_timestamp(time.time() - 2 * ABANDONED_SECONDS)
    top = s3_store.root.child(DIRECTORY)
    for each in (old, ULID()):
        texts.write_text(f"{top}/{prefix}{each}/part.jsonl", "{}")
    texts.write_text(f"{top}/{prefix}of another load/part.jsonl", "{}")

    assert sweep(tables, s3_store.storage_options) == 1

    assert not texts.exists(f"{top}/{prefix}{old}")
    assert len(texts.list_folders(top)) == 2
