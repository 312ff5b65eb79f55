"""Replay: take back what earlier commits did to a branch, make it again elsewhere, or go back.

    revert        base: what the commit left    source: what was before it
    cherry_pick   base: what was before it      source: what the commit left
    restore       base: the branch as it is     source: the state to go back to

Each is a merge of these with the branch as the target, by the rules of merges (`plan.py`,
`conflicts.py`, `rules.py`), and becomes one commit with one parent or nothing at all. Commits that
follow one another are one change. What several changes do to one table is put together first
(`fold.py`). States of earlier schemas are read in the present one, through identities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.apply import LayoutMoved, PlannedMerge, apply_merge
from omnigraph.branch.choices import Choices, Resolution
from omnigraph.branch.conflicts import Contest
from omnigraph.branch.create import history_turn
from omnigraph.branch.descent import Descent, open_entry
from omnigraph.branch.differences import Differences
from omnigraph.branch.fold import Step, fold_changes
from omnigraph.branch.forecast import forecast_checks, name_checks
from omnigraph.branch.merge import (
    MergeOutcome,
    MergePreview,
    MergeResult,
    choose_plans,
    count_rows,
    list_changes,
    note_resolved,
)
from omnigraph.branch.merge_models import merge_models
from omnigraph.branch.plan import Plan, Snapshots, TablePlan, plan_merge
from omnigraph.branch.resolve import ResolvedMerge, resolve_conflicts
from omnigraph.branch.virtual_base import is_same_entry
from omnigraph.catalog import Catalog
from omnigraph.commit_note import CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.errors import CommitStateGone, ConflictError, MergeConflicts, NotFoundError
from omnigraph.manifest import ManifestState, Snapshot, TableEntry
from omnigraph.manifest.vector_models import note_models
from omnigraph.storage.projection import is_narrower
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.taken_rows import keep_taken_rows
from omnigraph.write.commit import refuse_other_schema
from omnigraph.write.environment import WriteEnvironment

_LOOKED_UP_MAX = 1_000
"""So many ids are looked up in both states; of more, all that differs is found first."""


@dataclass(frozen=True, slots=True)
class Change:
    """What leads from one state to another."""

    before: Snapshot
    after: Snapshot


@dataclass(frozen=True, slots=True)
class Replay:
    """Changes to make on a branch, in this order, as one commit.

    `source` says what they are for people. With `is_partial` what comes of them is no state that
    there was before. `ids` are the only ones that may change, if given.
    """

    verb: str
    source: str
    branch: str
    find_changes: Callable[[ManifestState], Sequence[Change]]
    note: CommitNote
    actor: str | None = None
    is_partial: bool = False
    ids: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class _Joined:
    target: ManifestState
    result: ResolvedMerge = field(default_factory=ResolvedMerge)
    models: Mapping[int, str | None] = field(default_factory=dict)

    @property
    def outcome(self) -> MergeOutcome:
        is_changed = any(len(plan.delta) for plan in self.result.plans.values())
        is_open = bool(self.result.conflicts)
        return MergeOutcome.MERGED if is_changed or is_open else MergeOutcome.ALREADY_UP_TO_DATE


@keep_taken_rows()
def replay(
    environment: WriteEnvironment,
    catalog: Catalog,
    wanted: Replay,
    resolution: Resolution | None = None,
) -> MergeResult:
    """Make the changes.

    Raises:
        MergeConflicts: The branch has changed the same rows since, or the result would break a
            rule of the schema. All of it is listed; the branch is unchanged.
        CommitStateGone: A cleanup has removed a state that says what the change was.
        ExpectedVersionMismatch: The branch changed meanwhile. Nothing is visible; do it again.
    """
    # A cleanup must not remove the states that are read here.
    with history_turn(environment):
        while True:
            joined = _join(environment, catalog, wanted, resolution)
            if joined.result.conflicts:
                raise MergeConflicts(joined.result.conflicts, into=wanted.branch, verb=wanted.verb)
            named = wanted.source, wanted.branch, joined.outcome
            if joined.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
                return MergeResult(*named, actor=wanted.actor)
            try:
                plans = choose_plans(joined.result, wanted.branch)
                commit = apply_merge(environment, _request(joined, plans, wanted))
            except LayoutMoved:
                continue
            return MergeResult(*named, commit.commit_id, count_rows(plans), actor=wanted.actor)


def preview_replay(
    environment: WriteEnvironment,
    catalog: Catalog,
    wanted: Replay,
    resolution: Resolution | None = None,
) -> MergePreview:
    """Say what `replay` would do, and write nothing."""
    joined = _join(environment, catalog, wanted, resolution)
    changes = list_changes(environment, joined.target, joined.result)
    conflicts = tuple(joined.result.conflicts)
    held = [each for _, each in sorted(joined.target.checks.items())]
    state, plans = joined.target.snapshot(), joined.result.plans
    checks = (
        name_checks(held)
        if conflicts
        else forecast_checks(environment.tables, catalog, state, plans, held)
    )
    return MergePreview(wanted.source, wanted.branch, joined.outcome, changes, conflicts, checks)


def _request(joined: _Joined, plans: Mapping[str, TablePlan], wanted: Replay) -> PlannedMerge:
    noted: dict[str, Any] = {**note_models(joined.models), **note_resolved(joined.result)}
    return PlannedMerge(
        source=None,
        target=joined.target,
        plans=plans,
        read_versions=joined.result.read_versions,
        actor=wanted.actor,
        properties={**noted, **wanted.note.to_json()},
    )


def _join(
    environment: WriteEnvironment,
    catalog: Catalog,
    wanted: Replay,
    resolution: Resolution | None,
) -> _Joined:
    choices = Choices.read(resolution)
    target = environment.coordinator.fresh(wanted.branch)
    refuse_other_schema(environment, target)
    changes = wanted.find_changes(target)
    try:
        ids = None if wanted.ids is None else pa.array(sorted(wanted.ids), pa.utf8())
        three, plan = _plan(environment, catalog, target, changes, ids)
        if ids is not None:
            plan = _select_rows(plan, ids)
        result = resolve_conflicts(
            environment.tables,
            catalog,
            three,
            plan,
            choices,
            is_checked=_is_checked(target, changes, wanted),
        )
    except NotFoundError as missing:
        raise (_find_gone(environment, changes) or missing) from missing
    models = merge_models(three, result.plans, may_adopt=wanted.ids is None)
    conflicts = (*result.conflicts, *models.conflicts)
    return _Joined(target, replace(result, conflicts=conflicts), models.changed)


def _plan(
    environment: WriteEnvironment,
    catalog: Catalog,
    target: ManifestState,
    changes: Sequence[Change],
    ids: pa.Array | None,
) -> tuple[Snapshots, Plan]:
    """Plan tables that one change is about as a merge does, and fold the others."""
    now = target.snapshot()
    bases, sources = dict(now.entries), dict(now.entries)
    folded: dict[str, list[Step]] = {}
    for key in sorted(now.entries):
        steps = [step for each in changes if (step := _step_of(each, key)) is not None]
        if len(steps) == 1:
            [(bases[key], sources[key])] = steps
        elif steps:
            folded[key], bases[key], sources[key] = steps, steps[0][0], steps[-1][1]
    models = changes[-1].after.vector_models if changes else now.vector_models
    source = replace(now, entries=sources, vector_models=models)
    base = replace(now, entries=bases)
    three = Snapshots(target.head, source, now, lambda _: base)
    tables, descent = environment.tables, Descent(environment.tables)
    alone = replace(source, entries={**sources, **{key: now.entries[key] for key in folded}})
    few = ids if ids is not None and len(ids) <= _LOOKED_UP_MAX else None
    plan = plan_merge(tables, catalog, replace(three, source=alone), few)
    plans, contests = dict(plan.tables), list[Contest](plan.contests)
    for key, steps in folded.items():
        plans[key], found = fold_changes(descent, catalog.entity(key), now.entries[key], steps)
        contests += found
    checked = {
        key: _mark_other_schema(tables, each, folded.get(key) or [(bases[key], sources[key])])
        for key, each in plans.items()
    }
    return three, Plan(checked, tuple(contests))


def _step_of(change: Change, table_key: str) -> tuple[TableEntry, TableEntry] | None:
    before = change.before.entries.get(table_key)
    after = change.after.entries.get(table_key)
    if before is None or after is None or is_same_entry(before, after):
        return None
    return before, after


def _select_rows(plan: Plan, ids: pa.Array) -> Plan:
    tables = {}
    for key, each in plan.tables.items():
        rows = each.delta.rows
        chosen = Differences(rows.filter(pc.is_in(rows["id"], value_set=ids)))
        # The source's version holds more than what is taken of it, so it cannot be pointed at.
        tables[key] = replace(each, delta=chosen, is_rewrite=True)
    return Plan(tables, plan.contests)


def _is_checked(target: ManifestState, changes: Sequence[Change], wanted: Replay) -> bool:
    """Whether the result is a state that was checked when it was written, in this schema."""
    if len(changes) != 1 or wanted.is_partial or wanted.ids is not None:
        return False
    [change] = changes
    is_whole = change.before.entries == target.entries
    return is_whole and change.after.schema_name == target.schema_name


def _mark_other_schema(tables: TableStorage, plan: TablePlan, steps: Sequence[Step]) -> TablePlan:
    """Have rows of an earlier schema held to all that the present one asks of them.

    Raises:
        ConflictError: They may have numbers that the present type has no room for.
    """
    shown = [each for step in steps for each in step if each.shown is not None]
    for entry in shown:
        stored = open_entry(tables, replace(entry, shown=None)).schema if entry.version else ()
        names = dict(entry.shown.renamed) if entry.shown is not None else {}
        for column in stored:
            name = names.get(column.name, column.name)
            wanted = plan.entity.properties.get(name)
            if wanted is not None and is_narrower(wanted.type.arrow_type(), column.type):
                raise ConflictError(
                    f"'{plan.entity.name}.{name}' was {column.type} then and has room for "
                    f"{wanted.type.arrow_type()} now, so rows of that time cannot be taken over — "
                    "nothing was written; widen the type first"
                )
    return replace(plan, is_of_other_schema=bool(shown))


def _find_gone(environment: WriteEnvironment, changes: Sequence[Change]) -> CommitStateGone | None:
    """The error for the first state that lacks a version of a table that its change is about."""
    for change in changes:
        for key in change.before.entries:
            step = _step_of(change, key)
            for state, entry in zip((change.before, change.after), step or (), strict=False):
                try:
                    open_entry(environment.tables, entry)
                except NotFoundError:
                    commit = state.head
                    return CommitStateGone(commit.commit_id, commit.manifest_version, commit.branch)
    return None
