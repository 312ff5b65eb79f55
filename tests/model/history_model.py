"""The commit DAG as plain data: what branches, merges and diffs mean, said as shortly as possible.

A commit is an id, its parents, and a state that never changes. A branch is the id of its head.
The base of a merge is the set of common ancestors that no other common ancestor comes from;
several of them are merged into a virtual base, by the same row rules, over their own base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.model.history_schema import Row, Schema, State, Table


class _Unresolved:
    """The row of a virtual base on which the bases conflict: equal to nothing, itself included."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


UNRESOLVED: Final = _Unresolved()

Cell = Row | None | _Unresolved
"""What is under an id: a row, nothing, or in a virtual base, no answer."""

BaseState = Mapping[int, Mapping[str, Cell]]
Conflict = tuple[str, int, str]
"""Kind, table identity, row id."""

Changes = dict[tuple[int, str], tuple[Row | None, Row | None]]
"""Table identity and row id → the row before and after."""

DIVERGENT = "divergent"
"""An insert or an update on both sides: which of them cannot be said over an unresolved base."""


@dataclass(frozen=True)
class Commit:
    """One state of the graph. `number` counts commits in the order they were made."""

    id: str
    number: int
    branch: str
    parents: tuple[str, ...]
    schema: Schema
    state: State


@dataclass(frozen=True)
class Merge:
    """What a merge comes to. `state` is the result, with the target's row where there is conflict.

    `clashes` are the ids of rows that a unique property forbids to stand together.
    """

    outcome: str
    state: State
    conflicts: frozenset[Conflict] = frozenset()
    clashes: frozenset[tuple[int, frozenset[str]]] = frozenset()

    @property
    def is_clean(self) -> bool:
        return not self.conflicts and not self.clashes


@dataclass
class History:
    """All commits ever made, and the heads of the branches that are there."""

    commits: dict[str, Commit] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)

    def head(self, branch: str) -> Commit:
        return self.commits[self.heads[branch]]

    def record(self, id_: str, branch: str, schema: Schema, state: State, *merged: str) -> Commit:
        """Add a commit to a branch, on top of its head."""
        parents = (self.heads[branch], *merged) if branch in self.heads else ()
        assert id_ not in self.commits, f"commit {id_} was made before"
        commit = Commit(id_, len(self.commits), branch, parents, schema, state)
        self.commits[id_] = commit
        self.heads[branch] = id_
        return commit

    # Ancestry

    def ancestors(self, *ids: str) -> set[str]:
        """Every commit these come from, themselves included."""
        found: set[str] = set()
        pending = list(ids)
        while pending:
            id_ = pending.pop()
            if id_ not in found:
                found.add(id_)
                pending += self.commits[id_].parents
        return found

    def line(self, id_: str) -> list[str]:
        """The commits of a branch's own line, newest first: first parents only."""
        found = [id_]
        while self.commits[found[-1]].parents:
            found.append(self.commits[found[-1]].parents[0])
        return found

    def best_common(self, some: Iterable[str], other: Iterable[str]) -> list[str]:
        """The common ancestors that no other common ancestor comes from, oldest first."""
        common = self.ancestors(*some) & self.ancestors(*other)
        behind = {p for each in common for p in self.commits[each].parents}
        best = common - self.ancestors(*behind)
        return sorted(best, key=lambda each: self.commits[each].number)

    def virtual_base(self, bases: list[str]) -> BaseState:
        """One state for several bases: merged one after the other, each over their own base."""
        state: BaseState = self.commits[bases[0]].state
        for count, base in enumerate(bases[1:], 1):
            below = self.virtual_base(self.best_common(bases[:count], [base]))
            state = _merge_states(below, state, self.commits[base].state)
        return state

    # Merging

    def merge(self, source: str, target: str) -> Merge:
        """What merging one branch's head into another's comes to."""
        theirs, ours = self.head(source), self.head(target)
        bases = self.best_common([theirs.id], [ours.id])
        if theirs.id in bases:
            return Merge("already_up_to_date", ours.state)
        if ours.id in bases:
            return Merge("fast_forward", theirs.state)
        return merge_over(self.virtual_base(bases), theirs, ours)


def _cell(state: BaseState, table: int, id_: str) -> Cell:
    return state.get(table, {}).get(id_)


def _ids(*states: BaseState) -> Iterator[tuple[int, str]]:
    """Every table and row id of any of the states."""
    yield from sorted({(t, id_) for state in states for t, rows in state.items() for id_ in rows})


def merge_cells(base: Cell, theirs: Cell, ours: Cell) -> Cell:
    """The three-way rule for one row."""
    if theirs == ours or theirs == base:  # noqa: SIM109 — `in` finds what is not equal to itself
        return ours
    return theirs if ours == base else UNRESOLVED


def _merge_states(base: BaseState, theirs: BaseState, ours: BaseState) -> BaseState:
    merged: dict[int, dict[str, Cell]] = {}
    for table, id_ in _ids(base, theirs, ours):
        cell = merge_cells(*(_cell(each, table, id_) for each in (base, theirs, ours)))
        if cell is not None:
            merged.setdefault(table, {})[id_] = cell
    return merged


def merge_over(base: BaseState, theirs: Commit, ours: Commit) -> Merge:
    """Merge two states over a base: rows first, then the rules of the merged graph."""
    merged: dict[int, dict[str, Row]] = {table: {} for table in ours.state}
    conflicts: set[Conflict] = set()
    for table, id_ in _ids(base, theirs.state, ours.state):
        old = _cell(base, table, id_)
        new, mine = (each.state.get(table, {}).get(id_) for each in (theirs, ours))
        row = merge_cells(old, new, mine)
        if isinstance(row, _Unresolved):
            conflicts.add((_kind(old, new, mine), table, id_))
            row = mine
        if row is not None:
            merged[table][id_] = row
    orphans = {("orphan_edge", table, id_) for table, id_, _, _ in orphan_ends(ours.schema, merged)}
    return Merge(
        "merged",
        merged,
        frozenset(conflicts | orphans),
        frozenset(find_clashes(ours.schema, merged)),
    )


def _kind(base: Cell, theirs: Row | None, ours: Row | None) -> str:
    if theirs is None or ours is None:
        return "delete_vs_update"
    if isinstance(base, _Unresolved):
        return DIVERGENT
    return "divergent_insert" if base is None else "divergent_update"


# Rules of one state


def orphan_ends(schema: Schema, state: State) -> Iterator[tuple[int, str, int, str]]:
    """Edges with an end that is not there: table and id of the edge, table and id of the node."""
    for edge in schema.types:
        for side, role in zip(("src", "dst"), edge.ends or (), strict=False):
            nodes = schema.need(role).identity
            for id_, row in state.get(edge.identity, {}).items():
                if row[side] not in state.get(nodes, {}):
                    yield edge.identity, id_, nodes, row[side]


def find_clashes(schema: Schema, state: State) -> Iterator[tuple[int, frozenset[str]]]:
    """Rows that share the value of a unique property: their table, and the ids of each such set."""
    for type_ in schema.types:
        for column in type_.columns:
            if "@unique" in column.declared:
                for ids in _by_value(state.get(type_.identity, {}), column.identity).values():
                    if len(ids) > 1:
                        yield type_.identity, frozenset(ids)


def _by_value(rows: Table, column: int) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = {}
    for id_, row in rows.items():
        if column in row:
            found.setdefault(row[column], []).append(id_)
    return found


def is_valid(schema: Schema, state: State) -> bool:
    """Whether a state keeps every rule."""
    return not [*orphan_ends(schema, state), *find_clashes(schema, state)]


# Settling conflicts


def resolve_conflicts(merge: Merge, theirs: Commit, ours: Commit, side: str) -> State | None:
    """The result when every conflict is resolved for one side; None when that cannot be.

    Settling one can uncover another, so this goes on until nothing new turns up.
    """
    state = {table: dict(rows) for table, rows in merge.state.items()}
    for kind, table, id_ in merge.conflicts:
        if kind != "orphan_edge" and side == "theirs":
            _put(state, table, id_, theirs.state)
    met: set[tuple[int, str, int, str, bool]] = set()
    while orphans := list(orphan_ends(ours.schema, state)):
        changes: list[tuple[int, str, Commit | None]] = []
        for table, id_, nodes, node in orphans:
            is_brought = state[table][id_] != ours.state[table].get(id_)
            if (table, id_, nodes, node, is_brought) in met:
                return None
            met.add((table, id_, nodes, node, is_brought))
            if side == "ours":
                changes.append((table, id_, ours) if is_brought else (nodes, node, ours))
            elif not is_brought:
                changes.append((table, id_, None))
            elif node in theirs.state[nodes]:
                changes.append((nodes, node, theirs))
            else:
                return None
        for table, id_, commit in changes:
            _put(state, table, id_, {} if commit is None else commit.state)
    return state


def _put(state: dict[int, dict[str, Row]], table: int, id_: str, source: State) -> None:
    """Make a row what it is in another state; gone where that has none."""
    row = source.get(table, {}).get(id_)
    if row is None:
        state[table].pop(id_, None)
    else:
        state[table][id_] = row


# Differences


def diff(before: State, after: State) -> Changes:
    """What differs, by identity: both rows of every id where they are not the same."""
    pairs = {
        (table, id_): tuple(each.get(table, {}).get(id_) for each in (before, after))
        for table, id_ in _ids(before, after)
    }
    return {key: (old, new) for key, (old, new) in pairs.items() if old != new}
