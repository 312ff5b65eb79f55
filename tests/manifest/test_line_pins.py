"""Line pins: one read of a manifest says of every commit what a read of its own manifest says."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

import omnigraph as og
from omnigraph.manifest import GraphCommit
from omnigraph.manifest.coordinator import FRAGMENTS_MAX, Coordinator
from omnigraph.manifest.line_pins import LinePins
from omnigraph.manifest.line_reader import LineReader
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from omnigraph.testing.together import run_together
from tests.branch.people import CHANGES, SCHEMA, change, merged, new_people
from tests.depth import depth

pytestmark = pytest.mark.slow


def list_commits(graph: og.Graph) -> list[GraphCommit]:
    found = {each.commit_id: each for branch in graph.branches() for each in graph.commits(branch)}
    return list(found.values())


def compare(graph: og.Graph) -> int:
    """Compare all commits with their own manifests; how many were told by others."""
    coordinator, commits = inside(graph).coordinator, list_commits(graph)
    reader = LineReader(coordinator)
    random.Random(len(commits)).shuffle(commits)
    expected = {each.commit_id: coordinator.find_snapshot(each) for each in commits}
    with mock.patch.object(
        Coordinator, "find_snapshot", autospec=True, side_effect=Coordinator.find_snapshot
    ) as reading:
        for each in commits:
            found, snapshot = reader.find(each), expected[each.commit_id]
            assert (found is None) == (snapshot is None), each
            if found is not None and snapshot is not None:
                assert dict(found.entries) == dict(snapshot.entries), each
                assert found.manifest_version == snapshot.manifest_version
    return len(commits) - reading.call_count


def insert_together(graph: og.Graph, names: list[str]) -> None:
    """Several commits of one publish."""
    run_together(
        graph,
        [partial(graph.mutate, CHANGES, "person", {"name": each, "age": 3}) for each in names],
    )


def test_every_commit_shows_what_its_own_manifest_says(tmp_path: Path) -> None:
    """Over groups, branches, compactions, renamed, dropped and new types, and cleanups."""
    graph = new_people(tmp_path / "graph", self_care=False)
    for number in range(3):
        change(graph, "age", name="alice", age=number)
    insert_together(graph, ["eve", "finn", "gus"])
    graph.create_branch("side")
    for number in range(3):
        change(graph, "firm", "side", code=f"s{number}")
        change(graph, "age", name="bob", age=number)
    assert compare(graph) > 5

    inside(graph).coordinator.compact_if_due("main", fragments_max=2)
    graph.optimize()
    change(graph, "age", name="bob", age=9)
    assert compare(graph) > 5

    renamed = SCHEMA.replace("node Firm", 'node Company @rename_from("Firm")')
    renamed = renamed.replace("-> Firm", "-> Company") + "node Place { name: String @key }\n"
    graph.delete_branch("side")
    graph.apply_schema(renamed)
    for number in range(3):
        change(graph, "age", name="carol", age=number)
    insert_together(graph, ["hal", "ida"])
    assert compare(graph) > 2

    graph.cleanup(keep=4, confirm=True)
    change(graph, "age", name="carol", age=60)
    assert compare(graph) > 1
    assert graph.verify().errors == ()


@pytest.mark.parametrize("seed", range(depth(2, 30)))
def test_random_lines_show_what_their_manifests_say(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    graph = new_people(tmp_path / "graph", self_care=False)
    for step in range(depth(14, 40)):
        branch = chance.choice(graph.branches())
        match chance.randrange(8):
            case 0 | 1 | 2:
                change(graph, "age", branch, name="alice", age=step)
            case 3:
                change(graph, "firm", branch, code=f"c{step}")
            case 4:
                graph.create_branch(f"b{step}", branch)
            case 5:
                graph.optimize()
            case 6 if branch != "main":
                merged(graph, branch, "main", resolve="theirs")
            case 7:
                coordinator = inside(graph).coordinator
                coordinator.compact_if_due(branch, chance.choice([2, FRAGMENTS_MAX]))
    compare(graph)
    graph.cleanup(keep=chance.choice([1, 3]), confirm=True)

    compare(graph)


def test_a_line_is_read_once_however_many_commits_are_asked_for(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "graph", self_care=False)
    costs = []
    for count in (4, 12):
        for number in range(count):
            change(graph, "age", name="alice", age=number)
        reader = LineReader(inside(graph).coordinator)
        with counting() as counters:
            for each in graph.commits(limit=count):
                assert reader.find(each) is not None
        costs.append(counters.control_reads)

    assert costs == [2, 2]


def test_rows_that_were_written_again_are_not_trusted(tmp_path: Path) -> None:
    """A table that is hidden now was shown before: only the manifest of then tells."""
    graph = new_people(tmp_path / "graph", self_care=False)
    change(graph, "age", name="alice", age=1)
    before = graph.commits()[0]
    graph.apply_schema(SCHEMA.replace("edge WorksAt: Person -> Firm @card(0..1)\n", ""))
    coordinator = inside(graph).coordinator
    line = coordinator.read_line_pins(coordinator.fresh("main"))

    assert isinstance(line, LinePins)
    assert line.find(before) is None
    assert line.find(graph.commits()[0]) is not None
