"""A process that dies anywhere leaves a whole graph: every cell of the matrix, one death each.

`make test` runs cells that show every writer, every point and every end; `make torture` runs all.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from omnigraph.failpoints import Failpoint
from omnigraph.testing.crash import Outcome, run_spawned
from tests.depth import IS_TORTURE, cover, depth
from tests.recovery import work
from tests.recovery.cells import BACK, FORWARD, GRAPH_CELLS, INIT_CELLS, MATRIX_MIN, Cell, features
from tests.recovery.conftest import ACKED, WORK, Cellar, State

# One worker builds the graphs that the sample starts from.
pytestmark = [pytest.mark.slow, *([] if IS_TORTURE else [pytest.mark.xdist_group("crashes")])]

RUN_CELLS = cover(GRAPH_CELLS, features)
RUN_INIT_CELLS = cover(INIT_CELLS, features)
CONFIRM = Failpoint.RECOVERY_SIDECAR_CONFIRM  # only a merge confirms
SPAWNED = [cell for cell in GRAPH_CELLS if cell.group == "writers"][:: depth(300, 12)]


def die(cellar: Cellar, cell: Cell, place: str) -> Outcome:
    """Run the cell's writer up to its death."""
    acked = ACKED[cell.writer]
    if cell.writer.startswith("heal by "):
        entry = cell.writer.removeprefix("heal by ")
        return cellar.run(
            "heal", path=place, count=cell.count, entry=entry, arm=cell.arm, acked=acked
        )
    if cell.rows == "gone":
        cellar.run("orphan", path=place, count=cell.count, acked=acked).result()
        return cellar.run("recover", path=place, arm=cell.recovery_arm)
    died = cellar.run(
        "write", path=place, writer=cell.writer, count=cell.count, arm=cell.arm, acked=acked
    )
    if cell.recovery_point is None:
        return died
    assert died.was_killed, f"unreached: {cell}"
    return cellar.run("recover", path=place, arm=cell.recovery_arm)


def expect(cellar: Cellar, cell: Cell) -> State:
    if cell.rows == "gone":
        return cellar.lead("branch", "branch delete", cell.count, to="new")
    writer = "insert" if cell.writer.startswith("heal by ") else cell.writer
    return cellar.lead(cell.template, writer, cell.count, to=cell.rows)


def judge(cell: Cell, found: dict[str, Any], rows: Any) -> None:
    """What must hold of every graph that a process died on."""
    first, second = found["first"], found["second"]
    assert found["rows"] == rows, "all tables old, or all new"
    assert first["pins"] == first["heads"], "every pin is its HEAD"
    assert first["sidecars"] == [], "no sidecar is left"
    kinds = [row["kind"] for row in first["audit"]]
    assert kinds == ([] if cell.audit is None else [cell.audit]), "one audit row"
    assert found["unexplained"] == [], "every commit says why it was made"
    assert second == first, "a second open changes nothing"
    assert found["next write"] == {}, "the next write succeeds at once"
    assert found["verify"] == found["verify after"] == "", "verify has nothing to say"
    if cell.audit in (FORWARD, BACK) and cell.writer != "compaction":
        assert first["audit"][0]["for"] == "worker"


@pytest.mark.accepts("S-087", "S-089", "S-090", "S-091", "S-092", "S-097", "S-101", "S-102")
@pytest.mark.parametrize("cell", RUN_CELLS, ids=str)
def test_a_process_that_dies_leaves_a_whole_graph(cellar: Cellar, cell: Cell) -> None:
    expected = expect(cellar, cell)
    place = cellar.fresh(cell.template)

    died = die(cellar, cell, place)

    assert died.was_killed, f"unreached: {cell}\n{died.error}"
    if cell.group == "groups":
        work.recover(place)
        history = work.look_back(expected.place)
        assert work.look_back(place) == history, "every commit shows what it left"
    judge(cell, work.inspect(place), expected.rows)


@pytest.mark.parametrize("cell", RUN_INIT_CELLS, ids=str)
def test_an_init_that_dies_leaves_no_graph_or_a_whole_one(cellar: Cellar, cell: Cell) -> None:
    place = cellar.folder / f"init-{cell.count}-{cell.point}-{cell.nth}"

    died = cellar.run("init", path=str(place), count=cell.count, arm=cell.arm)

    assert died.was_killed, f"unreached: {cell}"
    found = work.try_init(str(place), cell.count)
    assert found["state"] == ("whole" if cell.rows == "new" else "partial"), found
    if cell.rows == "new":
        assert len(found["tables"].split(",")) == cell.count
        assert found["verify"] == ""
    else:
        assert "remove" in found["advice"]


@pytest.mark.parametrize("cell", SPAWNED, ids=str)
def test_a_process_started_from_nothing_dies_the_same_way(cellar: Cellar, cell: Cell) -> None:
    """The control for the zygote: no fork is involved."""
    expected = expect(cellar, cell)
    place = cellar.fresh(cell.template)
    arguments = {"path": place, "count": cell.count, "arm": cell.arm, "acked": ACKED[cell.writer]}

    died = run_spawned(f"{WORK}:write", {**arguments, "writer": cell.writer})

    assert died.was_killed, f"unreached: {cell}\n{died.error}"
    judge(cell, run_spawned(f"{WORK}:inspect", {"path": place}).result(), expected.rows)


def test_the_matrix_is_as_large_as_promised() -> None:
    cells = [*GRAPH_CELLS, *INIT_CELLS]

    assert len(set(map(str, cells))) == len(cells) >= MATRIX_MIN


def test_the_sample_shows_every_writer_point_and_end() -> None:
    everything = set[Hashable]().union(*map(features, GRAPH_CELLS))

    assert set[Hashable]().union(*map(features, RUN_CELLS)) == everything


def test_every_point_of_a_writer_is_in_the_matrix() -> None:
    """A new point needs a cell here, or a writer whose own tests kill it at its own points."""
    covered = {cell.point for cell in [*GRAPH_CELLS, *INIT_CELLS]}
    covered |= {cell.recovery_point for cell in GRAPH_CELLS if cell.recovery_point is not None}
    own_tests = (
        "branch_merge",
        "merge_request",
        "schema_apply",
        "ensure_indices",
        "cleanup",
        "repair",
        "load",
        "checksums",
        "relocate",
        "job",
        "transfer",
    )
    unreached = {
        point
        for point in set(Failpoint) - covered
        if point.partition(".")[0] not in own_tests and point is not CONFIRM
    }

    assert sorted(unreached) == []
