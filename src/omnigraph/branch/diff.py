"""Diff: what changed between two states of a graph, or with every commit since one.

    target              names
    "main", "v1~2"      a revision: a branch as it is now, a tag, a commit (see `revisions.py`)
    12                  a manifest version of main
    datetime, "2026-…"  main, as the newest commit made by then left it
    "review@12"         a manifest version of a branch; a time after the @ works as well

Tables are paired by the identity of their types and columns by that of their properties, each side
in its own schema: a rename is no change of a row, a dropped type is deletes. Tables whose pins are
equal are not looked at; of the others, what the filters leave out is not compared either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.branch.changes import ChangeOp, ChangeSet, TableChanges
from omnigraph.branch.compare import drop_equal_rows
from omnigraph.branch.compare_windows import find_differences
from omnigraph.branch.descent import Descent, open_entry
from omnigraph.branch.differences import Differences
from omnigraph.catalog import (
    Catalog,
    EntityType,
    MigrationStep,
    RenameType,
    list_differences,
    unify,
)
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, NotFoundError
from omnigraph.manifest import MAIN, Coordinator, GraphCommit, ManifestState, Snapshot, TableEntry
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.coordinator import ULID_TEXT
from omnigraph.manifest.revisions import find_at, find_commit, find_revision, resolve
from omnigraph.manifest.rows import commits_newest_first
from omnigraph.manifest.schema_view import find_renamed_columns
from omnigraph.storage.handles import ShownColumns, TableHandle
from omnigraph.storage.tables import TableStorage

Target: TypeAlias = str | int | datetime | Snapshot

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}.*")


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """What of a diff is wanted; None is everything."""

    kinds: Collection[str] | None = None
    types: Collection[str] | None = None
    ops: Collection[str] | None = None
    types_had: frozenset[tuple[str, int]] = frozenset()
    """Identities of types that bore a wanted name at some time, each with that name."""

    def follow_types(self, types_had: Iterable[EntityType]) -> ChangeFilter:
        """The same filter, that wants a type also before and after it has the name asked for."""
        names = self.types or ()
        found = frozenset((each.name, each.type_id) for each in types_had if each.name in names)
        return replace(self, types_had=found)

    def check(self, catalogs: Iterable[Catalog]) -> None:
        """Refuse a word that nothing can match; a type may be of any of the catalogues.

        Raises:
            BadRequestError: A kind, type or operation that does not exist.
        """
        known_types = list(dict.fromkeys(each.name for one in catalogs for each in one.entities()))
        known = (
            ("kind", self.kinds, ["node", "edge"]),
            ("op", self.ops, [op.value for op in ChangeOp]),
        )
        for word, given, allowed in (*known, ("type", self.types, known_types)):
            if isinstance(given, str):
                raise BadRequestError(f"{word}s is the text {given!r} — give a list")
            known_once = {name for name, _ in self.types_had} if word == "type" else ()
            for each in given or ():
                if each not in allowed and each not in known_once:
                    listed = ", ".join(map(str, allowed))
                    raise BadRequestError(f"there is no {word} '{each}' — expected one of {listed}")

    def wants_table(self, entities: Collection[EntityType]) -> bool:
        """Whether a table is wanted, by what either side calls it."""
        is_kind = self.kinds is None or any(each.kind in self.kinds for each in entities)
        if self.types is None or not is_kind:
            return is_kind
        followed = {type_id for _, type_id in self.types_had}
        return any(each.name in self.types or each.type_id in followed for each in entities)

    def select_steps(self, steps: Iterable[MigrationStep]) -> tuple[MigrationStep, ...]:
        """The schema steps about the types that are wanted; none when only some rows are."""
        if self.ops is not None:
            return ()
        return tuple(
            each
            for each in steps
            if (self.kinds is None or getattr(each, "type_kind", None) in self.kinds)
            and (self.types is None or not self.types_of(each).isdisjoint(self.types))
        )

    @staticmethod
    def types_of(step: MigrationStep) -> set[str]:
        """What a step calls the type that it is about, before and after."""
        names = (getattr(step, each, None) for each in ("type_name", "name"))
        renamed = (getattr(step, each, None) for each in ("old_name", "new_name"))
        is_type = isinstance(step, RenameType)
        return {each for each in (*names, *(renamed if is_type else ())) if each is not None}

    def wants(self, op: ChangeOp) -> bool:
        return self.ops is None or op.value in self.ops


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """What one commit changed, against the commit it was made on."""

    commit: GraphCommit
    changes: ChangeSet

    def to_json(self) -> dict[str, Any]:
        return {
            "cause": self.describe(self.commit),
            "changes": [each.to_json() for each in self.changes],
        }

    @staticmethod
    def describe(commit: GraphCommit) -> dict[str, Any]:
        """The commit as the cause of changes."""
        cause = {
            "graph_commit_id": commit.commit_id,
            "parent_commit_id": commit.parent_id,
            "merged_parent_commit_id": commit.merged_parent_id,
            "authored_branch": commit.branch,
            "actor_id": commit.actor,
            "authored_at": commit.created_at,
            "message": commit.message,
            "metadata": dict(commit.metadata) or None,
        }
        return {name: value for name, value in cause.items() if value is not None}


def find_snapshot(coordinator: Coordinator, target: Target) -> Snapshot:
    """The state that a target names.

    Raises:
        NotFoundError: It names nothing that is there.
    """
    match target:
        case Snapshot():
            return target
        case bool():
            raise BadRequestError(f"{target} names no state of the graph")
        case int():
            return resolve(coordinator, branch=MAIN, version=target)
        case datetime():
            return resolve(coordinator, branch=MAIN, at=target)
    name, at_sign, moment = target.partition("@")
    if at_sign and not moment.startswith("{"):
        return find_at(coordinator, name or MAIN, moment)
    try:
        return find_revision(coordinator, target)
    except (NotFoundError, BadRequestError):
        if _TIME.fullmatch(target):
            return resolve(coordinator, branch=MAIN, at=target)
        raise


@dataclass(frozen=True, slots=True)
class State:
    """One side of a diff: a snapshot, and the schema its tables are in."""

    snapshot: Snapshot
    catalog: Catalog

    def tables(self) -> dict[int, _Table]:
        """The tables by the identity of their types."""
        entries = self.snapshot.entries
        return {
            each.type_id: _Table(each, entries[each.table_key])
            for each in self.catalog.entities()
            if each.table_key in entries
        }


@dataclass(frozen=True, slots=True)
class _Table:
    entity: EntityType
    entry: TableEntry


StateOf: TypeAlias = Callable[[Snapshot], State]


def diff_states(
    tables: TableStorage,
    before: State,
    after: State,
    wanted: ChangeFilter,
    *,
    reads_all: bool = False,
) -> ChangeSet:
    """Every entity that differs between two states, types and properties matched by identity.

    A caller that `reads_all` has very many rows compared by tasks, where a Spark is chosen.
    """
    descent = Descent(tables, reads_all)
    spell = unify(after.catalog, before.catalog)
    before, after = (State(each.snapshot, spell(each.catalog)) for each in (before, after))
    old, new = before.tables(), after.tables()
    found = (
        _diff_table(descent, old.get(type_id), new.get(type_id), wanted)
        for type_id in sorted({*old, *new})
    )
    earlier, later = before.snapshot, after.snapshot
    return ChangeSet(
        tables=tables,
        from_version=earlier.manifest_version,
        to_version=later.manifest_version,
        branch=later.branch if later.branch == earlier.branch else None,
        table_changes=tuple(each for each in found if each is not None and each.rows),
        from_schema=earlier.schema_name,
        to_schema=later.schema_name,
        schema_steps=wanted.select_steps(list_differences(before.catalog, after.catalog)),
    )


def _diff_table(
    descent: Descent, before: _Table | None, after: _Table | None, wanted: ChangeFilter
) -> TableChanges | None:
    sides = [each for each in (after, before) if each is not None]
    if not wanted.wants_table([each.entity for each in sides]):
        return None
    tables = descent.tables
    if before is None or after is None:
        old = None if before is None else open_entry(tables, before.entry)
        new = None if after is None else open_entry(tables, after.entry)
        rows = find_differences(descent, old, new, lambda found: _select_rows(found, wanted))
        return TableChanges(sides[0].entity, old, new, rows)
    renamed = find_renamed_columns(before.entity, after.entity)
    if not renamed and before.entry.shows_same_rows(after.entry):
        return None
    old, new = open_entry(tables, before.entry), open_entry(tables, after.entry)
    shown = _under_later_names(tables, before.entry, old, renamed)

    def check(found: Differences) -> Differences:
        found = drop_equal_rows(tables, shown, new, _select_rows(found, wanted))
        return _select_rows(found, wanted)

    rows = find_differences(descent, shown, new, check)
    return TableChanges(after.entity, old, new, rows, renamed)


def _under_later_names(
    tables: TableStorage, entry: TableEntry, handle: TableHandle, renamed: Mapping[str, str]
) -> TableHandle:
    """The earlier side with its columns called as on the later one, to be compared with it."""
    if not renamed:
        return handle
    shown = ShownColumns(tuple(sorted(renamed.items())))
    return open_entry(tables, replace(entry, shown=shown))


def _select_rows(rows: Differences, wanted: ChangeFilter) -> Differences:
    if wanted.ops is None:
        return rows
    parts = {
        ChangeOp.INSERT: rows.inserts,
        ChangeOp.UPDATE: rows.updates,
        ChangeOp.DELETE: rows.deletes,
    }
    kept = [part() for op, part in parts.items() if wanted.wants(op)]
    empty = rows.rows.slice(0, 0)
    return Differences(pa.concat_tables([empty, *kept]).sort_by("id").combine_chunks())


def changes_since(
    tables: TableStorage,
    coordinator: Coordinator,
    state_of: StateOf,
    since: str,
    branch: str,
    wanted: ChangeFilter,
) -> Iterator[CommitChanges]:
    """What every commit of a branch changed after the revision `since`, oldest first.

    Follows the line of the branch itself: a merge is one step, with all that it brought.

    Raises:
        NotFoundError: `since` is not a commit on that line.
        BadRequestError: The filter names a type that no commit of it has.
    """
    state = coordinator.fresh(canonical_branch(branch))
    is_id = ULID_TEXT.fullmatch(since) is not None
    line = line_after(state, since if is_id else find_commit(coordinator, since).commit_id)
    _check_along(wanted, coordinator, state_of, line)
    return _blocks(tables, coordinator, state_of, line, wanted)


def line_after(state: ManifestState, since: str) -> list[GraphCommit]:
    """The commits of a branch's own line from `since` to its head, oldest first.

    Raises:
        NotFoundError: `since` is not a commit on that line.
    """
    line: list[GraphCommit] = []
    for commit in walk_back(state):
        line.append(commit)
        if commit.commit_id == since:
            return line[::-1]
    raise NotFoundError(
        f"commit '{since}' is not on the line of branch '{state.branch}' — take one that "
        "`commits` lists for it"
    )


def walk_back(state: ManifestState) -> Iterator[GraphCommit]:
    """The commits of a branch's own line, from its head; parsed as they are asked for."""
    rest = commits_newest_first(state.commit_rows)
    known: dict[str, GraphCommit] = {}
    commit: GraphCommit | None = state.head
    while commit is not None:
        yield commit
        parent_id = commit.parent_id
        while parent_id is not None and parent_id not in known:
            older = next(rest, None)
            if older is None:
                return
            known[older.commit_id] = older
        commit = known.get(parent_id) if parent_id is not None else None


def _check_along(
    wanted: ChangeFilter, coordinator: Coordinator, state_of: StateOf, line: list[GraphCommit]
) -> None:
    """Check a filter against both ends, and only if that fails against all that lies between."""
    if wanted.types is None:
        wanted.check([])
        return
    ends = [state_of(coordinator.commit_states.get(each)).catalog for each in (line[0], line[-1])]
    try:
        wanted.check(ends)
    except BadRequestError:
        between = (state_of(coordinator.commit_states.get(each)).catalog for each in line)
        wanted.check({id(each): each for each in (*ends, *between)}.values())


def _blocks(
    tables: TableStorage,
    coordinator: Coordinator,
    state_of: StateOf,
    line: list[GraphCommit],
    wanted: ChangeFilter,
) -> Iterator[CommitChanges]:
    """What each commit of a line changed but the first, which is where it starts."""
    before = state_of(coordinator.commit_states.get(line[0]))
    for commit in line[1:]:
        after = state_of(coordinator.commit_states.get(commit))
        yield CommitChanges(commit, diff_states(tables, before, after, wanted))
        before = after
