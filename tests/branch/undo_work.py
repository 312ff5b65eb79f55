"""Work for the crash runner: reverts, cherry-picks and restores that die on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.failpoints import arm_from_environment
from tests.branch.people import CHANGES, change, new_people

BRANCH = "dev"
NOTE: dict[str, Any] = {"message": "why", "metadata": {"ticket": "T-1"}}


def prepare(path: str) -> None:
    """A branch whose tags name what was done there.

    start    before anything
    one      a merge that adds, changes and removes rows of several tables
    two      another one, with other work between them
    """
    graph = new_people(Path(path))
    graph.create_branch(BRANCH)
    change(graph, "person", BRANCH, name="eve", age=1)
    graph.tag("start", BRANCH)
    graph.create_branch("work", BRANCH)
    change(graph, "age", "work", name="alice", age=31)
    change(graph, "person", "work", name="fay", age=2)
    change(graph, "knows", "work", a="fay", b="alice")
    change(graph, "gone", "work", name="dan")
    change(graph, "gone", "work", name="bob")
    graph.merge("work", BRANCH)
    graph.tag("one", BRANCH)
    change(graph, "person", BRANCH, name="gus", age=3)
    graph.mutate(CHANGES, "age", {"name": "alice", "age": 32}, branch=BRANCH)
    graph.tag("two", BRANCH)


WRITERS: dict[str, tuple[str, Any]] = {
    "revert": (BRANCH, lambda g: g.revert("two", branch=BRANCH, **NOTE)),
    "revert several": (BRANCH, lambda g: g.revert("one", "two", branch=BRANCH, **NOTE)),
    "cherry-pick": ("main", lambda g: g.cherry_pick("one", into="main", **NOTE)),
    "restore": (BRANCH, lambda g: g.restore("start", branch=BRANCH, **NOTE)),
}
"""The branch that each changes, and the call."""


def undo(path: str, writer: str, arm: str) -> str:
    """Run a writer; usually not to the end."""
    graph = og.open(path, durability="process", actor="undoer")
    arm_from_environment(arm)
    WRITERS[writer][1](graph)
    return "done"
