"""Work for the crash runner and for races: merge requests that die, and that meet one another."""

from __future__ import annotations

from multiprocessing.synchronize import Barrier
from pathlib import Path
from random import Random

import omnigraph as og
from omnigraph.errors import ConflictError
from omnigraph.failpoints import arm_from_environment
from omnigraph.testing.inside import inside
from tests.branch.people import change, new_people

SOURCE = "fix"
WAIT_SECONDS = 60


def prepare(path: str) -> None:
    """A request that was approved, of a branch that the target has moved on from."""
    with new_people(Path(path)) as graph:
        graph.create_branch(SOURCE)
        change(graph, "person", SOURCE, name="eve", age=20)
        change(graph, "age", name="bob", age=26)
        graph.open_merge_request(SOURCE, title="Add Eve", actor="ada")
        graph.approve_merge_request(1, actor="bob")


def complete(path: str, arm: str) -> str:
    """Merge the request; usually not to the end."""
    graph = og.open(path, durability="process", actor="merger")
    arm_from_environment(arm)
    graph.complete_merge_request(1)
    return "done"


def act(graph: og.Graph, together: Barrier, actor: str, seed: int, count: int) -> list[str]:
    """Do all sorts of things to a few requests; returns the comments that were acknowledged."""
    random, said = Random(seed), []
    together.wait(WAIT_SECONDS)
    for step in range(count):
        number = random.randint(1, 3)
        verb = random.choice(["comment", "approve", "close", "reopen", "reject", "merge", "open"])
        try:
            match verb:
                case "comment":
                    text = f"{actor} {step}"
                    graph.comment_on_merge_request(number, text, actor=actor)
                    said.append(text)
                case "approve":
                    graph.approve_merge_request(number, actor=actor)
                case "close":
                    graph.close_merge_request(number, actor=actor)
                case "reopen":
                    graph.reopen_merge_request(number, actor=actor)
                case "reject":
                    graph.request_changes(number, actor=actor)
                case "open":
                    graph.open_merge_request(SOURCE, title=f"{actor} {step}", actor=actor)
                case _:
                    graph.complete_merge_request(number, actor=actor)
        except ConflictError:
            continue  # it is merged, closed, or another merge came first
    return [*said, *(each.title for each in graph.merge_requests("all") if each.author == actor)]


def list_events(graph: og.Graph, number: int) -> list[str]:
    """The kinds of the events that are stored, whatever they come to."""
    return [each.kind for each in inside(graph).coordinator.request_events.read(number)]
