"""What a transfer of one branch reads: by its change, and not by the names in the two stores."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.storage.counters import counting
from tests.graph.reading import add, new_graph
from tests.transfer.conftest import OPTIONS, find_damage, rows

pytestmark = pytest.mark.slow

READS = ("opens", "head_probes", "scans", "control_reads", "text_reads")
STABLE_SECONDS = 0.05
"""Files that changed a moment ago prove nothing by their times."""


def push(home: og.Graph, away: og.Graph, branch: str = "main") -> og.TransferResult:
    return home.push(away.uri, branch)


def pull(home: og.Graph, away: og.Graph, branch: str = "main") -> og.TransferResult:
    away.pull(home.uri, branch)
    return og.TransferResult()


def fetch(home: og.Graph, away: og.Graph, branch: str = "main") -> og.TransferResult:
    return away.fetch(home.uri, branch=branch)


def make_pair(path: Path, names_count: int = 0) -> tuple[og.Graph, og.Graph]:
    """A graph and its clone, each with so many tags, and branches with commits of their own."""
    home = new_graph(path / "home", self_care=False)
    add(home, "pair", a="ann", b="bob")
    for number in range(names_count):
        home.tag(f"v{number}")
        home.create_branch(f"b{number}")
        add(home, "person", branch=f"b{number}", name=f"on-{number}")
    og.clone(home.uri, path / "away", durability="process")
    time.sleep(STABLE_SECONDS)
    return og.open(home.uri, **OPTIONS), og.open(path / "away", **OPTIONS)


@pytest.mark.parametrize("transfer", [push, pull, fetch])
def test_what_a_transfer_of_one_branch_reads_does_not_grow_with_the_tags_and_branches(
    tmp_path: Path, transfer: Callable[[og.Graph, og.Graph], og.TransferResult]
) -> None:
    """A process reads each tag once; of branches its first transfer reads no more than others."""
    reads = []
    for names_count in (1, 4):
        home, away = make_pair(tmp_path / str(names_count), names_count)
        with counting() as first:
            transfer(home, away)
        add(home, "person", name="cy")
        with counting() as second:
            transfer(home, away)
        counts = {name: asdict(second)[name] for name in READS}
        reads.append((first.scans, first.control_reads, first.head_probes, counts))
    assert reads[0] == reads[1]


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "made-since-an-open"])
def test_a_commit_that_another_branch_of_the_receiver_knows_is_not_sent_again(
    tmp_path: Path, is_recorded: bool
) -> None:
    home, away = make_pair(tmp_path)
    home.create_branch("team")
    add(home, "person", branch="team", name="cy")
    home.push(away.uri, "team")
    if is_recorded:
        og.open(away.uri, **OPTIONS).close()
        away = og.open(away.uri, **OPTIONS)
    home.merge("team", into="main")

    moved = fetch(home, away)

    assert moved.commits == 1  # the merge alone
    assert find_damage(away.uri) == []


def test_a_commit_is_found_at_the_receiver_where_it_was_not_made(tmp_path: Path) -> None:
    """The branch that made it is gone there; another one has merged it."""
    home, away = make_pair(tmp_path)
    home.create_branch("team")
    add(home, "person", branch="team", name="cy")
    home.push(away.uri, "team")
    away.refresh()
    away.create_branch("other")
    add(away, "person", branch="other", name="dee")
    away.merge("team", into="other")
    away.delete_branch("team")
    time.sleep(STABLE_SECONDS)  # from the next open on the history table covers it
    home.merge("team", into="main")

    moved = push(home, away)

    assert moved.commits == 1
    assert find_damage(away.uri) == []


def test_a_commit_whose_only_branch_at_the_receiver_was_deleted_is_sent_again(
    tmp_path: Path,
) -> None:
    """The history table still has it, but no branch knows it."""
    home, away = make_pair(tmp_path)
    home.create_branch("team")
    add(home, "person", branch="team", name="cy")
    home.push(away.uri, "team")
    away.refresh()
    away.delete_branch("team")
    away.cleanup(keep=1, confirm=True)
    head = add(home, "person", branch="team", name="dee").commit_id

    moved = push(home, away, "team")

    assert moved.commits == 2
    away.refresh()
    assert away.commits("team")[0].commit_id == head
    assert rows(away, "team") == rows(home, "team")
    assert find_damage(away.uri) == []


def test_a_table_that_only_a_branch_of_the_receiver_still_shows_is_not_copied(
    tmp_path: Path,
) -> None:
    """The branch that moves shows another version of it by now, one of a compaction."""
    home, away = make_pair(tmp_path)
    for name in ("cy", "dee", "eve"):
        add(home, "person", name=name)
    push(home, away)
    away.refresh()
    away.create_branch("old")
    away.optimize()
    for code in ("f1", "f2"):
        add(home, "firm", code=code)
        moved = push(home, away)

    assert moved.files == 1  # that of the new firm
    assert find_damage(away.uri) == []
