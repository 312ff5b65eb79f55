"""A merge that dies leaves both sides whole: nothing of it, or all of it, and never twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.branch.merge import MergeOutcome
from omnigraph.failpoints import Failpoint as Point
from omnigraph.failpoints import FailpointError, arm_failpoints
from omnigraph.testing.crash import CrashRunner
from tests.branch import merge_work
from tests.branch.people import merged, state_of
from tests.depth import IS_TORTURE, cover
from tests.graph.reading import heads, pins, sidecars

FORWARD, BACK = "RolledForward", "RolledBack"

EVERY_MERGE: list[tuple[Point, str, str | None]] = [
    (Point.RECOVERY_SIDECAR_WRITE, "old", None),
    (Point.COMMIT_AFTER_SIDECAR, "old", BACK),
    (Point.RECOVERY_SIDECAR_CONFIRM, "old", BACK),
    (Point.BRANCH_MERGE_POST_PHASE_B_PRE_MANIFEST_COMMIT, "new", FORWARD),
    (Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT, "new", FORWARD),
    (Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT, "new", FORWARD),
    (Point.RECOVERY_SIDECAR_DELETE, "new", FORWARD),
    (Point.RECOVERY_AFTER_SIDECAR_DELETE, "new", None),
]

CELLS = [
    *(("forward", *cell) for cell in EVERY_MERGE),
    ("forward", Point.BRANCH_MERGE_ADOPT_AFTER_APPEND_PRE_UPSERT, "old", BACK),
    ("forward", Point.BRANCH_MERGE_ADOPT_AFTER_UPSERT_PRE_DELETE, "old", BACK),
    *(("both", *cell) for cell in EVERY_MERGE[1:4]),
    ("both", Point.BRANCH_MERGE_REWRITE_AFTER_MERGE_PRE_DELETE, "old", BACK),
    ("both", Point.BRANCH_MERGE_REWRITE_AFTER_DELETE_PRE_INDEX, "old", BACK),
    *(("mixed", *cell) for cell in EVERY_MERGE[1:6]),
]


RUN_CELLS = cover(CELLS, lambda cell: {cell[0], cell[1], (cell[2], cell[3])})

# One worker builds the graphs that the sample starts from.
pytestmark = [] if IS_TORTURE else [pytest.mark.xdist_group("merges")]


@pytest.fixture(scope="module")
def runner() -> Iterator[CrashRunner]:
    with CrashRunner(["tests.branch.merge_work", "tests.warm"]) as started:
        yield started


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("merges")
    for shape in ("forward", "both", "mixed"):
        merge_work.prepare(str(folder / shape), shape)
    return {shape: folder / shape for shape in ("forward", "both", "mixed")}


def test_every_point_of_a_merge_has_a_cell() -> None:
    points = {point for point in Point if point.value.startswith("branch_merge.")}

    assert points <= {point for _, point, _, _ in RUN_CELLS}


@pytest.mark.accepts("S-127", "S-160", "S-161", "S-162")
@pytest.mark.parametrize(("shape", "point", "rows", "audit"), RUN_CELLS)
def test_a_merge_that_is_killed_is_undone_or_finished(
    shape: str,
    point: Point,
    rows: str,
    audit: str | None,
    runner: CrashRunner,
    templates: dict[str, Path],
    tmp_path: Path,
) -> None:
    path = tmp_path / "graph"
    shutil.copytree(templates[shape], path)
    source, target = merge_work.names_of(shape)
    with og.open(templates[shape], mode="r") as graph:
        old, incoming = state_of(graph, target), state_of(graph, source)
        new = expected_after(shape, old, incoming)

    died = runner.run(
        "tests.branch.merge_work:merge",
        {"path": str(path), "shape": shape, "arm": f"{point.value}=kill"},
    )
    assert died.was_killed
    recovered = og.open(path, durability="process")

    assert state_of(recovered, target) == (old if rows == "old" else new)
    own_branch = None if target == "main" else target
    entries = recovered.snapshot(target).entries
    own = {key for key, entry in entries.items() if entry.table_branch == own_branch}
    found = heads(recovered, target)
    assert {key: found[key] for key in own} == {key: pins(recovered, target)[key] for key in own}
    assert sidecars(recovered) == []
    assert [each.kind for each in recovered.recoveries()] == ([] if audit is None else [audit])
    again = merged(recovered, source, target)
    if rows == "old":
        assert again.outcome is not MergeOutcome.ALREADY_UP_TO_DATE
    else:
        assert again.outcome is MergeOutcome.ALREADY_UP_TO_DATE
        made = next(c for c in recovered.commits(target) if c.merged_parent_id is not None)
        assert (made.actor, made.properties["merged_from"]) == ("merger", source)
    assert state_of(recovered, target) == new


def expected_after(shape: str, old: object, incoming: object) -> object:
    """The merged state, made by a merge that nothing interrupts."""
    if shape == "forward":
        return incoming
    people = {**old["node:Person"]}  # type: ignore[index]
    people["alice"] = {**people["alice"], "age": 31}
    if shape == "mixed":
        return {**old, "node:Person": people, "node:Firm": incoming["node:Firm"]}  # type: ignore[index,dict-item]
    del people["dan"]
    people["eve"] = incoming["node:Person"]["eve"]  # type: ignore[index]
    edges = {
        **{k: v for k, v in old["edge:Knows"].items() if v["src"] != "bob"},  # type: ignore[index]
        **{k: v for k, v in incoming["edge:Knows"].items() if v["src"] == "eve"},  # type: ignore[index]
    }
    return {**old, "node:Person": people, "edge:Knows": edges}  # type: ignore[dict-item]


@pytest.mark.accepts("S-161")
def test_a_merge_that_failed_in_a_living_process_is_undone_by_the_next_one(
    templates: dict[str, Path], tmp_path: Path
) -> None:
    """Its queues are free, so it is dead: the same handle undoes it and merges again."""
    path = tmp_path / "graph"
    shutil.copytree(templates["forward"], path)
    graph = og.open(path, durability="process")
    before = state_of(graph)
    with (
        arm_failpoints({Point.BRANCH_MERGE_ADOPT_AFTER_APPEND_PRE_UPSERT: "raise"}),
        pytest.raises(FailpointError),
    ):
        graph.merge(merge_work.SOURCE)

    assert state_of(graph) == before
    # The rollback is a commit of main, so main has moved: not a fast forward any more.
    assert merged(graph, merge_work.SOURCE).outcome is MergeOutcome.MERGED
    assert [each.kind for each in graph.recoveries()] == [BACK]
    assert state_of(graph) == state_of(graph, merge_work.SOURCE)


def test_a_confirmed_merge_is_finished_by_the_next_write(
    templates: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "graph"
    shutil.copytree(templates["both"], path)
    graph = og.open(path, durability="process")
    with (
        arm_failpoints({Point.BRANCH_MERGE_POST_PHASE_B_PRE_MANIFEST_COMMIT: "raise"}),
        pytest.raises(FailpointError),
    ):
        graph.merge(merge_work.SOURCE)

    assert merged(graph, merge_work.SOURCE).outcome is MergeOutcome.ALREADY_UP_TO_DATE
    assert "eve" in state_of(graph)["node:Person"]
