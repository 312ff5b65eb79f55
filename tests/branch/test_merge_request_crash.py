"""A merge request survives what happens to its writers: kills at every step, and each other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.branch.merge_request import EventKind, MergeRequest
from omnigraph.errors import MergeRequestNotOpen
from omnigraph.failpoints import Failpoint as Point
from omnigraph.graph import merge_requests as verbs
from omnigraph.graph.merge_requests import Permit
from omnigraph.manifest.request_events import RequestEvent
from omnigraph.testing.crash import CrashRunner
from omnigraph.testing.inside import inside
from tests.branch import request_work
from tests.branch.people import state_of
from tests.branch.request_work import list_events
from tests.depth import IS_TORTURE, depth
from tests.graph.racers import race
from tests.graph.reading import sidecars

STARTED = ["opened", "approved"]
MERGING = [*STARTED, "merging"]
# The point, whether the request is merged afterwards, the events that the dead writer left.
CELLS: list[tuple[Point, bool, list[str]]] = [
    (Point.MERGE_REQUEST_BEFORE_MERGING, False, STARTED),
    (Point.MERGE_REQUEST_AFTER_MERGING, False, MERGING),
    (Point.COMMIT_AFTER_SIDECAR, False, MERGING),
    (Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT, True, MERGING),
    (Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT, True, MERGING),
    (Point.MERGE_REQUEST_BEFORE_MERGED, True, MERGING),
    (Point.MERGE_REQUEST_AFTER_MERGED, True, [*MERGING, "merged"]),
]
RUN_CELLS = CELLS if IS_TORTURE else [each for each in CELLS if "MERGE_REQUEST" in each[0].name]

pytestmark = [pytest.mark.slow, *([] if IS_TORTURE else [pytest.mark.xdist_group("requests")])]


@pytest.fixture(scope="module")
def runner() -> Iterator[CrashRunner]:
    with CrashRunner(["tests.branch.request_work", "tests.warm"]) as started:
        yield started


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("requests") / "graph"
    request_work.prepare(str(path))
    return path


def test_every_point_of_a_merge_request_has_a_cell() -> None:
    points = {point for point in Point if point.value.startswith("merge_request.")}

    assert points <= {point for point, *_ in RUN_CELLS}


@pytest.mark.parametrize(("point", "is_merged", "left"), RUN_CELLS)
def test_a_request_whose_merge_is_killed_is_open_or_merged_and_the_next_writer_says_so(
    point: Point,
    is_merged: bool,
    left: Sequence[str],
    runner: CrashRunner,
    template: Path,
    tmp_path: Path,
) -> None:
    path = tmp_path / "graph"
    shutil.copytree(template, path)

    arguments = {"path": str(path), "arm": f"{point.value}=kill"}
    died = runner.run("tests.branch.request_work:complete", arguments)
    assert died.was_killed, f"unreached: {died.error}"
    graph = og.open(path, durability="process")

    assert list_events(graph, 1) == left
    found = graph.merge_request(1)
    assert found.state == ("merged" if is_merged else "open")
    assert ("eve" in state_of(graph)["node:Person"]) == is_merged
    states = {state: len(graph.merge_requests(state)) for state in ("open", "merged", "closed")}
    assert states == {"open": int(not is_merged), "merged": int(is_merged), "closed": 0}
    said = graph.comment_on_merge_request(1, "what happened?", actor="ada")
    if is_merged:
        with pytest.raises(MergeRequestNotOpen):
            graph.complete_merge_request(1)
        assert [each.kind for each in said.events] == [*MERGING, "merged", "commented"]
        assert said.events[3].actor == "merger"
    else:
        assert [each.kind for each in said.events] == [*left, "commented"]
        graph.complete_merge_request(1)
    [commit] = [each for each in graph.commits() if each.metadata.get("merge_request") == "1"]
    final = graph.merge_request(1)
    assert (final.state, final.commit_id, commit.message) == ("merged", commit.commit_id, "Add Eve")
    assert list_events(graph, 1).count("merged") == 1
    assert (sidecars(graph), graph.verify().is_clean) == ([], True)


def test_a_request_that_was_closed_while_it_was_merged_is_merged(
    template: Path, tmp_path: Path
) -> None:
    """The writer dies right after the publish; meanwhile another one has closed the request."""
    path = tmp_path / "graph"
    shutil.copytree(template, path)
    graph = og.open(path, durability="process")
    head = graph.snapshot("fix").head.commit_id
    facts = {"source_head": head, "target": "main", "target_head": "x"}
    events = inside(graph).coordinator.request_events
    assert events.append(1, RequestEvent(3, "merging", 1, "merger", facts))

    assert graph.close_merge_request(1).state == "closed"
    assert len(graph.merge_requests("closed")) == 1
    graph.merge("fix")

    assert graph.merge_request(1).state == "merged"
    assert [len(graph.merge_requests(each)) for each in ("open", "closed", "merged")] == [0, 0, 1]


def test_a_writer_that_lost_the_race_decides_again_on_what_the_other_has_said(
    template: Path, tmp_path: Path
) -> None:
    """The other one writes after the events were read, and before the next one is written."""
    path = tmp_path / "graph"
    shutil.copytree(template, path)
    graph, other = (og.open(path, durability="process") for _ in range(2))
    calls: list[str] = []

    def interrupt(say: Callable[[], object]) -> Permit:
        calls.clear()

        def permit(request: MergeRequest) -> str | None:
            calls.append(request.state)
            if len(calls) == 2:  # the first question is before the events are read
                say()
            return "ada"

        return permit

    permit = interrupt(lambda: other.comment_on_merge_request(1, "theirs"))
    said = verbs.comment_on_request(inside(graph), 1, permit, "mine", (None, None, None))
    assert [each.text for each in said.comments] == ["theirs", "mine"]
    permit = interrupt(lambda: other.close_merge_request(1))
    with pytest.raises(MergeRequestNotOpen):
        verbs.give_verdict(inside(graph), 1, permit, EventKind.APPROVED)
    assert (calls, list_events(graph, 1)[-1]) == (["open", "open", "closed"], "closed")


def check_order(kinds: Sequence[str]) -> str:
    """Whether each event was allowed after those before it; returns the state they come to."""
    state = "none"
    for kind in kinds:
        allowed = {
            "opened": {"none"},
            "commented": {"open", "closed", "merged"},
            "approved": {"open"},
            "changes_requested": {"open"},
            "merging": {"open"},
            "closed": {"open"},
            "reopened": {"closed"},
            "merged": {"open", "closed"},
        }[kind]
        assert state in allowed, (kinds, kind)
        state = {"opened": "open", "reopened": "open"}.get(kind, state)
        state = kind if kind in ("closed", "merged") else state
    return state


def test_processes_that_act_at_once_leave_one_order_that_all_of_them_obeyed(
    template: Path, tmp_path: Path
) -> None:
    for round_ in range(depth(1, 12)):
        path = tmp_path / f"graph{round_}"
        shutil.copytree(template, path)
        with og.open(path, durability="process") as graph:
            for title in ("two", "three"):
                graph.open_merge_request("fix", title=title)
        actors = [("ada", 2 * round_), ("bob", 2 * round_ + 1)]
        said = race([(request_work.act, (*each, depth(25, 60))) for each in actors], str(path))

        with og.open(path, durability="process") as graph:
            requests = graph.merge_requests("all")
            numbers = [each.number for each in requests]
            assert numbers == list(range(len(numbers), 0, -1))
            for each in requests:
                kinds = [event.kind for event in each.events]
                assert check_order(kinds) == each.state, each
                assert kinds.count("merged") <= 1
            comments = [str(comment.text) for each in requests for comment in each.comments]
            titles = [each.title for each in requests if each.author and each.number > 3]
            assert sorted([*comments, *titles]) == sorted(
                text for each in said for text in each if text != "Add Eve"
            )
            merges = [each for each in graph.commits() if "merge_request" in each.metadata]
            assert len(merges) <= 1
            assert graph.verify().is_clean
