"""The commit DAG: parents of commits, and which commits histories have in common.

Every commit names the head it was made on and, for a merge, the head that was merged. A branch
knows all ancestors of its head, so two branches are compared without reading a third.

Walks take the latest commit first. A commit is later than its parents (the publisher sees to it),
so a walk meets every commit before its parents and ends where the histories join: its cost follows
that distance, not the length of the history. Commits of older graphs may break that order: then a
walk takes longer, or finds an ancestor of a base besides the base, which changes no merge.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field
from itertools import repeat, takewhile
from typing import TypeAlias

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.manifest import Coordinator, GraphCommit, ManifestState
from omnigraph.manifest.rows import commits_newest_first, row_to_commit

_BLOCK_ROWS = 256
_ONE, _OTHER, _BELOW_BASE = 1, 2, 4


_Places: TypeAlias = dict[str, tuple[pa.Table, int]]
"""Commit id → the rows that it is among, and its place there."""


class _Line:
    """Commit rows of one branch, indexed from the newest back, on demand."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows.select(["object_id", "object_type", "metadata", "table_version"])
        self.indexed = 0

    def read_on(self, places: _Places) -> bool:
        """Add as many again to `places`; False when all are there."""
        end = self._rows.num_rows - self.indexed
        if not end:
            return False
        start = max(0, end - max(_BLOCK_ROWS, self.indexed))
        ids = self._rows["object_id"].slice(start, end - start).to_pylist()
        places.update(zip(ids, zip(repeat(self._rows), range(start, end)), strict=True))
        self.indexed += end - start
        return True


class CommitDag:
    """The commits that some branches know.

    `more` gives further branches; they are read only when a parent is not found, which happens in
    graphs that were written before merges brought their commits along.
    """

    def __init__(
        self,
        states: Iterable[ManifestState],
        more: Callable[[], Iterator[ManifestState]] = lambda: iter(()),
    ) -> None:
        self._lines: list[_Line] = []
        self._places: _Places = {}
        self._commits: dict[str, GraphCommit | None] = {}
        self._more = more()
        for state in states:
            self._add(state)

    def _add(self, state: ManifestState) -> None:
        self._lines += [_Line(state.commit_rows), _Line(state.ancestor_rows)]

    def get(self, commit_id: str) -> GraphCommit | None:
        """A commit, None when no branch knows it."""
        if commit_id not in self._commits:
            self._commits[commit_id] = self._find(commit_id)
        return self._commits[commit_id]

    def _find(self, commit_id: str) -> GraphCommit | None:
        # All lines are read back at the same pace: whichever has the commit, the others were not
        # read much further than it. Most lines have most commits in common, and one index.
        while (place := self._places.get(commit_id)) is None:
            if not sum(line.read_on(self._places) for line in self._lines):
                state = next(self._more, None)
                if state is None:
                    return None
                self._add(state)
        rows, position = place
        return row_to_commit(rows.slice(position, 1).to_pylist()[0])

    def parents(self, commit: GraphCommit) -> Iterator[GraphCommit]:
        for parent_id in (commit.parent_id, commit.merged_parent_id):
            if parent_id is not None:
                parent = self.get(parent_id)
                if parent is not None:
                    yield parent


def read_dag(coordinator: Coordinator, states: Collection[ManifestState]) -> CommitDag:
    """The DAG of some branches; the others are read when a link leads to one of them alone."""

    def more() -> Iterator[ManifestState]:
        known = {state.branch for state in states}
        others = [each for each in coordinator.branches() if each not in known]
        yield from coordinator.fresh_each(others)

    return CommitDag(states, more)


@dataclass(slots=True)
class _Queue:
    """Commits to visit, the latest first."""

    _heap: list[tuple[int, str]] = field(default_factory=list)
    _commits: dict[str, GraphCommit] = field(default_factory=dict)

    def push(self, commit: GraphCommit) -> None:
        if commit.commit_id not in self._commits:
            self._commits[commit.commit_id] = commit
            heapq.heappush(self._heap, (-commit.created_at, commit.commit_id))

    def pop(self) -> GraphCommit:
        return self._commits.pop(heapq.heappop(self._heap)[1])

    def __iter__(self) -> Iterator[str]:
        return iter(self._commits)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two histories. `bases` are their best common ancestors: none comes from another one.

    `only_one` are the commits that lead to the first side alone.
    """

    bases: tuple[GraphCommit, ...]
    only_one: tuple[GraphCommit, ...]


def compare_histories(
    dag: CommitDag, ones: Iterable[GraphCommit], others: Iterable[GraphCommit]
) -> Comparison:
    """Walk back from both sides until everything left is below a common ancestor."""
    marks: dict[str, int] = {}
    visited: dict[str, GraphCommit] = {}
    queue = _Queue()
    unfinished: set[str] = set()

    def reach(commit: GraphCommit, mark: int) -> None:
        known = marks.get(commit.commit_id, 0)
        if known | mark == known:
            return
        marks[commit.commit_id] = known | mark
        queue.push(commit)
        if marks[commit.commit_id] & _BELOW_BASE:
            unfinished.discard(commit.commit_id)
        else:
            unfinished.add(commit.commit_id)

    for commit in ones:
        reach(commit, _ONE)
    for commit in others:
        reach(commit, _OTHER)
    while unfinished:
        commit = queue.pop()
        unfinished.discard(commit.commit_id)
        visited[commit.commit_id] = commit
        mark = marks[commit.commit_id]
        if mark & (_ONE | _OTHER) == _ONE | _OTHER:
            mark |= _BELOW_BASE
        for parent in dag.parents(commit):
            reach(parent, mark)
    return Comparison(
        bases=_in_order(c for i, c in visited.items() if marks[i] == _ONE | _OTHER),
        only_one=_in_order(c for i, c in visited.items() if marks[i] == _ONE),
    )


def _in_order(commits: Iterable[GraphCommit]) -> tuple[GraphCommit, ...]:
    return tuple(sorted(commits, key=lambda each: (each.created_at, each.commit_id)))


def possible_bases(dag: CommitDag, heads: Collection[GraphCommit]) -> dict[str, GraphCommit]:
    """Every commit that a merge of these heads, or of what follows them, can compare with.

    The heads are among them. What several bases are merged over counts as well, so the search is
    repeated with what it found until nothing is added.
    """
    found = {head.commit_id: head for head in heads}
    while True:
        more = _pairwise_bases(dag, list(found.values()))
        if more.keys() <= found.keys():
            return found
        found |= more


def _pairwise_bases(dag: CommitDag, heads: Collection[GraphCommit]) -> dict[str, GraphCommit]:
    """The bases of every two of the heads, in one walk over all of them.

    A commit is reached from some of the heads. It can be a base of two of them only when no child
    of it is reached from both, so one whose child is reached from all the same heads is none.
    """
    everyone = (1 << len(heads)) - 1
    reached: dict[str, int] = {}
    children: dict[str, set[str]] = {}
    visited: dict[str, GraphCommit] = {}
    queue = _Queue()
    for position, head in enumerate(heads):
        reached[head.commit_id] = reached.get(head.commit_id, 0) | 1 << position
        queue.push(head)

    def is_covered(commit_id: str) -> bool:
        mask = reached[commit_id]
        return any(reached[child] == mask for child in children.get(commit_id, ()))

    while any(reached[each] != everyone or not is_covered(each) for each in queue):
        commit = queue.pop()
        visited[commit.commit_id] = commit
        for parent in dag.parents(commit):
            mask = reached.get(parent.commit_id, 0) | reached[commit.commit_id]
            is_new = mask != reached.get(parent.commit_id)
            reached[parent.commit_id] = mask
            children.setdefault(parent.commit_id, set()).add(commit.commit_id)
            if is_new:
                queue.push(parent)
    return {each: commit for each, commit in visited.items() if not is_covered(each)}


def own_commits(state: ManifestState) -> list[GraphCommit]:
    """The commits that a branch made or received, the newest first.

    Other branches may have received some of them too, and say that they are theirs.
    """
    commits = commits_newest_first(state.commit_rows)
    return list(takewhile(lambda each: each.branch == state.branch, commits))


def find_reached_commits(
    dag: CommitDag, heads: Collection[GraphCommit], wanted: Collection[GraphCommit]
) -> list[GraphCommit]:
    """Those of `wanted` that a head comes from. Walks back no further than the oldest of them."""
    if not wanted:
        return []
    oldest = min(each.created_at for each in wanted)
    visited: set[str] = set()
    pending = list(heads)
    while pending:
        commit = pending.pop()
        if commit.commit_id not in visited and commit.created_at >= oldest:
            visited.add(commit.commit_id)
            pending += dag.parents(commit)
    return [each for each in wanted if each.commit_id in visited]
