"""Manifests changed as bytes: what pylance reads back from them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.lance_manifest import (
    list_bases,
    manifest_bytes,
    manifest_in,
    rename_in_manifest,
    replace_base_paths,
    with_manifest,
)

_ROWS = pa.table(
    {"id": ["a", "b"], "x": [1, 2], "tags": pa.array([["x"], []], pa.list_(pa.utf8()))}
)


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(
        _ROWS, str(tmp_path / "old" / "t"), enable_stable_row_ids=True, data_storage_version="2.2"
    )


def test_a_renamed_column_is_read_and_filtered_under_its_new_name(
    dataset: lance.LanceDataset,
) -> None:
    renamed = rename_in_manifest(manifest_bytes(dataset), {"x": "a longer name", "tags": "x"})

    shown = lance.LanceDataset(dataset.uri, version=1, serialized_manifest=renamed)

    assert shown.schema.names == ["id", "a longer name", "x"]
    assert shown.to_table(filter="`a longer name` = 2").to_pylist() == [
        {"id": "b", "a longer name": 2, "x": []}
    ]
    assert dataset.to_table().equals(_ROWS)


def test_items_of_a_list_are_not_renamed_with_a_column_of_that_name(
    dataset: lance.LanceDataset,
) -> None:
    manifest = manifest_bytes(dataset)

    assert rename_in_manifest(manifest, {"item": "other"}) == manifest


def test_a_fork_whose_base_paths_are_replaced_is_read_at_its_new_place(
    dataset: lance.LanceDataset, tmp_path: Path
) -> None:
    dataset.create_branch("a/b", (None, 1))
    (tmp_path / "old").rename(tmp_path / "a longer new name")
    moved = tmp_path / "a longer new name" / "t"
    fork = lance.dataset(f"{moved}/tree/a/b")
    manifest = manifest_bytes(fork)
    assert [path for _, path in list_bases(manifest)] == [str(tmp_path / "old" / "t")]

    changed = replace_base_paths(manifest, {str(tmp_path / "old" / "t"): str(moved)})

    shown = lance.LanceDataset(fork.uri, version=1, serialized_manifest=changed)
    assert shown.to_table().equals(_ROWS)


def test_a_version_file_with_another_manifest_is_one_that_lance_opens(
    dataset: lance.LanceDataset, tmp_path: Path
) -> None:
    (file,) = (tmp_path / "old" / "t" / "_versions").glob("*.manifest")
    before = file.read_bytes()
    assert with_manifest(before, manifest_in(before)) == before

    file.write_bytes(
        with_manifest(before, rename_in_manifest(manifest_in(before), {"x": "renamed"}))
    )

    reopened = lance.dataset(dataset.uri, session=lance.Session())  # type: ignore[attr-defined]
    assert reopened.schema.names[1] == "renamed"


@pytest.mark.parametrize("length", [0, 3, 20, -1])
def test_a_cut_version_file_is_refused(
    dataset: lance.LanceDataset, tmp_path: Path, length: int
) -> None:
    (file,) = (tmp_path / "old" / "t" / "_versions").glob("*.manifest")

    with pytest.raises(ValueError, match=r"manifest|version"):
        manifest_in(file.read_bytes()[:length])
