"""Work for the crash runner: merges that die on the way."""

from __future__ import annotations

import omnigraph as og
from omnigraph.failpoints import arm_from_environment
from tests.branch.people import change, new_people

SOURCE = "review"


def prepare(path: str, shape: str) -> None:
    """A graph with a branch to merge.

    forward   main has not moved: adopted onto main with new, changed and deleted rows
    both      main has moved as well: rewritten
    mixed     into a branch that has one table of its own, while main moved on in others
    """
    from pathlib import Path

    graph = new_people(Path(path))
    graph.create_branch(SOURCE)
    if shape == "mixed":
        # The branch owns Person; Firm moves on main, Knows on another branch of main.
        change(graph, "person", SOURCE, name="eve", age=1)
        merge_other(graph)
        return
    change(graph, "person", SOURCE, name="eve", age=1)
    change(graph, "age", SOURCE, name="alice", age=31)
    change(graph, "gone", SOURCE, name="dan")
    change(graph, "knows", SOURCE, a="eve", b="alice")
    change(graph, "apart", SOURCE, a="bob")
    if shape == "both":
        change(graph, "person", name="fay", age=2)
        change(graph, "knows", a="fay", b="carol")


def merge_other(graph: og.Graph) -> None:
    change(graph, "firm", code="f3")
    change(graph, "age", name="alice", age=31)


def names_of(shape: str) -> tuple[str, str]:
    """Source and target of the merge."""
    return ("main", SOURCE) if shape == "mixed" else (SOURCE, "main")


def merge(path: str, shape: str, arm: str) -> str:
    """Merge; usually not to the end."""
    graph = og.open(path, durability="process", actor="merger")
    arm_from_environment(arm)
    source, target = names_of(shape)
    result = graph.merge(source, target)
    return str(result.outcome)
