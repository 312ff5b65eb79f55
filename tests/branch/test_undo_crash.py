"""A revert, cherry-pick or restore that dies leaves nothing of it, or all of it, with its note."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.failpoints import Failpoint as Point
from omnigraph.testing.crash import CrashRunner
from tests.branch import undo_work
from tests.branch.people import State, state_of
from tests.branch.test_merge_crash import BACK, EVERY_MERGE
from tests.depth import IS_TORTURE, cover
from tests.graph.reading import heads, pins, sidecars

STEPS = [
    *EVERY_MERGE,
    (Point.BRANCH_MERGE_REWRITE_AFTER_MERGE_PRE_DELETE, "old", BACK),
]
CELLS = [(writer, *step) for writer in undo_work.WRITERS for step in STEPS]
UNREACHED = {
    # Only rows that come back, or go again, and none that are changed in between.
    ("revert", Point.BRANCH_MERGE_REWRITE_AFTER_MERGE_PRE_DELETE),
    ("restore", Point.BRANCH_MERGE_REWRITE_AFTER_MERGE_PRE_DELETE),
}
RUN_CELLS = cover(
    [cell for cell in CELLS if cell[:2] not in UNREACHED],
    lambda cell: {cell[0], cell[1], (cell[2], cell[3])},
)

pytestmark = [pytest.mark.slow, *([] if IS_TORTURE else [pytest.mark.xdist_group("undo")])]


@pytest.fixture(scope="module")
def runner() -> Iterator[CrashRunner]:
    with CrashRunner(["tests.branch.undo_work", "tests.warm"]) as started:
        yield started


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("undo") / "graph"
    undo_work.prepare(str(path))
    return path


@pytest.fixture(scope="module")
def expected(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, State]:
    """What each writer leaves when nothing interrupts it; ids of new edges are those of before."""
    found = {}
    for writer, (branch, run) in undo_work.WRITERS.items():
        path = tmp_path_factory.mktemp("undone") / "graph"
        shutil.copytree(template, path)
        with og.open(path, durability="process") as graph:
            run(graph)
            found[writer] = state_of(graph, branch)
    return found


@pytest.mark.parametrize(("writer", "point", "rows", "audit"), RUN_CELLS)
def test_an_undo_that_is_killed_is_taken_back_or_finished(
    writer: str,
    point: Point,
    rows: str,
    audit: str | None,
    runner: CrashRunner,
    template: Path,
    expected: dict[str, State],
    tmp_path: Path,
) -> None:
    path, branch = tmp_path / "graph", undo_work.WRITERS[writer][0]
    shutil.copytree(template, path)
    with og.open(template, mode="r") as graph:
        old = state_of(graph, branch)

    died = runner.run(
        "tests.branch.undo_work:undo",
        {"path": str(path), "writer": writer, "arm": f"{point.value}=kill"},
    )
    assert died.was_killed, f"unreached: {died.error}"
    recovered = og.open(path, durability="process")

    assert state_of(recovered, branch) == (old if rows == "old" else expected[writer])
    own_branch = None if branch == "main" else branch
    entries = recovered.snapshot(branch).entries
    own = {key for key, entry in entries.items() if entry.table_branch == own_branch}
    assert {key: heads(recovered, branch)[key] for key in own} == {
        key: pins(recovered, branch)[key] for key in own
    }
    assert sidecars(recovered) == []
    assert [each.kind for each in recovered.recoveries()] == ([] if audit is None else [audit])
    made = [each for each in recovered.commits(branch) if each.message == "why"]
    assert len(made) == (0 if rows == "old" else 1)
    assert all((each.actor, each.metadata["ticket"]) == ("undoer", "T-1") for each in made)
    assert all(each.merged_parent_id is None for each in made)
    if rows == "old":
        undo_work.WRITERS[writer][1](recovered)
        assert state_of(recovered, branch) == expected[writer]
    assert recovered.verify().is_clean
