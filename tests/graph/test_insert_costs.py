"""What one durable insert of one row costs, in things that can be counted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph as og
from omnigraph.storage import durability
from omnigraph.storage.counters import Counters, counting
from omnigraph.testing.together import run_together

SCHEMA = "node Person { slug: String @key  age: I32? }\n"
INSERT = "query add($slug: String) { insert Person { slug: $slug, age: 1 } }"
WARM_UP = 4
"""Inserts after which all directories are there and have been for a while."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    path = tmp_path_factory.mktemp("costs") / "graph"
    with og.init(path, schema=SCHEMA) as opened:
        for number in range(WARM_UP):
            opened.mutate(INSERT, "add", {"slug": f"warm{number}"})
        yield opened


def insert(graph: og.Graph, slug: str) -> Counters:
    with counting() as counters:
        graph.mutate(INSERT, "add", {"slug": slug})
    return counters


def list_files(top: str) -> set[str]:
    return {os.path.join(at, name) for at, _, names in os.walk(top) for name in names}


def test_an_insert_is_one_commit_of_its_table_and_one_publish(graph: og.Graph) -> None:
    counters = insert(graph, "a")

    assert (counters.commits, counters.control_merges) == (1, 1)
    assert (counters.control_reads, counters.text_reads) == (0, 0)
    assert (counters.text_writes, counters.text_deletes) == (1, 1)  # the sidecar


def test_an_insert_syncs_no_directory_in_which_nothing_changed(graph: og.Graph) -> None:
    """Five files and the five directories they lie in, the sidecar and twice its directory."""
    assert insert(graph, "b").fsyncs == 5 + 5 + 1 + 2


def test_an_insert_adds_five_files(graph: og.Graph) -> None:
    top = graph.uri
    before = list_files(top)
    insert(graph, "c")
    added = [os.path.relpath(path, top) for path in list_files(top) - before]

    folders = sorted(path.split("/")[-2] for path in added)
    assert folders == ["_deletions", "_versions", "_versions", "data", "data"]


def test_an_insert_waits_for_the_disk_four_times(graph: og.Graph) -> None:
    """What was staged and the sidecar, its name, the table, the manifest: each before the next."""
    assert insert(graph, "d").sync_waits == 4


def test_rows_are_on_the_disk_before_the_sidecar_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovery trusts what a sidecar names, so its rows may not be missing after a power cut."""
    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    synced: list[str] = []
    real_sync, real_replace = durability.sync_path, os.replace

    def syncing(path: str) -> None:
        real_sync(path)
        synced.append(path)

    def replacing(source: str, target: str) -> None:
        if "__recovery" in target:
            assert source in synced
            assert any(path.endswith(".lance") for path in synced)
        real_replace(source, target)

    monkeypatch.setattr(durability, "sync_path", syncing)
    monkeypatch.setattr(os, "replace", replacing)
    with graph:
        graph.mutate(INSERT, "add", {"slug": "a"})

    assert any("__recovery" in path for path in synced)


def test_a_group_needs_no_commit_of_lance_and_waits_as_often_as_one_insert(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each member still has a version, of which Lance opens the last, and that of the publish."""
    real, commits = lance.LanceDataset.commit, list[str]()

    def commit(base: lance.LanceDataset, *args: Any, **options: Any) -> Any:
        commits.append(Path(base.uri).parent.name)
        return real(base, *args, **options)

    monkeypatch.setattr(lance.LanceDataset, "commit", commit)
    # The first of them leads, and what its thread does is counted.
    counters, *_ = run_together(graph, [partial(insert, graph, f"member{n}") for n in range(8)])

    assert commits == []
    assert (counters.commits, counters.opens, counters.control_merges) == (8, 2, 1)
    assert counters.sync_waits == 4
