"""Plan: what a merge would do to each table of the target, before anything is written.

For every table the pins of base, source and target are compared:

    source == target, or source == base   nothing to do
    target == base                        adopt: take over what the source did
    otherwise                             rewrite: what both did, row by row

Adopting copies no data where the target shows the table through another branch's lineage anyway:
it is pointed at the source's version on main, or forked from the source's version. A table the
target has written itself is always changed on its own lineage, so that its history stays
readable and the merge does not depend on the source branch's files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.compare import candidates, candidates_of_ids, differences, drop_equal_rows
from omnigraph.branch.conflicts import Contest, contest, contest_virtual
from omnigraph.branch.descent import Descent, open_entry
from omnigraph.branch.differences import NO_DIFFERENCES, Differences
from omnigraph.branch.merge_base import Base, VirtualBase
from omnigraph.branch.virtual_base import BaseTable, entry_of, is_same_entry
from omnigraph.catalog import Catalog, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError
from omnigraph.manifest import MAIN, GraphCommit, Snapshot, TableEntry
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage


class How(StrEnum):
    """How a table of the target comes to show the merged rows."""

    APPLY = "apply"
    SWITCH = "switch"
    FORK = "fork"


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The change of one table. `delta` leads from the target's rows to the merged ones.

    In `delta`, `before` is the row in the target and `after` the row in the source. A source of
    another schema may hold what the present one does not allow.
    """

    entity: EntityType
    source_entry: TableEntry
    target_entry: TableEntry
    source: TableHandle
    target: TableHandle
    delta: Differences
    how: How
    is_rewrite: bool = False
    is_of_other_schema: bool = False

    @property
    def table_key(self) -> str:
        return self.target_entry.table_key


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The states of a merge. The base may be several, each read when a table asks for it."""

    base: Base
    source: Snapshot
    target: Snapshot
    snapshot_of: Callable[[GraphCommit], Snapshot]


@dataclass(frozen=True, slots=True)
class Plan:
    """Every table the source changed, and what both sides changed differently."""

    tables: Mapping[str, TablePlan]
    contests: tuple[Contest, ...]


def plan_merge(
    tables: TableStorage, catalog: Catalog, three: Snapshots, ids: pa.Array | None = None
) -> Plan:
    """Compare the three states. Reads only; costs what has changed, not what there is.

    With a few `ids` only these need to be in the plans, where base and target are one.
    """
    descent = Descent(tables)
    plans: dict[str, TablePlan] = {}
    contests: list[Contest] = []
    for key in sorted({*three.source.entries, *three.target.entries}):
        source, target = three.source.entries.get(key), three.target.entries.get(key)
        if is_same_entry(source, target):
            continue
        base = entry_of(three.base, key, three.snapshot_of)
        if is_same_entry(base, source):
            continue
        entity = catalog.by_table_key(key)
        if base is None or source is None or target is None or entity is None:
            raise ConflictError(
                f"'{key}' is not a table of both branches: the schema changed between them — "
                "create the branch again from the present state"
            )
        if isinstance(base, VirtualBase):
            base_table = BaseTable(tables, key, three.snapshot_of)
            planned, found = _plan_virtual(descent, entity, base, base_table, source, target)
        else:
            planned, found = _plan_table(descent, entity, base, source, target, ids)
        plans[key] = planned
        contests += found
    return Plan(plans, tuple(contests))


def _plan_table(
    descent: Descent,
    entity: EntityType,
    base_entry: TableEntry,
    source_entry: TableEntry,
    target_entry: TableEntry,
    ids: pa.Array | None,
) -> tuple[TablePlan, list[Contest]]:
    tables = descent.tables
    plan = _start_plan(tables, entity, source_entry, target_entry)
    base = open_entry(tables, base_entry)
    is_same = base_entry.shows_same_rows(target_entry)
    if ids is not None and is_same:
        asked = candidates_of_ids(tables, base, plan.source, ids)
        return replace(plan, delta=drop_equal_rows(tables, base, plan.source, asked)), []
    theirs = differences(descent, base, plan.source)
    if is_same:
        return replace(plan, delta=theirs, is_rewrite=False), []
    ours = candidates(descent, base, plan.target)
    # Of all that the target did, only what it did to these rows is looked at.
    shared = Differences(ours.rows.filter(pc.is_in(ours.rows["id"], value_set=theirs.ids)))
    changed = drop_equal_rows(tables, base, plan.target, shared)
    delta, found = contest(tables, entity, base, plan.source, plan.target, theirs, ours, changed)
    return replace(plan, delta=delta), found


def _plan_virtual(
    descent: Descent,
    entity: EntityType,
    base: VirtualBase,
    base_table: BaseTable,
    source_entry: TableEntry,
    target_entry: TableEntry,
) -> tuple[TablePlan, list[Contest]]:
    """Both bases changed the table: only rows in which the sides differ are looked up there."""
    plan = _start_plan(descent.tables, entity, source_entry, target_entry)
    differing = differences(descent, plan.target, plan.source)
    delta, found = contest_virtual(entity, base, base_table, plan.source, plan.target, differing)
    return replace(plan, delta=delta), found


def plan_unchanged(
    tables: TableStorage, catalog: Catalog, source: Snapshot, target: Snapshot, table_key: str
) -> TablePlan:
    """The plan of a table that the source did not change, for a resolution to change it."""
    entity = catalog.entity(table_key)
    return _start_plan(tables, entity, source.entries[table_key], target.entries[table_key])


def _start_plan(
    tables: TableStorage, entity: EntityType, source_entry: TableEntry, target_entry: TableEntry
) -> TablePlan:
    """A plan that leaves the target's rows as they are."""
    return TablePlan(
        entity=entity,
        source_entry=source_entry,
        target_entry=target_entry,
        source=open_entry(tables, source_entry),
        target=open_entry(tables, target_entry),
        delta=NO_DIFFERENCES,
        how=How.APPLY,
        is_rewrite=True,
    )


def choose_how(plan: TablePlan, target_branch: str) -> How:
    """How the target takes over a table; the delta is final, resolutions included."""
    source, target = plan.source_entry, plan.target_entry
    # Shown in another schema, or of another table: no version that the target could show.
    is_other = source.shown is not None or source.image is not None
    if is_other or source.table_path != target.table_path:
        return How.APPLY
    is_own = owns_lineage(target_branch, plan.target_entry.table_branch)
    # A branch shows the greatest version it was given, so a lower number would not be seen.
    is_later = plan.source_entry.version > plan.target_entry.version
    if plan.is_rewrite or is_own or target_branch == MAIN or not is_later:
        return How.APPLY
    return How.SWITCH if plan.source_entry.table_branch is None else How.FORK
