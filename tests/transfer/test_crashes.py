"""The crash matrix of transfers: which call, where it dies, and what the receiver shows then.

a transfer dies at                         the branch shows    the tags
anything up to the publish                 what it did         as before
the schema files of main, a tag            what it received    those before that one

The same call then goes on and ends as if nothing had happened. `make test` raises at every point
once; `make torture` kills processes at all of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.failpoints import Failpoint as Point
from omnigraph.failpoints import FailpointError, arm_failpoints
from omnigraph.testing.crash import run_spawned
from tests.depth import IS_TORTURE, cover
from tests.graph.reading import add
from tests.ready import copy_ready
from tests.transfer import work
from tests.transfer.conftest import OPTIONS, find_damage, make_home, rows

pytestmark = pytest.mark.slow

CALLS = ("push main", "push fresh", "pull main", "fetch fresh")
COPIES = {Point.TRANSFER_BEFORE_TEXTS, Point.TRANSFER_BEFORE_CLAIM}
"""Points of `clone` and `backup`: see `test_clone.py` and `test_backup.py`."""


@dataclass(frozen=True)
class Cell:
    call: str
    point: Point
    nth: int = 1
    shows: str = "old"

    @property
    def branch(self) -> str:
        return self.call.partition(" ")[2]

    @property
    def received(self) -> str:
        return f"origin/{self.branch}" if self.call.startswith("fetch") else self.branch

    def __str__(self) -> str:
        return f"{self.call}, {self.point}@{self.nth}"


def list_cells() -> Iterator[Cell]:
    for call in CALLS:
        for nth in (1, 2, 3):
            yield Cell(call, Point.TRANSFER_BEFORE_FILE, nth)
        yield Cell(call, Point.TRANSFER_BEFORE_TABLE)
        yield Cell(call, Point.TRANSFER_BEFORE_LINEAGES)
        yield Cell(call, Point.TRANSFER_BEFORE_PUBLISH)
        yield Cell(call, Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT)
        if call.startswith("push"):
            yield Cell(call, Point.TRANSFER_BEFORE_TAG, shows="new")
        if call == "push fresh":
            yield Cell(call, Point.TRANSFER_BEFORE_BRANCH)
        if call == "push main":
            yield Cell(call, Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT, shows="new")
            yield Cell(call, Point.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT, shows="new")
        if call == "pull main":  # the first publish is that of origin/main
            yield Cell(call, Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT, 2)


CELLS = list(list_cells())


def make_stores(path: Path) -> og.Graph:
    """A graph, and beside it a clone that has gone on: in another schema, with a tag."""
    graph = make_home(path / "home")
    graph.close()
    og.clone(path / "home", path / "away", durability="process")
    with og.open(path / "away", **OPTIONS) as away:
        away.apply_schema(away.schema + "\nnode City { name: String @key }\n")
        away.mutate('query c() { insert City { name: "Rome" } }')
        away.tag("v2")
        away.create_branch("fresh")
        add(away, "person", branch="fresh", name="x")
    return graph


def test_every_point_of_a_transfer_is_in_the_matrix() -> None:
    points = {each for each in Point if each.startswith("transfer.")}

    assert points - COPIES == {cell.point for cell in CELLS} & points


def list_features(cell: Cell) -> set[Hashable]:
    return {cell.point, cell.call}


SAMPLE: list[Cell] = cover(CELLS, list_features)


@pytest.mark.parametrize("cell", SAMPLE, ids=str)
def test_a_transfer_that_dies_anywhere_is_whole_or_nothing_and_goes_on(
    cell: Cell, tmp_path: Path
) -> None:
    copy_ready("apart", make_stores, tmp_path / "stores")
    home, away = tmp_path / "stores" / "home", tmp_path / "stores" / "away"
    for each in (home, away):
        og.open(each, **OPTIONS).close()
    before = show(home)

    die(cell, home, away)

    now = show(home)
    if cell.shows == "old":
        assert {each: now[each] for each in before} == before
        if cell.received not in before and cell.call != "pull main":
            assert cell.received not in now
    else:
        assert now[cell.received] == show(away)[cell.branch]
    again = tmp_path / "again"
    shutil.copytree(home, again)
    with og.open(again, **OPTIONS) as graph:
        graph.cleanup(keep=1, confirm=True)
    call(cell, again, away)
    assert show(again)[cell.received] == show(away)[cell.branch]
    with og.open(again, **OPTIONS) as graph:
        assert {each.name for each in graph.tags()} == {"v1", "v2"}
        add(graph, "person", branch=cell.received, name="next")
    assert find_damage(again) == []


def show(path: Path) -> dict[str, tuple[str, list[str]]]:
    """The head and the rows of every branch."""
    with og.open(path, mode="r") as graph:
        return {
            each: (graph.commits(each)[0].commit_id, rows(graph, branch=each))
            for each in graph.branches()
        }


def call(cell: Cell, home: Path, away: Path, arm: str = "") -> None:
    """Run a call of the matrix. A push is one of `away`, the others are of `home`."""
    verb = cell.call.partition(" ")[0]
    src, dst = (away, home) if verb == "push" else (home, away)
    getattr(work, verb)(str(src), str(dst), cell.branch, arm)


def die(cell: Cell, home: Path, away: Path) -> None:
    if not IS_TORTURE:
        with arm_failpoints({cell.point: f"raise@{cell.nth}"}), pytest.raises(FailpointError):
            call(cell, home, away)
        return
    verb = cell.call.partition(" ")[0]
    src, dst = (away, home) if verb == "push" else (home, away)
    arm = f"{cell.point}=kill@{cell.nth}"
    facts = {"src": str(src), "dst": str(dst), "branch": cell.branch, "arm": arm}
    died = run_spawned(f"tests.transfer.work:{verb}", facts)
    assert died.was_killed, died.error
