"""Log walk: the commits that changed one thing, over lines and the branches merged into them.

As `history` tells it: where a merge changed the thing, the walk goes on to the commits of the
merged branch that made the change, and the merge itself counts only if it left something else than
its source had. The latest commit comes first, whichever line it is on, and nothing is read of what
lies before the last one that was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Generic, Protocol, TypeVar

from omnigraph.branch.commit_dag import CommitDag, compare_histories
from omnigraph.branch.line_segments import HistoryRemoved
from omnigraph.dataclass import dataclass
from omnigraph.errors import NotFoundError
from omnigraph.manifest import GraphCommit


class Changed(Protocol):
    """A commit that changed the thing."""

    @property
    def commit(self) -> GraphCommit: ...


S = TypeVar("S", bound=Changed)


class Line(Protocol[S]):
    """What happened to the thing along one line."""

    def walk(self, start: GraphCommit) -> Iterator[S]: ...

    def is_own(self, step: S, source: GraphCommit) -> bool: ...


@dataclass(slots=True)
class _OpenLine(Generic[S]):
    """A line that is being walked: its next step, and the commits that a merge brought of it."""

    step: S
    rest: Iterator[S]
    allowed: Collection[str] | None


def time_order(commit: GraphCommit) -> tuple[int, str]:
    """What commits of several lines are sorted by."""
    return commit.created_at, commit.commit_id


class LogWalk(Generic[S]):
    """One walk. `notes` say what could not be read, `is_seen` whether there was a step at all."""

    def __init__(self, line: Line[S], dag: CommitDag, removed: str) -> None:
        self._line = line
        self._dag = dag
        self._removed = removed
        self._open: list[_OpenLine[S]] = []
        self.notes: list[str] = []
        self.is_seen = False

    def walk_line(self, start: GraphCommit) -> Iterator[S]:
        """The steps of one line, merges among them."""
        return self._read(start)

    def walk_all(self, start: GraphCommit) -> Iterator[S]:
        """The steps of a line and of what was merged into it, the latest commit first."""
        self._add(self._read(start), None)
        while self._open:
            newest = max(self._open, key=lambda each: time_order(each.step.commit))
            self._open.remove(newest)
            if self._expand(newest):
                yield newest.step
            self._add(newest.rest, newest.allowed)

    def _read(self, start: GraphCommit) -> Iterator[S]:
        try:
            for step in self._line.walk(start):
                self.is_seen = True
                yield step
        except HistoryRemoved as removed:
            self.is_seen |= removed.is_there
            if self._removed not in self.notes:
                self.notes.append(self._removed)

    def _add(self, steps: Iterator[S], allowed: Collection[str] | None) -> None:
        step = next(steps, None)
        if step is not None and (allowed is None or step.commit.commit_id in allowed):
            self._open.append(_OpenLine(step, steps, allowed))

    def _expand(self, line: _OpenLine[S]) -> bool:
        """Open the line that a merge brought; whether the step is a change of its own."""
        commit = line.step.commit
        source = None
        if commit.merged_parent_id is not None:
            source = self._dag.get(commit.merged_parent_id)
        if source is None:
            return True
        try:
            is_own = self._line.is_own(line.step, source)
            parents = (self._dag.get(each) for each in [commit.parent_id] if each is not None)
            target = [each for each in parents if each is not None]
            brought = compare_histories(self._dag, [source], target).only_one
            allowed = {each.commit_id for each in brought}
            self._add(
                self._read(source), allowed if line.allowed is None else allowed & {*line.allowed}
            )
        except NotFoundError:
            return (
                True  # what the merged branch did is not stored any more: the merge stands for it
            )
        return is_own
