"""A process that dies during upkeep or a schema change leaves the old graph or the new one, whole.

a schema change dies                      it ends     its audit row
before its sidecar                        old         none
with its sidecar, before its files        old         RolledBack
with its files, before its publish        new         RolledForward
the same on a branch, by its confirmation
after its publish, with a sidecar         new         RolledForward

`make test` runs cells that show every writer, point and end; `make torture` runs all of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from omnigraph.failpoints import Failpoint as Point
from omnigraph.testing.crash import CrashRunner, Outcome
from tests.depth import IS_TORTURE, cover
from tests.upkeep import work

# One worker builds the graphs that the sample starts from.
pytestmark = [pytest.mark.slow, *([] if IS_TORTURE else [pytest.mark.xdist_group("upkeep")])]

WORK = "tests.upkeep.work"
BACK, FORWARD = "RolledBack", "RolledForward"
PAPERWORK = (
    Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    Point.RECOVERY_AFTER_PUBLISH,
    Point.RECOVERY_RECORD_AUDIT,
    Point.RECOVERY_SIDECAR_DELETE,
)


@dataclass(frozen=True)
class Cell:
    """One death. `recovery_point` is where the first recovery dies in its turn."""

    writer: str
    point: Point
    nth: int = 1
    ends: str = "old"
    audit: str | None = None
    recovery_point: Point | None = None

    def __str__(self) -> str:
        then = "" if self.recovery_point is None else f", then {self.recovery_point}"
        return f"{self.writer}, {self.point}@{self.nth}{then}"


def schema_cells() -> Iterator[Cell]:
    """Tables that each change writes, adds or hides: the points are hit once for each."""
    tables = {
        "rewrite": 2,
        "alter": 1,
        "grow": 3,
        "rename": 1,
        "add": 2,
        "drop": 1,
        "hard": 2,
        "all": 4,
    }
    for writer, count in tables.items():
        yield Cell(writer, Point.SCHEMA_APPLY_AFTER_LOCK)
        yield Cell(writer, Point.RECOVERY_SIDECAR_WRITE)
        yield Cell(writer, Point.COMMIT_AFTER_SIDECAR, audit=BACK)
        for nth in range(1, count + 1):
            yield Cell(writer, Point.SCHEMA_APPLY_AFTER_TABLE, nth, audit=BACK)
        yield Cell(writer, Point.SCHEMA_APPLY_BEFORE_STAGING_WRITE, audit=BACK)
        for point in (
            Point.SCHEMA_APPLY_AFTER_STAGING_WRITE,
            Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
            Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
            Point.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT,
            Point.RECOVERY_SIDECAR_DELETE,
        ):
            yield Cell(writer, point, ends="new", audit=FORWARD)
        for nth in (1, 2, 3):
            yield Cell(writer, Point.SCHEMA_APPLY_AFTER_FILE_PROMOTED, nth, "new", FORWARD)
        yield Cell(writer, Point.RECOVERY_AFTER_SIDECAR_DELETE, ends="new")
    for point in (
        Point.SCHEMA_APPLY_AFTER_LOCK,
        Point.SCHEMA_APPLY_BEFORE_STAGING_WRITE,
        Point.SCHEMA_APPLY_AFTER_STAGING_WRITE,
        Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    ):
        yield Cell("metadata", point)
    for point in (
        Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
        Point.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT,
    ):
        yield Cell("metadata", point, ends="new")
    for nth in (1, 2, 3):
        yield Cell("metadata", Point.SCHEMA_APPLY_AFTER_FILE_PROMOTED, nth, "new")


def branch_cells() -> Iterator[Cell]:
    """Changes of a branch, which has no files: the sidecar is confirmed instead."""
    tables = {"rewrite": 2, "alter": 1, "grow": 3, "rename": 1, "add": 2, "drop": 1, "all": 4}
    for change, count in tables.items():
        writer = f"{work.ON_BRANCH}{change}"
        yield Cell(writer, Point.SCHEMA_APPLY_AFTER_LOCK)
        if change in ("rewrite", "grow"):
            yield Cell(writer, Point.FORK_AFTER_CREATE)
        yield Cell(writer, Point.RECOVERY_SIDECAR_WRITE)
        yield Cell(writer, Point.COMMIT_AFTER_SIDECAR, audit=BACK)
        for nth in range(1, count + 1):
            yield Cell(writer, Point.SCHEMA_APPLY_AFTER_TABLE, nth, audit=BACK)
        yield Cell(writer, Point.RECOVERY_SIDECAR_CONFIRM, audit=BACK)
        for point in (
            Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
            Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
            Point.RECOVERY_SIDECAR_DELETE,
        ):
            yield Cell(writer, point, ends="new", audit=FORWARD)
        yield Cell(writer, Point.RECOVERY_AFTER_SIDECAR_DELETE, ends="new")
    writer = f"{work.ON_BRANCH}all"
    for step in (Point.RECOVERY_AFTER_CLASSIFY, Point.RECOVERY_AFTER_RESTORE, *PAPERWORK):
        yield Cell(writer, Point.RECOVERY_SIDECAR_CONFIRM, audit=BACK, recovery_point=step)
    for step in (Point.RECOVERY_AFTER_CLASSIFY, *PAPERWORK):
        death = Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT
        yield Cell(writer, death, ends="new", audit=FORWARD, recovery_point=step)


def merge_cells() -> Iterator[Cell]:
    """Merges that bring a schema to main: confirmed as all merges, files written afterwards."""
    tables = {"rewrite": 2, "alter": 1, "grow": 3, "rename": 2, "add": 3, "drop": 2, "all": 5}
    for change, count in tables.items():
        writer = f"{work.MERGE}{change}"
        yield Cell(writer, Point.RECOVERY_SIDECAR_WRITE)
        yield Cell(writer, Point.COMMIT_AFTER_SIDECAR, audit=BACK)
        for nth in range(1, count + 1):
            yield Cell(writer, Point.SCHEMA_APPLY_AFTER_TABLE, nth, audit=BACK)
        yield Cell(writer, Point.RECOVERY_SIDECAR_CONFIRM, audit=BACK)
        for point in (
            Point.BRANCH_MERGE_POST_PHASE_B_PRE_MANIFEST_COMMIT,
            Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
            Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
            Point.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT,
            Point.RECOVERY_SIDECAR_DELETE,
        ):
            yield Cell(writer, point, ends="new", audit=FORWARD)
        for nth in (1, 2, 3):
            yield Cell(writer, Point.SCHEMA_APPLY_AFTER_FILE_PROMOTED, nth, "new", FORWARD)
        yield Cell(writer, Point.RECOVERY_AFTER_SIDECAR_DELETE, ends="new")
    writer = f"{work.MERGE}all"
    for step in (Point.RECOVERY_AFTER_CLASSIFY, Point.RECOVERY_AFTER_RESTORE, *PAPERWORK):
        yield Cell(writer, Point.RECOVERY_SIDECAR_CONFIRM, audit=BACK, recovery_point=step)
    ready = Point.BRANCH_MERGE_POST_PHASE_B_PRE_MANIFEST_COMMIT
    for step in (
        Point.RECOVERY_AFTER_CLASSIFY,
        *PAPERWORK,
        Point.SCHEMA_APPLY_AFTER_FILE_PROMOTED,
    ):
        yield Cell(writer, ready, ends="new", audit=FORWARD, recovery_point=step)


def recovery_cells() -> Iterator[Cell]:
    """The recovery of a schema change dies in its turn."""
    back, forward = Point.SCHEMA_APPLY_BEFORE_STAGING_WRITE, Point.SCHEMA_APPLY_AFTER_STAGING_WRITE
    for step in (Point.RECOVERY_AFTER_CLASSIFY, Point.RECOVERY_AFTER_RESTORE, *PAPERWORK):
        yield Cell("all", back, audit=BACK, recovery_point=step)
    for step in (
        Point.RECOVERY_AFTER_CLASSIFY,
        *PAPERWORK,
        Point.SCHEMA_APPLY_AFTER_FILE_PROMOTED,
    ):
        yield Cell("all", forward, ends="new", audit=FORWARD, recovery_point=step)


def upkeep_cells() -> Iterator[Cell]:
    """Rows never change; a death before all tables have moved undoes those that have."""
    for writer, last in (
        ("ensure", Point.ENSURE_INDICES_POST_PHASE_B_PRE_MANIFEST_COMMIT),
        ("optimize", Point.OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT),
    ):
        yield Cell(writer, Point.RECOVERY_SIDECAR_WRITE)
        yield Cell(writer, Point.COMMIT_AFTER_SIDECAR, audit=BACK)
        yield Cell(writer, Point.COMMIT_AFTER_TABLE, audit=BACK)
        yield Cell(writer, last, audit=FORWARD)
        yield Cell(writer, Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT, audit=FORWARD)
        yield Cell(writer, Point.RECOVERY_SIDECAR_DELETE, audit=FORWARD)
    yield Cell("ensure", Point.ENSURE_INDICES_POST_STAGE_PRE_COMMIT_BTREE)
    yield Cell("optimize", Point.OPTIMIZE_BEFORE_MANIFEST_COMPACTION)
    yield Cell("optimize", Point.OPTIMIZE_AFTER_MANIFEST_COMPACTION)
    for nth in (1, 3):
        yield Cell("cleanup", Point.CLEANUP_TABLE_GC, nth)
    yield Cell("cleanup", Point.CLEANUP_RESOLVE_BRANCH_SNAPSHOT)
    for nth in (1, 3):
        yield Cell("retention", Point.CLEANUP_TABLE_GC, nth)
    yield Cell("retention", Point.CLEANUP_RESOLVE_BRANCH_SNAPSHOT)
    yield Cell("retention", Point.CLEANUP_AFTER_LAST_TABLE)


CELLS = [*schema_cells(), *recovery_cells(), *branch_cells(), *merge_cells(), *upkeep_cells()]


def features(cell: Cell) -> set[Hashable]:
    return {
        cell.writer,
        ("at", cell.point),
        ("then", cell.recovery_point),
        (cell.ends, cell.audit),
    }


RUN_CELLS = cover(CELLS, features)


class Cellar:
    """Has graphs for cells to start from, and knows what each writer leads to.

    Each cell gets a place that no other one had: what this process has read of a graph that was
    there before could hide what died there.
    """

    def __init__(self, runner: CrashRunner, folder: Path) -> None:
        self.runner = runner
        self.folder = folder
        self._places = 0
        self._looks: dict[str, dict[str, Any]] = {}

    def run(self, name: str, **arguments: object) -> Outcome:
        return self.runner.run(f"{WORK}:{name}", arguments)

    def fresh(self, writer: str) -> str:
        if writer == "ensure":
            saved = self._find("unindexed")
        elif writer.startswith(work.MERGE):
            saved = self._find(writer)
        else:
            saved = self._find("built" if work.branch_of(writer) == "main" else "branched")
        self._places += 1
        place = self.folder / f"cell-{self._places}"
        shutil.copytree(saved, place, copy_function=shutil.copyfile)
        return str(place)

    def _find(self, kind: str) -> Path:
        """A graph of this kind: made once, from a copy of what it has in common with others."""
        saved = self.folder / kind
        if saved.exists():
            return saved
        if kind == "built":
            work.build(str(saved))
            return saved
        origin = self._find("branched" if kind.startswith(work.MERGE) else "built")
        shutil.copytree(origin, saved, copy_function=shutil.copyfile)
        match kind:
            case "unindexed":
                work.unindexed(str(saved))
            case "branched":
                work.add_branch(str(saved))
            case _:
                work.change_branch(str(saved), kind.removeprefix(work.MERGE))
        return saved

    def look(self, writer: str) -> dict[str, Any]:
        """What a reader sees before the writer, and after the whole of it."""
        if writer not in self._looks:
            self._looks[writer] = work.look_around(self.fresh(writer), writer)
        return self._looks[writer]


@pytest.fixture(scope="module")
def cellar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cellar]:
    with CrashRunner([WORK, "tests.warm"]) as runner:
        yield Cellar(runner, tmp_path_factory.mktemp("upkeep"))


@pytest.mark.accepts("S-082", "S-100", "S-103")
@pytest.mark.parametrize("cell", RUN_CELLS, ids=str)
def test_a_death_leaves_the_old_graph_or_the_new_one(cellar: Cellar, cell: Cell) -> None:
    expected = cellar.look(cell.writer)[cell.ends]
    place = cellar.fresh(cell.writer)

    died = cellar.run("write", path=place, writer=cell.writer, arm=f"{cell.point}=kill@{cell.nth}")
    assert died.was_killed, f"unreached: {cell}\n{died.error}"
    if cell.recovery_point is not None:
        again = cellar.run("recover", path=place, arm=f"{cell.recovery_point}=kill")
        assert again.was_killed, f"unreached: {cell}\n{again.error}"

    branch = work.branch_of(cell.writer)
    before = None if branch == "main" else work.look(cellar.fresh(cell.writer))["rows"]
    reader, found = work.look(place, branch), work.inspect(place, branch)
    assert before in (None, found["main"]), "another branch stays as it is"
    assert {"schema": found["schema"], "rows": found["rows"]} == expected
    assert found["pins"] == found["heads"], "every pin is its HEAD"
    assert found["left"] == [], "nothing of it is left"
    assert found["audit"] == ([] if cell.audit is None else [cell.audit]), "one audit row"
    assert found["verify"] == found["after"] == []
    assert found["next"] == len(expected["rows"]["node:Person"]) + 1
    if cell.ends == "old" or cell.audit is None:
        assert reader["rows"] == expected["rows"], "a reader never sees half of it"
