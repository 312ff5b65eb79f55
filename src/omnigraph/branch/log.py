"""Log: the commits of a branch that a reader asks for, newest first, and what each of them changed.

    about nothing in particular    the commits, parsed as they are asked for
    about a type or an entity      those that changed it: found by the pins and rows of the history
                                   that is touched, not by comparing every commit

Its actor, its time and its message are conditions on top. What is behind the last commit
that is wanted is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

from omnigraph.branch.change_records import Record, Room, to_record
from omnigraph.branch.changes import ChangeSet, EntityChange
from omnigraph.branch.commit_dag import read_dag
from omnigraph.branch.diff import ChangeFilter, StateOf, diff_states
from omnigraph.branch.entity_history import REMOVED
from omnigraph.branch.entity_line import EntityLine, Step, describe_step
from omnigraph.branch.log_walk import LogWalk, time_order
from omnigraph.branch.type_line import StateReader, TypeLine, TypeStep
from omnigraph.catalog import EntityType, MigrationStep
from omnigraph.dataclass import dataclass
from omnigraph.errors import EntityNotFound, NotFoundError
from omnigraph.json_form import JsonForm
from omnigraph.manifest import Coordinator, GraphCommit, ManifestState
from omnigraph.storage.tables import TableStorage

NOT_STORED = "what it changed was removed by cleanup"


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which commits are wanted; None is all. Times are in microseconds since the epoch, UTC.

    `message` is a part of the message, in any case; `after` the commit that a page ended with.
    """

    actor: str | None = None
    since: int | None = None
    until: int | None = None
    message: str | None = None
    after: GraphCommit | None = None

    def wants(self, commit: GraphCommit) -> bool:
        text = (commit.message or "").casefold()
        return (
            (self.actor is None or commit.actor == self.actor)
            and (self.since is None or commit.created_at >= self.since)
            and (self.until is None or commit.created_at <= self.until)
            and (self.message is None or self.message.casefold() in text)
            and (self.after is None or time_order(commit) < time_order(self.after))
        )


@dataclass(frozen=True, slots=True)
class TableStat(JsonForm):
    """How many rows of a table a commit changed."""

    table_key: str
    inserts: int
    updates: int
    deletes: int


@dataclass(frozen=True, slots=True)
class CommitPatch:
    """A commit, and what it changed against its first parent.

    `changes` are records as the change feed has them, None when only the counts were asked for;
    with `is_cut` there are more, and `commit_changes` has all. `notes` say what is not stored.
    """

    commit: GraphCommit
    tables: tuple[TableStat, ...] = ()
    schema_steps: tuple[MigrationStep, ...] = ()
    changes: list[Record] | None = None
    is_cut: bool = False
    notes: tuple[str, ...] = ()


Entry: TypeAlias = tuple[GraphCommit, Step | TypeStep | None]
"""A commit of a log, and what is known by then of its change."""


class LogReader:
    """Answers about one branch, or another line. `notes` fill up while commits are read."""

    def __init__(
        self,
        tables: TableStorage,
        coordinator: Coordinator,
        state_of: StateOf,
        entity: EntityType | None = None,
        entity_id: str | None = None,
    ) -> None:
        self._tables = tables
        self._coordinator = coordinator
        self._state_of = state_of
        self._entity = entity
        self._id = entity_id
        self._states = StateReader(coordinator, state_of)
        self.notes: list[str] = []

    def list_commits(
        self, commits: Iterable[GraphCommit], wanted: LogFilter, limit: int | None
    ) -> Iterator[Entry]:
        """The wanted ones of some commits, whatever they changed."""
        return islice(((each, None) for each in commits if wanted.wants(each)), limit)

    def list_changing(
        self,
        start: GraphCommit,
        wanted: LogFilter,
        limit: int | None,
        known: tuple[ManifestState, ...] = (),
        *,
        merged: bool,
    ) -> Iterator[Entry]:
        """The wanted commits that changed the type or the entity, of the line of `start`.

        With `merged` also those of the branches that were merged into it.

        Raises:
            EntityNotFound: The line never had the entity, as far as its history is stored.
        """
        found = self._walk(start, wanted.since, known, merged=merged)
        return islice((each for each in found if wanted.wants(each[0])), limit)

    def _walk(
        self,
        start: GraphCommit,
        since: int | None,
        known: tuple[ManifestState, ...],
        *,
        merged: bool,
    ) -> Iterator[Entry]:
        assert self._entity is not None
        place = self._tables, self._coordinator, self._state_of, self._entity.type_id
        line: Any = TypeLine(*place) if self._id is None else EntityLine(*place, self._id)
        walk: LogWalk[Any] = LogWalk(line, read_dag(self._coordinator, known), REMOVED)
        self.notes = walk.notes
        for step in walk.walk_all(start) if merged else walk.walk_line(start):
            # A commit is later than its parents, so all that follow are older still.
            if since is not None and step.commit.created_at < since:
                break
            yield step.commit, step
        if self._id is not None and not walk.is_seen:
            raise EntityNotFound(self._entity.table_key, self._id, start.branch, walk.notes)

    # What a commit changed

    def read_patch(self, entry: Entry, most: int | None) -> CommitPatch:
        """What a commit changed, of the asked type or entity; `most` None for the counts alone."""
        commit, step = entry
        if isinstance(step, Step):
            return self._describe_entity(step, most)
        changes = None if step is None else step.changes
        if step is None:
            with suppress(NotFoundError):
                changes = self._compare(commit)
        if changes is None:
            return CommitPatch(commit, notes=(NOT_STORED,))
        counts = [(each.entity.table_key, *each.rows.counts) for each in changes.table_changes]
        tables = tuple(TableStat(*each) for each in sorted(counts) if any(each[1:]))
        patch = CommitPatch(commit, tables, changes.schema_steps)
        if most is None:
            return patch
        records, rest = Room(most).take(changes, None)
        return replace(patch, changes=records, is_cut=rest is not None)

    def _compare(self, commit: GraphCommit) -> ChangeSet:
        after = self._states.read(commit)
        before = self._states.read_parent(commit)
        return diff_states(self._tables, before or after, after, ChangeFilter())

    def _describe_entity(self, step: Step, most: int | None) -> CommitPatch:
        assert self._entity is not None
        assert self._id is not None
        change = describe_step(step, self._id)
        records = [to_record(change, self._entity.type_id)]
        shown = None if most is None else records[:most]
        return CommitPatch(step.commit, (_count(change),), changes=shown)


def _count(change: EntityChange) -> TableStat:
    ops = [change.op.value == each for each in ("insert", "update", "delete")]
    return TableStat(change.table_key, *map(int, ops))
