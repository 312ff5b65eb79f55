"""Type line: which commits along a line changed rows of one type, or the type itself, newest first.

A manifest tells which commits published the table (`line_segments.py`). Each of those is compared
with its first parent, by what it changed: rows that were written back as they were are no change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.branch.changes import ChangeSet
from omnigraph.branch.diff import ChangeFilter, State, StateOf, diff_states
from omnigraph.branch.line_segments import LineSegments
from omnigraph.dataclass import dataclass
from omnigraph.errors import NotFoundError
from omnigraph.lru import Lru
from omnigraph.manifest import Coordinator, GraphCommit
from omnigraph.storage.tables import TableStorage

_STATES_MAX = 8


class StateReader:
    """The states of commits. Neighbours on a line share one, so the last few are remembered."""

    def __init__(self, coordinator: Coordinator, state_of: StateOf) -> None:
        self._coordinator = coordinator
        self._state_of = state_of
        self._known: Lru[str, State] = Lru(_STATES_MAX)

    def read(self, commit: GraphCommit) -> State:
        """What a commit left. Raises NotFoundError when that is not stored any more."""
        found = self._known.get(commit.commit_id)
        if found is None:
            found = self._state_of(self._coordinator.commit_states.get(commit))
            self._known.put(commit.commit_id, found)
        return found

    def read_parent(self, commit: GraphCommit) -> State | None:
        """What was before a commit, None when it is the first."""
        if commit.parent_id is None:
            return None
        found = self._known.get(commit.parent_id)
        return found or self.read(self._coordinator.commit(commit.parent_id))


@dataclass(frozen=True, slots=True)
class TypeStep:
    """A commit that changed a type; `changes` are None when they are not stored any more."""

    commit: GraphCommit
    changes: ChangeSet | None


def compare_type(tables: TableStorage, before: State, after: State, type_id: int) -> ChangeSet:
    """What differs between two states in the rows of one type, and in the type."""
    sides = [each for one in (before, after) for each in one.catalog.entities()]
    names = {each.name for each in sides if each.type_id == type_id}
    found = diff_states(tables, before, after, ChangeFilter(types=names))
    # Another type may have one of the names now, or had it before.
    rows = tuple(each for each in found.table_changes if each.entity.type_id == type_id)
    return replace(found, table_changes=rows)


class TypeLine:
    """Walks over lines with one type in mind. For one operation."""

    def __init__(
        self, tables: TableStorage, coordinator: Coordinator, state_of: StateOf, type_id: int
    ) -> None:
        self._tables = tables
        self._states = StateReader(coordinator, state_of)
        self._type_id = type_id
        self._segments = LineSegments(coordinator, state_of, type_id)

    def walk(self, start: GraphCommit) -> Iterator[TypeStep]:
        """Every commit of the line of `start`, and this one, that changed the type.

        Raises:
            HistoryRemoved: An older state is needed that a cleanup has removed.
        """
        segment = self._segments.read(start)
        while True:
            for pinned in segment.pinned[:-1]:
                yield from self._check(pinned.commit, is_pinned=True)
            floor, last = segment.floor, segment.pinned[-1:]
            is_pinned = any(each.commit.commit_id == floor.commit_id for each in last)
            yield from self._check(floor, is_pinned=is_pinned)
            if floor.parent_id is None:
                return
            segment = self._segments.read_older(floor)

    def is_own(self, step: TypeStep, source: GraphCommit) -> bool:
        """Whether a merge left something else than its source has.

        Raises:
            NotFoundError: A state is not stored any more.
        """
        sides = self._states.read(source), self._states.read(step.commit)
        return _has_changes(compare_type(self._tables, *sides, self._type_id))

    def _check(self, commit: GraphCommit, *, is_pinned: bool) -> Iterator[TypeStep]:
        """The commit, if it changed the type. Of a state that is gone only the pin is known."""
        try:
            before, after = self._states.read_parent(commit), self._states.read(commit)
        except NotFoundError:
            if is_pinned and commit.parent_id is not None:
                yield TypeStep(commit, None)
            return
        if before is None:
            return
        changes = compare_type(self._tables, before, after, self._type_id)
        if _has_changes(changes):
            yield TypeStep(commit, changes)


def _has_changes(changes: ChangeSet) -> bool:
    return bool(changes) or bool(changes.schema_steps)
