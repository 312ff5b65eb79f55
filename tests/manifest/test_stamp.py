"""The internal schema stamp: older manifests are brought up, newer ones are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import InvariantViolated, StorageError
from omnigraph.manifest.stamp import COMMON_VERSION, STAMP, migrate, read_stamp
from omnigraph.storage.control import ControlTable
from omnigraph.testing.inside import inside
from omnigraph.version import INTERNAL_SCHEMA_VERSION
from tests.graph.reading import add, names, new_graph, reopen, sidecars


def manifest_of(graph: og.Graph) -> ControlTable:
    return inside(graph).store.manifest


def make_old(graph: og.Graph, stamp: int, *branches: str) -> None:
    """Give a graph the stamp of an older Omnigraph, and the staging branches it left."""
    control = manifest_of(graph)
    for name in branches:
        control.create_branch(name, source=None, version=control.latest_version())
    control.set_metadata({STAMP: str(stamp)})


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = new_graph(tmp_path / "graph")
    add(graph, "person", name="ann")
    return graph


def test_a_new_graph_is_born_current(graph: og.Graph) -> None:
    assert read_stamp(manifest_of(graph)) == COMMON_VERSION == 4
    assert migrate(manifest_of(graph)) is False


@pytest.mark.accepts("S-010", "S-150")
def test_a_read_write_open_sweeps_the_staging_branches_of_old_runs(graph: og.Graph) -> None:
    graph.create_branch("keep")
    make_old(graph, 2, "__run__01ABC", "__run__x")
    assert "__run__x" in graph.branches()

    again = reopen(graph)

    assert again.branches() == ["main", "keep"]
    assert read_stamp(manifest_of(again)) == COMMON_VERSION
    assert names(again) == ["ann"]
    again.create_branch("__run__x")
    assert "__run__x" in reopen(again).branches()


@pytest.mark.accepts("S-150")
def test_a_read_only_open_migrates_nothing(graph: og.Graph) -> None:
    make_old(graph, 2, "__run__x")
    before = manifest_of(graph).latest_version()

    reader = reopen(graph, mode="r")

    assert names(reader) == ["ann"]
    assert manifest_of(graph).latest_version() == before
    assert read_stamp(manifest_of(graph)) == 2


@pytest.mark.accepts("S-151")
def test_a_write_on_a_handle_opened_before_migrates_as_well(graph: og.Graph) -> None:
    """An older Omnigraph came by while this handle was open."""
    make_old(graph, 2, "__run__x")

    add(graph, "person", name="bob")

    assert read_stamp(manifest_of(graph)) == COMMON_VERSION
    assert graph.branches() == ["main"]
    assert names(graph) == ["ann", "bob"]


@pytest.mark.accepts("S-152")
def test_migration_happens_once(graph: og.Graph) -> None:
    make_old(graph, 2, "__run__x")
    reopen(graph)
    version = manifest_of(graph).latest_version()

    reopen(graph)
    reopen(graph)
    assert migrate(manifest_of(graph)) is False
    assert manifest_of(graph).latest_version() == version

    add(graph, "person", name="bob")
    assert manifest_of(graph).latest_version() == version + 1


@pytest.mark.accepts("S-152")
def test_a_migration_that_died_half_way_is_finished(graph: og.Graph) -> None:
    make_old(graph, 2, "__run__x", "__run__y")
    manifest_of(graph).delete_branch("__run__x")

    assert reopen(graph).branches() == ["main"]


def test_a_manifest_without_a_key_gets_one(graph: og.Graph) -> None:
    """Stamp 1, which an absent stamp means: no row-level fence yet."""
    path = f"{graph.uri}/__manifest"
    rows = lance.dataset(path).to_table()
    bare = pa.schema([field.remove_metadata() for field in rows.schema])
    shutil.rmtree(path)
    lance.write_dataset(
        rows.cast(bare), path, enable_stable_row_ids=True, data_storage_version="2.2"
    )
    assert manifest_of(graph).primary_key() == []
    assert read_stamp(manifest_of(graph)) == 1

    again = reopen(graph)

    assert manifest_of(again).primary_key() == ["object_id"]
    assert read_stamp(manifest_of(again)) == COMMON_VERSION
    assert add(again, "person", name="bob").affected_nodes == 1
    assert names(again) == ["ann", "bob"]


def test_a_manifest_with_another_key_is_refused(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(graph, 1)
    monkeypatch.setattr(ControlTable, "primary_key", lambda *_, **__: ["table_key"])

    with pytest.raises(InvariantViolated, match="cannot be changed"):
        migrate(manifest_of(graph))

    assert read_stamp(manifest_of(graph)) == 1


@pytest.mark.parametrize("mode", ["rw", "r"])
def test_a_graph_of_a_newer_omnigraph_is_refused(graph: og.Graph, mode: str) -> None:
    make_old(graph, INTERNAL_SCHEMA_VERSION + 1)
    before = manifest_of(graph).latest_version()

    with pytest.raises(StorageError, match="upgrade Omnigraph first"):
        reopen(graph, mode=mode)

    assert manifest_of(graph).latest_version() == before


def test_a_live_handle_does_not_write_to_a_graph_that_became_newer(graph: og.Graph) -> None:
    make_old(graph, INTERNAL_SCHEMA_VERSION + 1)
    before = manifest_of(graph).latest_version()

    for act in (lambda: add(graph, "person", name="bob"), graph.snapshot):
        with pytest.raises(StorageError, match="upgrade Omnigraph first"):
            act()

    assert manifest_of(graph).latest_version() == before
    assert sidecars(graph) == []
