"""What a copy no longer has, or never had: nothing goes along with it, and nothing is missed."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.graph.reading import add, names, new_graph
from tests.transfer.conftest import OPTIONS, find_damage

pytestmark = pytest.mark.slow


def test_a_merged_commit_stays_readable_when_a_fetched_branch_is_deleted(tmp_path: Path) -> None:
    """It lies on the fetched branch below commits that both branches know as their own."""
    here = new_graph(tmp_path / "here", self_care=False)
    og.clone(here.uri, tmp_path / "there", durability="process")
    there = og.open(tmp_path / "there", **OPTIONS)
    merged = str(add(there, "person", name="ann").commit_id)
    add(here, "person", name="bob")
    here.pull(there.uri)
    there.pull(here.uri)
    add(there, "person", name="cy")
    here.fetch(there.uri)

    here.delete_branch("origin/main")

    shown = [each["data"]["name"] for each in here.export(commit=merged)]
    assert shown == ["ann"]
    assert names(here) == ["ann", "bob"]


def test_a_fetched_branch_stays_when_the_branch_that_made_its_commits_is_deleted(
    tmp_path: Path,
) -> None:
    """Both have the same head: no commit of the one follows a commit of the other."""
    here = new_graph(tmp_path / "here", self_care=False)
    og.clone(here.uri, tmp_path / "there", durability="process")
    here.create_branch("x")
    here.push(tmp_path / "there", "x")
    here.fetch(tmp_path / "there", branch="x")
    commits = [add(here, "person", branch="x", name=name).commit_id for name in ("ann", "bob")]
    here.push(tmp_path / "there", "x")
    here.fetch(tmp_path / "there", branch="x")

    here.delete_branch("x")
    here.create_branch("x")
    add(here, "person", branch="x", name="other")
    here.cleanup(keep=10, confirm=True)

    assert names(here, "origin/x") == ["ann", "bob"]
    assert [len(list(here.export(commit=str(each)))) for each in commits] == [1, 2]
    assert find_damage(here.uri) == []


@pytest.mark.parametrize("made_by", ["clone", "backup"])
def test_the_files_of_a_branch_that_was_copied_and_deleted_are_not_missed(
    home: Path, tmp_path: Path, made_by: str
) -> None:
    if made_by == "clone":
        og.clone(home, tmp_path / "copy", durability="process")
    else:
        with og.open(home, **OPTIONS) as graph:
            graph.backup(tmp_path / "backup")
        og.restore_backup(tmp_path / "backup", tmp_path / "copy", durability="process")
    assert find_damage(tmp_path / "copy") == []

    with og.open(tmp_path / "copy", **OPTIONS) as graph:
        graph.delete_branch("team/b")

    assert find_damage(tmp_path / "copy") == []
    recorded = [each.read_text() for each in (tmp_path / "copy").rglob("_checksums/files.log")]
    assert not any("team%2Fb.json" in each for each in recorded)


def test_a_copy_is_cleaned_of_a_type_that_was_dropped_before(tmp_path: Path) -> None:
    """It has no table of the type, since no state of it names one."""
    graph = new_graph(tmp_path / "graph", self_care=False)
    before = graph.schema
    graph.apply_schema(f"{before}\nnode Pet {{ name: String @key }}\n")
    graph.mutate('query q() { insert Pet { name: "rex" } }')
    graph.apply_schema(before, allow_data_loss=True)
    og.clone(graph.uri, tmp_path / "copy", durability="process")

    with og.open(tmp_path / "copy", **OPTIONS) as copy:
        report = copy.cleanup(keep=1, confirm=True)

    assert [each.error for each in report.tables if each.error] == []
