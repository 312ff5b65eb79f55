"""Derived files: mapped when they are whole, rebuilt when they are not, never needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from omnigraph.index.adjacency import Endpoints, Relation, build_distinct_relation
from omnigraph.index.derived import DIRECTORY, ENTRIES_MAX, DerivedStore

ENDS = Endpoints(np.array([0, 2, 0]), np.array([1, 0, 2]))


@pytest.fixture
def relation() -> Relation:
    return build_distinct_relation(ENDS, (3, 3))


def test_a_saved_relation_is_mapped_by_the_next_open(tmp_path: Path, relation: Relation) -> None:
    DerivedStore(tmp_path, is_writable=True).save("name", relation)

    found = DerivedStore(tmp_path, is_writable=False).load("name")

    assert found is not None
    assert found.forward.targets.tolist() == relation.forward.targets.tolist()
    assert found.backward.flat.offsets.tolist() == relation.backward.flat.offsets.tolist()


def test_a_graph_that_was_moved_maps_what_it_kept(tmp_path: Path, relation: Relation) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    DerivedStore(here, is_writable=True).save(f"('{here}/edges/1', None, 3)", relation)
    here.rename(there)

    moved = DerivedStore(there, is_writable=False)

    assert moved.load(f"('{there}/edges/1', None, 3)") is not None
    assert moved.load(f"('{there}/edges/1', None, 4)") is None


def test_a_symmetric_relation_stays_symmetric(tmp_path: Path) -> None:
    store = DerivedStore(tmp_path, is_writable=True)
    store.save("both", build_distinct_relation(ENDS, (3, 3), both=True))

    found = store.load("both")

    assert found is not None
    assert found.forward is found.backward


def test_a_read_only_graph_writes_nothing(tmp_path: Path, relation: Relation) -> None:
    DerivedStore(tmp_path, is_writable=False).save("name", relation)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["truncate", "delete"])
def test_a_damaged_file_is_not_used(tmp_path: Path, relation: Relation, damage: str) -> None:
    store = DerivedStore(tmp_path, is_writable=True)
    store.save("name", relation)
    victim = next((tmp_path / DIRECTORY).glob("*/forward.targets.npy"))

    if damage == "delete":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-8])

    assert store.load("name") is None


def test_another_name_is_another_relation(tmp_path: Path, relation: Relation) -> None:
    store = DerivedStore(tmp_path, is_writable=True)
    store.save("version 1", relation)

    assert store.load("version 2") is None


def test_the_oldest_relations_make_room(tmp_path: Path, relation: Relation) -> None:
    store = DerivedStore(tmp_path, is_writable=True)

    for place in range(ENTRIES_MAX + 3):
        store.save(f"name {place}", relation)

    assert len(list((tmp_path / DIRECTORY).iterdir())) == ENTRIES_MAX
    assert store.load(f"name {ENTRIES_MAX + 2}") is not None
