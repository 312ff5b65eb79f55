"""Line states: one read of a manifest says of versions and commits what their own say."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError, VersionNotFound
from omnigraph.manifest import GraphCommit, ManifestState
from omnigraph.manifest.checks import Check
from omnigraph.manifest.commit_states import CommitStates
from omnigraph.manifest.coordinator import FRAGMENTS_MAX
from omnigraph.manifest.line_reader import LineReader
from omnigraph.manifest.line_states import LineStates
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
    expected = {each.commit_id: coordinator.commit_states.find(each) for each in commits}
    with mock.patch.object(
        CommitStates, "find_placed", autospec=True, side_effect=CommitStates.find_placed
    ) as reading:
        for each in commits:
            found, snapshot = reader.find(each), expected[each.commit_id]
            assert (found is None) == (snapshot is None), each
            if found is not None and snapshot is not None:
                assert dict(found.entries) == dict(snapshot.entries), each
                assert found.manifest_version == snapshot.manifest_version
    return len(commits) - reading.call_count


def compare_versions(graph: og.Graph) -> int:
    """Compare every stored version of every branch with itself; how many were told by others."""
    coordinator, told = inside(graph).coordinator, 0
    for branch in graph.branches():
        newest = coordinator.fresh(branch)
        line = coordinator.read_line_states(newest)
        found = {each: line.at(each) for each in range(1, newest.version + 1)}
        with mock.patch.object(LineStates, "at", return_value=None):
            for version, state in found.items():
                with suppress(VersionNotFound):
                    expected = coordinator.at_version(branch, version)
                    assert state is None or assert_same(state, expected)
                    told += state is not None
    return told


def compare_branches(graph: og.Graph, path: Path) -> int:
    """Compare what a new handle makes of each branch with a read of it; how many it read."""
    with og.open(path, mode="r") as other:  # which has read main only
        coordinator = inside(other).coordinator
        with counting() as counters:
            found = list(coordinator.fresh_each(coordinator.branches()))
        assert [each.branch for each in found] == graph.branches()
        for state in found:
            assert_same(state, coordinator.states.read_anew(state.branch))
    return counters.control_reads


def assert_same(found: ManifestState, expected: ManifestState) -> bool:
    assert found == expected
    assert found.pinned == expected.pinned
    assert list(found.entries) == list(expected.entries)
    for one, other in (
        (found.commit_rows, expected.commit_rows),
        (found.ancestor_rows, expected.ancestor_rows),
    ):
        assert one.sort_by("object_id").equals(other.sort_by("object_id"))
    return True


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
    assert compare_versions(graph) > 8

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
    assert compare_versions(graph) > 2

    graph.cleanup(keep=4, confirm=True)
    change(graph, "age", name="carol", age=60)
    assert compare(graph) > 1
    compare_versions(graph)
    assert graph.verify().errors == ()


@pytest.mark.parametrize("seed", range(depth(2, 30)))
def test_random_lines_show_what_their_manifests_say(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    graph = new_people(tmp_path / "graph", self_care=False)
    for step in range(depth(14, 40)):
        branch = chance.choice(graph.branches())
        match chance.randrange(9):
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
            case 8 if branch != "main":
                with suppress(ConflictError):  # another branch comes from what would be dropped
                    graph.reset_branch(branch, f"{branch}~1")
    compare(graph)
    compare_versions(graph)
    compare_branches(graph, tmp_path / "graph")
    graph.cleanup(keep=chance.choice([1, 3]), confirm=True)

    compare(graph)
    compare_versions(graph)
    compare_branches(graph, tmp_path / "graph")


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


def test_branches_that_did_not_change_are_not_read(tmp_path: Path) -> None:
    """Whichever commits they start at, and whichever branches they come from."""
    reads = []
    for count in (3, 7):
        path = tmp_path / str(count)
        graph = new_people(path, self_care=False)
        graph.create_branch("own")
        change(graph, "age", "own", name="bob", age=1)
        for number in range(count):
            change(graph, "age", name="alice", age=number)
            graph.create_branch(f"b{number}")
            graph.create_branch(f"c{number}", f"b{number}")
            graph.create_branch(f"d{number}", "own")
        reads.append(compare_branches(graph, path))

    # Main is known. Of each line that others start on one commit, and then all; and `own` itself.
    assert reads[0] == reads[1] <= 4


def test_of_a_branch_that_changed_only_its_own_rows_are_read(tmp_path: Path) -> None:
    """However long the history is that it came with, and however often it was compacted."""
    scanned = []
    for count in (3, 12):
        path = tmp_path / str(count)
        graph = new_people(path, self_care=False)
        for number in range(count):
            change(graph, "age", name="alice", age=number)
        for name in "abcd":
            graph.create_branch(name)
            change(graph, "age", name, name="bob", age=1)
            change(graph, "firm", name, code="new")
            change(graph, "age", name="bob", age=2)
        inside(graph).coordinator.compact_if_due("c", fragments_max=2)
        compare_branches(graph, path)
        with og.open(path, mode="r") as other, counting() as counters:
            list(inside(other).coordinator.fresh_each("abcd"))
        scanned.append(counters.rows_scanned)

    # Main and the first of them are read as a whole; each commit of main has two rows.
    assert scanned[1] - scanned[0] == 2 * 2 * (12 - 3)


def test_branches_that_changed_what_they_came_with_are_read(tmp_path: Path) -> None:
    """Their schema, their checks, or what they had published themselves."""
    graph = new_people(tmp_path / "graph", self_care=False)
    for name in ("a", "b", "schema", "checks", "reset", "merged", "compacted"):
        change(graph, "age", name="alice", age=len(name))
        graph.create_branch(name)
        change(graph, "age", name, name="bob", age=len(name))
    more = "node Place { name: String @key }\n"
    graph.apply_schema(SCHEMA + more, branch="schema")
    graph.apply_schema(SCHEMA + more, branch="merged")
    graph.apply_schema(SCHEMA, branch="merged", allow_data_loss=True)
    old = "query old() { match { $p: Person  $p.age > 200 } return { $p.name } }"
    graph.apply_checks([Check("old", old)], branch="checks")
    change(graph, "age", "reset", name="dan", age=1)
    graph.reset_branch("reset", "reset~1")
    graph.merge("a", into="merged", resolve="theirs")
    for name in ("compacted", "schema", "reset"):
        inside(graph).coordinator.compact_if_due(name, fragments_max=2)

    compare_branches(graph, tmp_path / "graph")


def test_a_branch_that_was_made_again_is_not_taken_for_the_first(tmp_path: Path) -> None:
    """By a handle that was not told: it counts through the same versions."""
    graph = new_people(tmp_path / "graph", self_care=False)
    with og.open(tmp_path / "graph", self_care=False) as other:
        for number in range(3):
            graph.create_branch("b")
            for _ in range(3):
                change(graph, "age", "b", name="alice", age=number)
            before = graph.commits("b")[1]
            for _ in range(3):
                shown = inside(other).coordinator.at_version("b", before.manifest_version)
                assert shown.head.commit_id == before.commit_id
            graph.delete_branch("b")


def test_rows_that_were_written_again_are_not_trusted(tmp_path: Path) -> None:
    """A table that is hidden now was shown before: only the manifest of then tells."""
    graph = new_people(tmp_path / "graph", self_care=False)
    change(graph, "age", name="alice", age=1)
    before = graph.commits()[0]
    graph.apply_schema(SCHEMA.replace("edge WorksAt: Person -> Firm @card(0..1)\n", ""))
    coordinator = inside(graph).coordinator
    line = coordinator.read_line_states(coordinator.fresh("main"))

    assert isinstance(line, LineStates)
    assert line.at(before.manifest_version) is None
    assert line.at(graph.commits()[0].manifest_version) is not None
