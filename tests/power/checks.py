"""Checks: what must hold of a graph after a power cut. Runs in a process of its own for each state.

read-only open    shows the last acknowledged picture, or the one that was on its way
verify            reports; it never fails
read-write open   the same, whole; then nothing is left for `verify` to say
next write        works on every branch, and is there after another open
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import omnigraph as og
from omnigraph.errors import GraphNotFound
from omnigraph.graph import Graph
from tests.power.writers import picture

NEXT = "query q($n: String) { insert Person { name: $n } }"

Picture = dict[str, Any]


def check(
    path: str, allowed: list[Picture], may_be_missing: bool = False, thorough: bool = True
) -> list[str]:
    """Look at a graph after a crash; returns what is wrong, in words."""
    logging.disable(logging.WARNING)
    wrong: list[str] = []
    if may_be_missing:
        return _check_unfinished_init(path, allowed)
    _run(wrong, "read-only", lambda: _look(path, "r", allowed, thorough, wrong))
    _run(wrong, "read-write", lambda: _look(path, "rw", allowed, True, wrong))
    if not wrong:
        _run(wrong, "next write", lambda: _write_next(path, thorough, wrong))
    return wrong


def _check_unfinished_init(path: str, allowed: list[Picture]) -> list[str]:
    try:
        with og.open(path, mode="r"):
            pass
    except GraphNotFound:
        return []
    except Exception:
        return [f"unfinished init: {traceback.format_exc()}"]
    return check(path, allowed)


def _run(wrong: list[str], what: str, work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException:
        wrong.append(f"{what}: {traceback.format_exc()}")


def _look(path: str, mode: Any, allowed: list[Picture], verifies: bool, wrong: list[str]) -> None:
    with og.open(path, mode=mode, durability="process") as graph:
        errors = graph.verify().errors if verifies else ()
        seen = picture(graph)
    if not any(_shows(seen, each) for each in allowed):
        wrong.append(f"{mode}: {_difference(seen, allowed)}")
    if mode == "rw":
        wrong += [f"verify: {each}" for each in errors]


def _write_next(path: str, thorough: bool, wrong: list[str]) -> None:
    with og.open(path, durability="process") as graph:
        branches = graph.branches()
        for branch in branches:
            graph.mutate(NEXT, params={"n": "next"}, branch=branch)
        if thorough:
            graph.create_branch("review/a/c", branches[-1])
            graph.mutate(NEXT, params={"n": "after"}, branch="review/a/c")
    with og.open(path, durability="process") as graph:
        lacking = [branch for branch in branches if "next" not in _names(graph, branch)]
        wrong += [f"next write: the row is not on '{branch}'" for branch in lacking]
        if thorough:
            graph.delete_branch("review/a/c")
            graph.optimize()
            graph.cleanup(keep=2, confirm=True)
            wrong += [f"verify after the next write: {each}" for each in graph.verify().errors]


def _names(graph: Graph, branch: str) -> set[str]:
    return {str(row["name"]) for row in graph.nodes("Person", branch=branch).to_arrow().to_pylist()}


def _shows(seen: Picture, wanted: Picture) -> bool:
    """The same but for the commits: all have to be there, and recovery adds some of its own."""
    here, there = seen["branches"], wanted["branches"]
    return (
        (seen["schema"], seen["tags"]) == (wanted["schema"], wanted["tags"])
        and here.keys() == there.keys()
        and all(here[name]["rows"] == there[name]["rows"] for name in there)
        and all(set(there[name]["commits"]) <= set(here[name]["commits"]) for name in there)
    )


def _difference(seen: Picture, allowed: list[Picture]) -> str:
    before = allowed[0]
    parts = []
    if seen["schema"] not in [each["schema"] for each in allowed]:
        parts.append("another schema")
    if seen["tags"] not in [each["tags"] for each in allowed]:
        parts.append(f"tags {sorted(seen['tags'])}")
    if sorted(seen["branches"]) not in [sorted(each["branches"]) for each in allowed]:
        parts.append(f"branches {sorted(seen['branches'])}")
    for name, facts in seen["branches"].items():
        known = before["branches"].get(name, {"rows": [], "commits": []})
        for what in ("rows", "commits"):
            lost = set(known[what]) - set(facts[what])
            new = set(facts[what]) - set(known[what])
            if lost or new:
                parts.append(f"{name}: {what} lost {sorted(lost)}, new {sorted(new)}")
    return "; ".join(parts) or "neither the old nor the new picture"
