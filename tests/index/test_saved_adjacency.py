"""Saved adjacency: mapped by a later open, gone on from after commits, made anew where damaged."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import omnigraph as og
from omnigraph.index import DerivedStore, OpenTables, RuntimeCache, sealed_file, thresholds
from omnigraph.index.adjacency import Endpoints, Relation, build_distinct_relation
from omnigraph.index.derived import DIRECTORY, RelationName
from omnigraph.index.notes import notes_to
from omnigraph.index.patches import patch_distinct
from omnigraph.index.runs import PatchedRuns
from omnigraph.index.saved_runs import SavedRuns
from omnigraph.index.sealed_file import SealedFile
from omnigraph.storage.counters import counting
from omnigraph.storage.tables import TableStorage
from omnigraph.testing.inside import inside
from tests.depth import depth
from tests.index.test_carry_over import (
    PEOPLE,
    SCHEMA,
    change,
    contents_anew,
    contents_of,
    knows,
    person,
)
from tests.index.test_patches import World, assert_same

NAME = RelationName("edges", ((1, "a"),))


@pytest.fixture
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "SMALL_TABLE_ROWS", 0)


@pytest.fixture
def graph(tmp_path: Path, large_tables: None) -> Iterator[og.Graph]:
    with og.init(tmp_path / "graph", schema=SCHEMA, durability="process") as made:
        people = [person(number) for number in range(PEOPLE)]
        edges = [knows(number, (number * 7 + 1) % PEOPLE) for number in range(PEOPLE)]
        made.load([*people, *edges], mode="overwrite")
        yield made


def reopened(graph: og.Graph) -> OpenTables:
    """What a process sees that opens the graph now: nothing is known but what is on disk."""
    cache = RuntimeCache(1 << 30, derived=DerivedStore(Path(graph.uri), is_writable=True))
    tables = TableStorage(inside(graph).store.tables.root)
    return OpenTables(graph.snapshot(), graph.catalog, tables, cache)


def files_of(graph: og.Graph) -> list[Path]:
    return sorted((Path(graph.uri) / DIRECTORY).glob("*.runs"))


def damage(path: Path, choice: random.Random) -> None:
    """Delete a file, cut it off, or flip one of its bytes."""
    whole = path.read_bytes()
    match choice.randrange(4):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(whole[: choice.randrange(len(whole))])
        case _:
            place = choice.randrange(len(whole))
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])


@pytest.mark.parametrize("seed", range(depth(6, 100)))
@pytest.mark.parametrize("both", [False, True])
def test_a_patch_of_a_mapped_relation_is_the_one_built_of_all_edges(
    tmp_path: Path, seed: int, both: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the time bytes of the file are flipped after it was mapped, before they are read."""
    monkeypatch.setattr(sealed_file, "BLOCK_BYTES", 64)
    world = World(np.random.default_rng(seed))
    built = build_distinct_relation(world.ends(), world.sizes, both=both)
    store = DerivedStore(tmp_path, is_writable=True)
    store.save(NAME, built)
    relation = store.load(NAME, lambda: built)
    assert relation is not None
    if seed % 2:
        [path] = (tmp_path / DIRECTORY).glob("*.runs")
        whole = path.read_bytes()
        header = whole.rindex(b"}") + 8  # with its checksum; it was read when the file was mapped
        with path.open("r+b") as file:
            for place in world.random.integers(header, len(whole), 8).tolist():
                file.seek(place)
                file.write(bytes([whole[place] ^ 2]))
    mapped, fresh = relation, built
    for _ in range(6):
        changes, moves = world.step(both)
        patched = patch_distinct(relation, world.sizes, changes, (moves, moves), both=both)
        assert patched is not None
        relation = patched
        assert_same(patched, build_distinct_relation(world.ends(), world.sizes, both=both))
    assert_same(mapped, fresh)


def test_the_neighbours_of_a_few_nodes_take_a_few_blocks_of_the_file(tmp_path: Path) -> None:
    size = 200_000
    sources = np.repeat(np.arange(size), 3)
    ends = Endpoints(sources, (sources + np.tile([1, 5, 7], size)) % size)
    store = DerivedStore(tmp_path, is_writable=True)
    store.save(NAME, build_distinct_relation(ends, (size, size)))
    [path] = (tmp_path / DIRECTORY).glob("*.runs")
    file = SealedFile(path)

    def build() -> Relation:
        raise AssertionError("it was built")

    runs = SavedRuns(file, "forward", lambda error: build().forward.flat)
    starts, stops = runs.runs(np.array([70_000]))
    found = runs.neighbours(np.arange(starts[0], stops[0]))

    assert found.tolist() == [70_001, 70_005, 70_007]
    assert file.blocks_checked == 2
    assert path.stat().st_size > 50 * sealed_file.BLOCK_BYTES

    everywhere = np.arange(runs.size)
    for _ in range(2 + runs.count // runs.size):
        starts, stops = runs.runs(everywhere)
    assert "flat" in vars(runs), "what is read as often as all of it is held"
    assert runs.neighbours(np.arange(starts[70_000], stops[70_000])).tolist() == found.tolist()


@pytest.mark.slow
def test_an_open_after_commits_goes_on_from_what_was_saved_before_them(graph: og.Graph) -> None:
    reopened(graph).edges("Knows").distinct(both=False)
    graph.load([person(100), knows(100, 3), knows(4, 100)], mode="merge")
    graph.mutate("query q($n: I64) { delete Knows where since = $n }", params={"n": 9})
    tables, notes = reopened(graph), list[str]()

    with counting() as counters, notes_to(lambda text, rows=None: notes.append(text)):
        found = tables.edges("Knows").distinct(both=False)

    assert any("mapped the saved adjacency" in each for each in notes), notes
    assert any("carried the adjacency" in each for each in notes), notes
    assert not any("built" in each for each in notes)
    assert isinstance(found.forward, PatchedRuns)
    # The row ids of the people, and what came and went; to build it, both ends of every edge too.
    assert counters.rows_scanned < PEOPLE + 10
    anew = contents_anew(graph)
    assert contents_of(tables) == anew


@pytest.mark.slow
def test_an_open_after_a_cleanup_builds_what_it_cannot_go_on_from(graph: og.Graph) -> None:
    reopened(graph).edges("Knows").distinct(both=False)
    saved = files_of(graph)
    graph.load([knows(1, 2)], mode="append")
    kept = {path: path.read_bytes() for path in saved}
    graph.optimize()
    graph.cleanup(keep=1, confirm=True)
    for path, data in kept.items():
        path.write_bytes(data)

    assert contents_of(reopened(graph)) == contents_anew(graph)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(depth(2, 40)))
def test_whatever_happens_to_saved_files_the_answers_are_those_of_a_fresh_build(
    graph: og.Graph, seed: int
) -> None:
    """Loads, updates, deletes, branches, merges and compactions, and a file damaged at random."""
    choice = random.Random(seed)
    for _ in range(8):
        change(graph, choice)
        files = files_of(graph)
        if files and choice.random() < 0.5:
            damage(choice.choice(files), choice)

        assert contents_of(reopened(graph)) == contents_anew(graph)
