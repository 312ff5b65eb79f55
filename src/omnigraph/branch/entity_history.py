"""Entity history and blame: which commits made one node or edge what it is.

Both follow the line of the asked branch. Where a merge brought a change, they go on to the commits
of the merged branch that made it; `through` names the merge. What a merge itself decided, because
both sides had changed the entity, is its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

from omnigraph.branch.changes import EntityChange
from omnigraph.branch.commit_dag import compare_histories, read_dag
from omnigraph.branch.contested import Contested, LostValue, find_contested, list_on_line
from omnigraph.branch.diff import StateOf
from omnigraph.branch.entity_line import (
    EntityLine,
    EntityRow,
    Step,
    changed_values,
    describe_step,
    differ,
    identity_of,
)
from omnigraph.branch.line_segments import HistoryRemoved
from omnigraph.branch.log_walk import time_order
from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.display import ROWS_MAX, Grid, Sheet, count_noun, format_time, show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import EntityNotFound, NotFoundError
from omnigraph.json_form import JsonForm
from omnigraph.manifest import Coordinator, GraphCommit, ManifestState
from omnigraph.storage.tables import TableStorage

REMOVED = "older history was removed by cleanup"


class EntityHistory(list[EntityChange]):
    """The changes of one entity, the latest to reach the branch first: a merge brings its own then.

    `notes` say what could not be read.
    """

    def __init__(self, changes: Collection[EntityChange], notes: Collection[str] = ()) -> None:
        super().__init__(changes)
        self.notes = tuple(dict.fromkeys(notes))

    def make_sheet(self) -> Sheet:
        rows = [_describe_change(each) for each in self[:ROWS_MAX]]
        columns = ("change", "properties", "commit", "time", "actor", "through")
        return Sheet(
            f"{count_noun(len(self), 'change')}, newest first",
            {"note": "; ".join(self.notes) or None},
            [Grid(columns, rows, len(self))],
        )

    __repr__ = show_text
    _repr_html_ = show_html


def _describe_change(change: EntityChange) -> tuple[str, ...]:
    commit = change.commit
    made = ("", "", "") if commit is None else (
        commit.commit_id, format_time(commit.created_at), commit.actor or ""
    )  # fmt: skip
    return change.op.value, ", ".join(change.properties), *made, change.through or ""


@dataclass(frozen=True, slots=True)
class Blame(JsonForm):
    """A value, and the commit that wrote it; `at` is in microseconds since the epoch, UTC.

    `through` is the merge by which it came. The commit is that merge itself when what the merged
    branch did is not stored any more, and None when a cleanup removed how the value came about.
    `lost` are values of the other side that merges gave up for it, when they resolved a conflict
    about the entity, the latest first; as far as both sides are stored.
    """

    value: Any
    commit_id: str | None = None
    actor: str | None = None
    at: int | None = None
    through: str | None = None
    lost: tuple[LostValue, ...] = ()

    make_sheet = make_field_sheet
    _repr_html_ = show_html


class EntityBlame(dict[str, Blame]):
    """For each property its value, and what wrote it."""

    def make_sheet(self) -> Sheet:
        columns = ("property", "value", "commit", "time", "actor", "through", "lost")
        rows = [
            (name, each.value, each.commit_id, format_time(each.at), each.actor, each.through,
             len(each.lost) or None)
            for name, each in self.items()
        ]  # fmt: skip
        title = f"who wrote {count_noun(len(rows), 'value')}"
        return Sheet(title, grids=[Grid(columns, rows)])

    __repr__ = show_text
    _repr_html_ = show_html


_Lost: TypeAlias = dict[int | str, list[LostValue]]


class EntityReview:
    """Answers for one entity on one branch."""

    def __init__(
        self,
        tables: TableStorage,
        coordinator: Coordinator,
        state_of: StateOf,
        state: ManifestState,
        entity: EntityType,
        entity_id: str,
    ) -> None:
        self._line = EntityLine(tables, coordinator, state_of, entity.type_id, entity_id)
        self._dag = read_dag(coordinator, (state,))
        self._state = state
        self._entity = entity
        self._id = entity_id
        self._notes: list[str] = []
        self._is_seen = False

    def list_changes(self) -> EntityHistory:
        """Every change that is stored, the latest to reach the branch first.

        Raises:
            EntityNotFound: The branch never had the entity, as far as its history is stored.
        """
        found = list(self._list_line(self._state.head, None, None))
        if not found and not self._is_seen:
            raise EntityNotFound(self._entity.table_key, self._id, self._state.branch, self._notes)
        return EntityHistory(found, self._notes)

    def blame(self) -> EntityBlame:
        """For each property that the entity has now, what wrote its value.

        Raises:
            EntityNotFound: The branch does not have the entity now.
        """
        row = self._line.read(self._state.head)
        if row is None:
            raise self._explain_absence()
        names = [name for name in row.image if name != "id"]
        found: dict[int | str, Blame] = {}
        identities = {name: identity_of(row.entity, name) for name in names}
        lost: _Lost = {each: [] for each in identities.values()}
        self._assign(self._state.head, {*lost}, None, found, lost)
        return EntityBlame(
            (name, replace(found[each], value=row.image[name], lost=tuple(lost[each])))
            for name, each in identities.items()
        )

    # History

    def _list_line(
        self, start: GraphCommit, allowed: Collection[str] | None, through: str | None
    ) -> Iterator[EntityChange]:
        """The changes along a line; `allowed` are the commits that a merge brought."""
        try:
            for step in self._line.walk(start):
                if allowed is not None and step.commit.commit_id not in allowed:
                    return
                yield from self._list_step(step, allowed, through)
        except HistoryRemoved as removed:
            self._is_seen |= removed.is_there
            self._notes.append(REMOVED)

    def _list_step(
        self, step: Step, allowed: Collection[str] | None, through: str | None
    ) -> Iterator[EntityChange]:
        source = self._find_source(step.commit)
        if source is None:
            yield describe_step(step, self._id, through)
            return
        try:
            theirs = self._line.read(source)
        except NotFoundError:
            self._notes.append(_explain_lost(source, step.commit))
            yield describe_step(step, self._id, through)
            return
        if differ(theirs, step.after):
            yield describe_step(step, self._id, through)
        brought = self._list_brought(source, step.commit)
        if allowed is not None:
            brought &= set(allowed)
        yield from self._list_line(source, brought, through or step.commit.commit_id)

    def _find_source(self, commit: GraphCommit) -> GraphCommit | None:
        """The head that a commit merged; None when it is no merge."""
        source_id = commit.merged_parent_id
        return None if source_id is None else self._dag.get(source_id)

    def _list_brought(self, source: GraphCommit, merge: GraphCommit) -> set[str]:
        """The commits that lead to the source of a merge, and did not lead to its target."""
        target = [self._dag.get(merge.parent_id)] if merge.parent_id is not None else []
        known = [each for each in target if each is not None]
        return {each.commit_id for each in compare_histories(self._dag, [source], known).only_one}

    # Blame

    def _assign(
        self,
        start: GraphCommit,
        wanted: set[int | str],
        through: str | None,
        found: dict[int | str, Blame],
        lost: _Lost | None = None,
    ) -> None:
        """Find what wrote the wanted values of the entity as `start` left it.

        And into `lost`, what merges since then gave up for them.
        """
        left = set(wanted)
        merges = [] if lost is None else [*list_on_line(self._contested, self._dag, start)][::-1]
        try:
            for step in self._line.walk(start):
                while merges and time_order(merges[-1].merge) >= time_order(step.commit):
                    self._add_lost(merges.pop(), left, lost)
                changed = left
                if step.before is not None:
                    changed = left & changed_values(step.before, step.after)
                self._assign_step(step, set(changed), through, found, lost)
                left -= changed
                if not left:
                    return
        except HistoryRemoved:
            pass
        for each in left:
            found[each] = Blame(None, through=through)

    def _assign_step(
        self,
        step: Step,
        changed: set[int | str],
        through: str | None,
        found: dict[int | str, Blame],
        lost: _Lost | None,
    ) -> None:
        commit, source = step.commit, self._find_source(step.commit)
        outer = through
        if source is not None and changed:
            outer = through or commit.commit_id
            theirs: set[int | str] = set()
            try:
                theirs = changed - changed_values(self._line.read(source), step.after)
                outer = through  # what is left, the merge decided itself
            except NotFoundError:
                pass
            if theirs:
                self._assign(source, theirs, through or commit.commit_id, found, lost)
            changed -= theirs
        for each in changed:
            found[each] = Blame(None, commit.commit_id, commit.actor, commit.created_at, outer)

    @cached_property
    def _contested(self) -> dict[str, Contested]:
        return find_contested(self._state, self._id)

    def _add_lost(self, contested: Contested, wanted: set[int | str], lost: _Lost | None) -> None:
        """Add what a merge gave up of the values that the entity still has."""
        merge, source = contested.merge, self._find_source(contested.merge)
        target = None if merge.parent_id is None else self._dag.get(merge.parent_id)
        if lost is None or source is None or target is None:
            return
        try:
            after = self._line.read(merge)
            take = None if after is None else contested.kept.get(after.entity.table_key)
            if after is None or take is None:
                return
            for kept, chosen in _list_kept(after.entity, take, wanted):
                sides = [(source, target)] if kept != "theirs" else []
                sides += [(target, source)] if kept != "ours" else []
                for loser, winner in sides:
                    found = self._list_lost(loser, winner, after, chosen)
                    for identity, value, commit, is_deletion in found:
                        facts = commit.commit_id, commit.actor, commit.created_at, commit.branch
                        lost[identity].append(
                            LostValue(value, merge.commit_id, kept, *facts, is_deletion)
                        )
        except NotFoundError:
            return

    def _list_lost(
        self, loser: GraphCommit, winner: GraphCommit, after: EntityRow, wanted: set[int | str]
    ) -> list[tuple[int | str, Any, GraphCommit, bool]]:
        """The values of a side that the row does not have, and the commits that wrote them."""
        losing = self._line.read(loser)
        own = {
            each.commit_id: each
            for each in compare_histories(self._dag, [loser], [winner]).only_one
        }
        found = []
        for each in wanted & changed_values(losing, after):
            writer = self._find_writer(loser, losing, each)
            # A value that both sides had from before was not given up by the merge.
            if writer in own:
                value = None if losing is None else losing.values.get(each)
                found.append((each, value, own[writer], losing is None))
        return found

    def _find_writer(
        self, head: GraphCommit, row: EntityRow | None, identity: int | str
    ) -> str | None:
        """The commit that wrote a value of a losing side, or deleted the entity there."""
        if row is None:
            try:
                return next((each.commit.commit_id for each in self._line.walk(head)), None)
            except HistoryRemoved:
                return None
        found: dict[int | str, Blame] = {}
        self._assign(head, {identity}, None, found)
        return found[identity].commit_id

    def _explain_absence(self) -> EntityNotFound:
        changes = self.list_changes()
        commit = changes[0].commit
        deleted_by = None if commit is None else commit.commit_id
        place = self._entity.table_key, self._id, self._state.branch
        return EntityNotFound(*place, deleted_by=deleted_by)


def _list_kept(
    entity: EntityType, take: str | dict[str, str], wanted: set[int | str]
) -> Iterator[tuple[str, set[int | str]]]:
    """What a merge kept, each with the wanted properties that it kept it of."""
    if isinstance(take, str):
        yield take, wanted
        return
    for kept in dict.fromkeys(take.values()):
        names = {identity_of(entity, name) for name, each in take.items() if each == kept}
        yield kept, wanted & names


def _explain_lost(source: GraphCommit, merge: GraphCommit) -> str:
    return (
        f"what branch '{source.branch}' did before merge '{merge.commit_id}' is not stored any "
        "more: the merge stands for it"
    )
