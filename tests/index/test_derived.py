"""Derived files: mapped when they are whole, rebuilt when they are not, never needed."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from omnigraph.index.adjacency import Endpoints, Relation, build_distinct_relation
from omnigraph.index.derived import DIRECTORY, ENTRIES_MAX, DerivedStore, RelationName
from omnigraph.index.sealed_file import SealedFile

ENDS = Endpoints(np.array([0, 2, 0]), np.array([1, 0, 2]))
NAME = RelationName("edges", ((1, "a"),))


def name_in(root: Path, version: int) -> RelationName:
    return RelationName(f"('{root}/edges/1', None)", ((version, "a"),))


def load(store: DerivedStore, name: RelationName = NAME) -> Relation | None:
    """Map a relation that is whole: nothing is built for it."""

    def build() -> Relation:
        raise AssertionError("it was built")

    return store.load(name, build)


@pytest.fixture
def relation() -> Relation:
    return build_distinct_relation(ENDS, (3, 3))


def test_a_saved_relation_is_mapped_by_the_next_open(tmp_path: Path, relation: Relation) -> None:
    DerivedStore(tmp_path, is_writable=True).save(NAME, relation)

    found = load(DerivedStore(tmp_path, is_writable=False))

    assert found is not None
    assert found.forward.flat.targets.tolist() == relation.forward.flat.targets.tolist()
    assert found.backward.flat.offsets.tolist() == relation.backward.flat.offsets.tolist()


def test_a_graph_that_was_moved_maps_what_it_kept(tmp_path: Path, relation: Relation) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    DerivedStore(here, is_writable=True).save(name_in(here, 3), relation)
    here.rename(there)

    moved = DerivedStore(there, is_writable=False)

    assert load(moved, name_in(there, 3)) is not None
    assert load(moved, name_in(there, 4)) is None


def test_a_symmetric_relation_stays_symmetric(tmp_path: Path) -> None:
    store = DerivedStore(tmp_path, is_writable=True)
    store.save(RelationName("both", ((1, None),)), build_distinct_relation(ENDS, (3, 3), both=True))

    found = load(store, RelationName("both", ((1, None),)))

    assert found is not None
    assert found.forward is found.backward


def test_a_read_only_graph_writes_nothing(tmp_path: Path, relation: Relation) -> None:
    DerivedStore(tmp_path, is_writable=False).save(NAME, relation)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["truncate", "delete"])
def test_a_damaged_file_is_not_used(tmp_path: Path, relation: Relation, damage: str) -> None:
    store = DerivedStore(tmp_path, is_writable=True)
    store.save(NAME, relation)
    [victim] = (tmp_path / DIRECTORY).glob("*.runs")

    if damage == "delete":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-8])

    assert load(store) is None


def test_another_name_is_another_relation(tmp_path: Path, relation: Relation) -> None:
    store = DerivedStore(tmp_path, is_writable=True)
    store.save(NAME, relation)

    assert load(store, RelationName("edges", ((2, "a"),))) is None


def test_the_oldest_relations_make_room(tmp_path: Path, relation: Relation) -> None:
    store = DerivedStore(tmp_path, is_writable=True)

    for place in range(ENTRIES_MAX + 3):
        store.save(RelationName(f"edges {place}", ((1, None),)), relation)

    assert len(list((tmp_path / DIRECTORY).iterdir())) == ENTRIES_MAX
    assert load(store, RelationName(f"edges {ENTRIES_MAX + 2}", ((1, None),))) is not None


def test_two_versions_of_a_relation_stay_and_one_after_a_cleanup(
    tmp_path: Path, relation: Relation
) -> None:
    """Each is as large as the first: a graph that is written to would fill the disk with them."""
    store = DerivedStore(tmp_path, is_writable=True)
    names = [RelationName("edges", ((version, None),)) for version in range(4)]
    other = RelationName("other edges", ((1, None),))
    (tmp_path / DIRECTORY / "nameofanearlierrelease").mkdir(parents=True)
    store.save(other, relation)
    for name in names:
        store.save(name, relation)
        time.sleep(0.01)  # what was written last is told by the time of the file

    kept = [load(store, name) is not None for name in names]
    store.remove_superseded()

    assert kept == [False, False, True, True]
    assert [load(store, name) is not None for name in (*names, other)] == [*[False] * 3, True, True]
    assert len(list((tmp_path / DIRECTORY).iterdir())) == 2


@pytest.mark.parametrize(("nodes", "width"), [(200, 1), (60_000, 2), (70_000, 4)])
def test_positions_take_as_many_bytes_as_they_need(tmp_path: Path, nodes: int, width: int) -> None:
    """In memory they are as before: code that computes with them must not overflow."""
    ends = Endpoints(np.array([0, nodes - 1]), np.array([nodes - 1, 1]))
    relation = build_distinct_relation(ends, (nodes, nodes))
    store = DerivedStore(tmp_path, is_writable=True)

    store.save(NAME, relation)

    [file] = (tmp_path / DIRECTORY).glob("*.runs")
    assert SealedFile(file).sections["forward.targets"].all().itemsize == width
    found = load(store)
    assert found is not None
    assert found.forward.flat.targets.dtype == relation.forward.flat.targets.dtype == np.int64
    assert found.forward.flat.offsets.dtype == relation.forward.flat.offsets.dtype
    assert found.forward.flat.targets.tolist() == [nodes - 1, 1]
