"""Graphs to send around, and what is compared of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import CommitStateGone
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from tests.graph.reading import add, new_graph
from tests.ready import copy_ready
from tests.storage.conftest import s3_endpoint, s3_store

__all__ = ["s3_endpoint", "s3_store"]

OPTIONS: dict[str, Any] = {"durability": "process", "self_care": False}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A closed graph with a tag, a branch that was merged and deleted, one of one, and a merge."""
    copy_ready("travelling", make_home, tmp_path / "home")
    og.open(tmp_path / "home", **OPTIONS).close()
    return tmp_path / "home"


def make_home(path: Path) -> og.Graph:
    graph = new_graph(path)
    add(graph, "pair", a="ann", b="bob")
    graph.tag("v1")
    for branch, origin in (("old", "main"), ("team/a", "main"), ("team/b", "team/a")):
        graph.create_branch(branch, from_=origin)
        add(graph, "person", branch=branch, name=branch.replace("/", "-"))
    add(graph, "person", name="cy")
    graph.merge("old", into="main", delete_branch=True)
    add(graph, "age", name="ann", age=7)
    return graph


def show(path: Path | str, **options: Any) -> dict[str, Any]:
    """Everything that two copies of one graph must have in common."""
    with og.open(path, mode="r", **options) as graph:
        commits = list_commits(graph)
        return {
            "branches": {each: rows(graph, branch=each) for each in graph.branches()},
            "commits": {
                each: (commit.parent_id, commit.merged_parent_id, commit.actor, commit.created_at)
                for each, commit in commits.items()
            },
            "past": {each: past(graph, each) for each in commits},
            "tags": graph.tags(),
            "history": history(graph),
        }


def list_commits(graph: og.Graph, branches: list[str] | None = None) -> dict[str, og.Commit]:
    """Every commit that these branches, or all, come from, over both parents."""
    found: dict[str, og.Commit] = {}
    pending = [graph.commits(each)[0].commit_id for each in branches or graph.branches()]
    while pending:
        commit = graph.commit(pending.pop())
        if commit.commit_id not in found:
            found[commit.commit_id] = commit
            pending += [each for each in (commit.parent_id, commit.merged_parent_id) if each]
    return found


def rows(graph: og.Graph, branch: str = "main", commit: str | None = None) -> list[str]:
    return sorted(map(str, graph.export(branch=branch, commit=commit)))


def past(graph: og.Graph, commit: str) -> list[str] | str:
    """What a commit showed, or that a cleanup has removed it."""
    try:
        return rows(graph, commit=commit)
    except CommitStateGone:
        return "gone"


def history(graph: og.Graph) -> list[str]:
    found = graph.history("Person", "ann")
    return [each.commit.commit_id for each in found if each.commit is not None]


def find_damage(path: Path | str, **options: Any) -> list[str]:
    """What `verify` says of a graph and of every file of it, except that indexes are behind."""
    with og.open(path, mode="r", **options) as graph:
        found = graph.verify(content=True)
    return [str(each) for each in found.findings if each.check != "indexes"]


@contextmanager
def failing_at(point: Failpoint, number: int = 1) -> Iterator[None]:
    """Make what runs inside fail when it reaches a point for the n-th time."""
    with arm_failpoints({point: f"raise@{number}"}), pytest.raises(FailpointError):
        yield


def list_files(path: Path) -> Mapping[str, int]:
    """Every file of a graph with its size, but not what depends on where it is."""
    return {
        str(each.relative_to(path)): each.stat().st_size
        for each in path.rglob("*")
        if each.is_file() and each.relative_to(path).parts[0] not in ("__locks", "__derived")
    }
