"""Merge: bring what one branch did into another, row by row, as one commit or not at all.

    already_up_to_date   the source has nothing the target has not seen; nothing is written
    fast_forward         the target has not changed since; it ends up as the source is
    merged               both changed; the target gets what the source did

The plan is made without any lock over three fixed states. Conflicts are all found before anything
is written; with none left, `apply.py` publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import cache
from typing import Any

from omnigraph.branch.apply import LayoutMoved, PlannedMerge, apply_merge
from omnigraph.branch.apply_schema_merge import PlannedSchemaMerge, apply_schema_merge, find_adopted
from omnigraph.branch.changes import ChangeSet, TableChanges
from omnigraph.branch.choices import VALUE, Choice, Choices, Resolution
from omnigraph.branch.commit_dag import Comparison, read_dag
from omnigraph.branch.delete import delete_branch
from omnigraph.branch.descent import open_entry
from omnigraph.branch.forecast import CheckForecast, forecast_checks, name_checks
from omnigraph.branch.merge_base import Base, commits_of, merge_base
from omnigraph.branch.merge_checks import merge_checks
from omnigraph.branch.merge_models import merge_models
from omnigraph.branch.merged_rows import find_broken_rules, find_other_rules
from omnigraph.branch.plan import Snapshots, TablePlan, choose_how, plan_merge
from omnigraph.branch.resolve import ResolvedMerge, resolve_conflicts
from omnigraph.branch.schema_join import SchemaJoin, Schemas, is_in_one_schema, join_schemas
from omnigraph.catalog import Catalog, MigrationStep, list_differences
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import (
    BadRequestError,
    CommitStateGone,
    ConflictError,
    MergeConflict,
    MergeConflicts,
    OmnigraphError,
    SourceMoved,
)
from omnigraph.json_form import JsonForm, to_json, without_empty
from omnigraph.manifest import (
    Coordinator,
    GraphCommit,
    ManifestState,
    Snapshot,
    load_accepted_contract,
)
from omnigraph.manifest.checks import Check, note_checks
from omnigraph.manifest.schemas import draw_next_id, read_schema
from omnigraph.manifest.vector_models import note_models
from omnigraph.storage.control import ControlTable
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.taken_rows import keep_taken_rows
from omnigraph.write.commit import refuse_other_schema
from omnigraph.write.environment import WriteEnvironment


class MergeOutcome(StrEnum):
    """What a merge found."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class TableMerge(JsonForm):
    """How many rows of one table a merge added, changed and removed in the target."""

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did. `tables` has the tables whose rows changed; no commit when up to date."""

    source: str
    target: str
    outcome: MergeOutcome
    commit_id: str | None = None
    tables: Mapping[str, TableMerge] = field(default_factory=dict)
    actor: str | None = None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The wire form, with the commit and the tables besides."""
        deletion = {
            "branch_deleted": self.branch_deleted,
            "branch_delete_error": self.branch_delete_error,
        }
        return {
            "source": self.source,
            "target": self.target,
            "outcome": self.outcome.value,
            "actor_id": self.actor,
            "commit_id": self.commit_id,
            "tables": to_json(self.tables),
            **without_empty(deletion),
        }

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class MergePreview(JsonForm):
    """What a merge would do: its outcome, the changes of the target, what stands in the way."""

    source: str
    target: str
    outcome: MergeOutcome
    changes: ChangeSet
    conflicts: Sequence[MergeConflict] = ()
    checks: Sequence[CheckForecast] = ()
    """What the merge is held to: the checks of the target, and those that the source brings."""

    def make_sheet(self) -> Sheet:
        inside = self.changes.make_sheet()
        conflicts = [(each.table_key, each.row_id, each.kind) for each in self.conflicts]
        title = f"merge of {self.source} into {self.target}: {self.outcome.value}"
        facts = {"changes": inside.title, "conflicts": len(conflicts)}
        grids = [Grid(("table", "id", "conflict"), conflicts)] if conflicts else []
        words = {True: "holds", False: "does not hold", None: "is run at the merge"}
        checks = [(each.name, words[each.holds]) for each in self.checks]
        grids += [Grid(("check", ""), checks)] if checks else []
        return Sheet(title, facts, [*grids, *inside.grids])

    __repr__ = show_text
    _repr_html_ = show_html


@dataclass(frozen=True, slots=True)
class _Joined:
    """Two heads, where they parted, and what joining them comes to."""

    source: ManifestState
    target: ManifestState
    base: Base
    histories: Comparison
    outcome: MergeOutcome
    result: ResolvedMerge = field(default_factory=ResolvedMerge)
    models: Mapping[int, str | None] = field(default_factory=dict)
    schema: SchemaJoin | None = None
    checks: Mapping[str, Check | None] = field(default_factory=dict)

    @property
    def new_schema(self) -> SchemaJoin | None:
        """The schema that the target gets; None when it stays in its own."""
        if self.schema is None or not self.schema.is_new_to(self.target.snapshot()):
            return None
        return self.schema


@keep_taken_rows()
def merge(
    environment: WriteEnvironment,
    catalog: Catalog,
    source: str,
    target: str,
    *,
    actor: str | None = None,
    note: CommitNote = NO_NOTE,
    resolution: Resolution | None = None,
    permit_schema: Callable[[], object] = lambda: None,
    source_head: str | None = None,
    before_publish: Callable[[str], object] = lambda _: None,
) -> MergeResult:
    """Merge `source` into `target`; `permit_schema` is asked before its schema is changed.

    With `source_head`, that commit is merged or nothing. `before_publish` gets the head of the
    target once nothing stands in the way that is known before the tables are written.

    Raises:
        SourceMoved: The source has another head than `source_head`.
        MergeConflicts: Both sides changed something differently, or the result would break a
            rule of the schema. All of it is listed; the target is unchanged.
        ExpectedVersionMismatch: The target changed meanwhile. Nothing is visible; merge again.
    """
    while True:
        joined = _join(environment, catalog, source, target, resolution)
        head = joined.source.head.commit_id
        if source_head not in (None, head):
            raise SourceMoved(source, expected=str(source_head), actual=head)
        if joined.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
            return MergeResult(source, target, joined.outcome, actor=actor)
        if joined.result.conflicts:
            raise MergeConflicts(joined.result.conflicts, into=target)
        if joined.new_schema is not None:
            permit_schema()
        before_publish(joined.target.head.commit_id)
        try:
            return _publish(environment, joined, actor, note)
        except LayoutMoved:
            continue  # no upkeep is without end: it has work only where there were writes


def _publish(
    environment: WriteEnvironment, joined: _Joined, actor: str | None, note: CommitNote
) -> MergeResult:
    source, target = joined.source.branch, joined.target.branch
    plans = choose_plans(joined.result, target)
    facts: dict[str, Any] = {
        "source": joined.source,
        "target": joined.target,
        "plans": plans,
        "actor": actor,
        "properties": {**_properties(joined), **note.to_json()},
        "ancestors": joined.histories.only_one,
    }
    if joined.new_schema is None:
        reads = joined.result.read_versions
        commit = apply_merge(environment, PlannedMerge(read_versions=reads, **facts))
    else:
        adopted = find_adopted(joined.new_schema)
        request = PlannedSchemaMerge(join=joined.new_schema, adopted=adopted, **facts)
        commit = apply_schema_merge(environment, request)
    tables = count_rows(plans)
    return MergeResult(source, target, joined.outcome, commit.commit_id, tables, actor=actor)


def choose_plans(result: ResolvedMerge, target: str) -> dict[str, TablePlan]:
    """The tables to change, and how the target comes to show each of them."""
    return {
        key: replace(plan, how=choose_how(plan, target))
        for key, plan in result.plans.items()
        if len(plan.delta)
    }


def count_rows(plans: Mapping[str, TablePlan]) -> dict[str, TableMerge]:
    """How many rows of each table are changed."""
    return {key: TableMerge(*plan.delta.counts) for key, plan in sorted(plans.items())}


def list_changes(
    environment: WriteEnvironment, target: ManifestState, result: ResolvedMerge
) -> ChangeSet:
    """What the target would get."""
    return ChangeSet(
        tables=environment.tables,
        from_version=target.version,
        to_version=target.version,
        branch=target.branch,
        table_changes=tuple(
            TableChanges(plan.entity, plan.target, plan.source, plan.delta)
            for plan in result.plans.values()
            if len(plan.delta)
        ),
    )


def delete_merged(
    environment: WriteEnvironment, result: MergeResult, history: ControlTable
) -> MergeResult:
    """Remove the source of a merge. The merge stands, whatever comes of this."""
    try:
        delete_branch(environment, result.source, history)
    except OmnigraphError as error:
        return replace(result, branch_deleted=False, branch_delete_error=str(error))
    return replace(result, branch_deleted=True)


def preview_merge(
    environment: WriteEnvironment,
    catalog: Catalog,
    source: str,
    target: str,
    *,
    resolution: Resolution | None = None,
) -> MergePreview:
    """Say what `merge` would do, and write nothing."""
    joined = _join(environment, catalog, source, target, resolution)
    found = list_changes(environment, joined.target, joined.result)
    changes = replace(found, schema_steps=_list_schema_steps(joined))
    return MergePreview(
        source,
        target,
        joined.outcome,
        changes,
        tuple(joined.result.conflicts),
        _forecast(environment, joined, catalog),
    )


def _forecast(
    environment: WriteEnvironment, joined: _Joined, catalog: Catalog
) -> Sequence[CheckForecast]:
    """Run the checks of the target and those that come, over what the merge would leave."""
    held = {**joined.target.checks, **joined.checks}
    checks = [each for _, each in sorted(held.items()) if each is not None]
    schema, plans, state = joined.schema, joined.result.plans, joined.target.snapshot()
    if joined.result.conflicts or joined.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
        return name_checks(checks)
    if schema is not None and schema.images is not None:
        catalog, state = schema.merged.catalog, schema.images.target
        if joined.outcome is MergeOutcome.FAST_FORWARD:
            plans, state = {}, schema.images.source
    elif joined.outcome is MergeOutcome.FAST_FORWARD:
        plans, state = {}, joined.source.snapshot()
    return forecast_checks(environment.tables, catalog, state, plans, checks)


def _list_schema_steps(joined: _Joined) -> tuple[MigrationStep, ...]:
    """What the merge does to the schema of the target; nothing while it cannot be made."""
    schema = joined.new_schema
    if schema is None or schema.images is None:
        return ()
    return list_differences(schema.target, schema.merged.catalog)


def _join(
    environment: WriteEnvironment,
    catalog: Catalog,
    source: str,
    target: str,
    resolution: Resolution | None,
) -> _Joined:
    """Find base and outcome, plan every table, check the result, resolve what can be resolved."""
    choices = Choices.read(resolution)
    if source == target:
        raise BadRequestError(f"cannot merge branch '{source}' into itself")
    coordinator = environment.coordinator
    theirs, ours = coordinator.fresh(source), coordinator.fresh(target)
    base, histories = merge_base(read_dag(coordinator, (theirs, ours)), theirs.head, ours.head)
    if histories.bases[0].commit_id == theirs.head.commit_id:
        return _Joined(theirs, ours, base, histories, MergeOutcome.ALREADY_UP_TO_DATE)
    is_fast_forward = histories.bases[0].commit_id == ours.head.commit_id
    refuse_other_schema(environment, ours)
    three = Snapshots(base, theirs.snapshot(), ours.snapshot(), _base_reader(coordinator))
    outcome = MergeOutcome.FAST_FORWARD if is_fast_forward else MergeOutcome.MERGED
    schema = None
    if not is_in_one_schema(three):
        schema = _join_schemas(environment, three, is_fast_forward=is_fast_forward)
        if schema.images is None or schema.conflicts:
            result = ResolvedMerge(conflicts=schema.conflicts)
            return _Joined(theirs, ours, base, histories, outcome, result, schema=schema)
        catalog, three = schema.merged.catalog, schema.images
    plan = plan_merge(environment.tables, catalog, three)
    result = resolve_conflicts(
        environment.tables, catalog, three, plan, choices, is_checked=is_fast_forward
    )
    models = merge_models(three, result.plans)
    first = _base_reader(coordinator)(commits_of(base)[0])
    checks = merge_checks(first.checks, ours.checks, theirs.checks)
    found = (*result.conflicts, *models.conflicts, *checks.conflicts)
    result = replace(result, conflicts=found)
    facts = result, models.changed, schema, checks.changed
    joined = _Joined(theirs, ours, base, histories, outcome, *facts)
    return joined if schema is None else _finish_schema(environment.tables, joined, schema, three)


def _join_schemas(
    environment: WriteEnvironment, three: Snapshots, *, is_fast_forward: bool
) -> SchemaJoin:
    texts = environment.texts
    current = load_accepted_contract(texts, environment.coordinator, None)
    return join_schemas(
        environment.tables,
        three,
        Schemas(lambda snapshot: read_schema(texts, snapshot, current)),
        next_id=draw_next_id(texts),
        is_fast_forward=is_fast_forward,
    )


def _finish_schema(
    tables: TableStorage, joined: _Joined, schema: SchemaJoin, three: Snapshots
) -> _Joined:
    """Check whole tables by the rules that are new to one side, and name models as the merge does.

    A fast forward ends up as a state that was checked when it was written.
    """
    plans = {key: each for key, each in joined.result.plans.items() if len(each.delta)}
    found = schema.late_conflicts
    if joined.outcome is not MergeOutcome.FAST_FORWARD and not joined.result.conflicts:
        for entity in find_other_rules(schema, plans):
            entry = three.target.entries[entity.table_key]
            plan = plans.get(entity.table_key)
            found += find_broken_rules(tables, entity, open_entry(tables, entry), plan)
    known = joined.target.vector_models
    renamed = {
        key: model for key, model in three.target.vector_models.items() if known.get(key) != model
    }
    result = replace(joined.result, conflicts=(*joined.result.conflicts, *found))
    return replace(joined, result=result, models={**renamed, **joined.models})


def _base_reader(coordinator: Coordinator) -> Callable[[GraphCommit], Snapshot]:
    @cache
    def read(commit: GraphCommit) -> Snapshot:
        try:
            return coordinator.commit_states.get_whole(commit)
        except CommitStateGone as gone:
            raise ConflictError(
                f"the branches cannot be merged: both come from commit '{commit.commit_id}' of "
                f"branch '{commit.branch}', whose state is no longer stored, so their changes "
                "since then are unknown — export the rows to bring over and load them with mode "
                "merge"
            ) from gone

    return read


def _properties(joined: _Joined) -> dict[str, Any]:
    """What the commit records: where it came from, and how conflicts were resolved."""
    bases = [each.commit_id for each in commits_of(joined.base)]
    noted: dict[str, Any] = {
        "merged_from": joined.source.branch,
        "merge_base": bases[-1],
        "merge_outcome": joined.outcome.value,
        **note_models(joined.models),
        **note_checks(joined.checks),
    }
    if len(bases) > 1:
        noted["merge_bases"] = bases
    return noted | note_resolved(joined.result)


def note_resolved(result: ResolvedMerge) -> dict[str, Any]:
    """How conflicts were resolved, as a commit records it."""
    if not result.resolved:
        return {}
    return {
        "resolved": [
            {
                "table_key": conflict.table_key,
                "row_id": conflict.row_id,
                "kind": conflict.kind,
                "take": _note_choice(choice),
            }
            for conflict, choice in result.resolved
        ]
    }


def _note_choice(choice: Choice) -> Any:
    """A choice without the values that were given: those are in the rows, where a purge looks."""
    if isinstance(choice, str):
        return choice
    return {name: each if isinstance(each, str) else VALUE for name, each in choice.items()}
