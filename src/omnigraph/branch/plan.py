"""Plan: what a merge would do to each table of the target, before anything is written.

For every table the pins of base, source and target are compared:

    source == target, or source == base   nothing to do
    target == base                        adopt: take over what the source did
    otherwise                             rewrite: what both did, row by row

Adopting costs no data where the target shows the table through somebody else's lineage anyway:
it is pointed at the source's version on main, or forked from the source's version. A table the
target has written itself is always changed on its own lineage, so that its history stays
readable and the merge does not depend on the source branch's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.branch.compare import (
    NO_DIFFERENCES,
    Differences,
    candidates,
    differences,
    settled,
)
from omnigraph.branch.conflicts import Contest, contest
from omnigraph.branch.descent import Descent, open_entry
from omnigraph.catalog import Catalog, EntityType
from omnigraph.errors import ConflictError
from omnigraph.manifest import MAIN, Snapshot, TableEntry
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.write.environment import lane_of


class How(StrEnum):
    """How a table of the target comes to show the merged rows."""

    APPLY = "apply"
    SWITCH = "switch"
    FORK = "fork"


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The change of one table. `delta` leads from the target's rows to the merged ones.

    In `delta`, `before` is the row in the target and `after` the row in the source.
    """

    entity: EntityType
    source_entry: TableEntry
    target_entry: TableEntry
    source: TableHandle
    target: TableHandle
    delta: Differences
    how: How
    is_rewrite: bool = False

    @property
    def table_key(self) -> str:
        return self.target_entry.table_key


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The three states of a merge."""

    base: Snapshot
    source: Snapshot
    target: Snapshot


@dataclass(frozen=True, slots=True)
class Plan:
    """Every table the source changed, and what both sides changed differently."""

    tables: Mapping[str, TablePlan]
    contests: tuple[Contest, ...] = ()
    read_versions: dict[str, int] = field(default_factory=dict)


def plan_merge(tables: TableStorage, catalog: Catalog, three: Snapshots) -> Plan:
    """Compare the three states. Reads only; costs what has changed, not what there is."""
    descent = Descent(tables)
    plans: dict[str, TablePlan] = {}
    contests: list[Contest] = []
    keys = {*three.base.entries, *three.source.entries, *three.target.entries}
    for key in sorted(keys):
        base, source, target = (
            snapshot.entries.get(key) for snapshot in (three.base, three.source, three.target)
        )
        if _same(source, target) or _same(base, source):
            continue
        entity = catalog.by_table_key(key)
        if base is None or source is None or target is None or entity is None:
            raise ConflictError(
                f"'{key}' is not a table of both branches: the schema changed between them — "
                "create the branch again from the present state"
            )
        planned, found = _plan_table(descent, entity, base, source, target)
        plans[key] = planned
        contests += found
    read = {key: plan.target_entry.version for key, plan in plans.items()}
    return Plan(plans, tuple(contests), read)


def _same(first: TableEntry | None, second: TableEntry | None) -> bool:
    if first is None or second is None:
        return first is second
    return (first.version, first.table_branch) == (second.version, second.table_branch)


def _plan_table(
    descent: Descent,
    entity: EntityType,
    base_entry: TableEntry,
    source_entry: TableEntry,
    target_entry: TableEntry,
) -> tuple[TablePlan, list[Contest]]:
    tables = descent.tables
    base, source, target = (
        open_entry(tables, entry) for entry in (base_entry, source_entry, target_entry)
    )
    theirs = differences(descent, base, source)
    found: list[Contest] = []
    is_rewrite = not _same(base_entry, target_entry)
    if is_rewrite:
        ours = candidates(descent, base, target)
        theirs, found = contest(
            tables, entity, base, source, target, theirs, ours, settled(tables, base, target, ours)
        )
    return (
        TablePlan(
            entity=entity,
            source_entry=source_entry,
            target_entry=target_entry,
            source=source,
            target=target,
            delta=theirs,
            how=How.APPLY,
            is_rewrite=is_rewrite,
        ),
        found,
    )


def unchanged_table(
    tables: TableStorage, catalog: Catalog, source: Snapshot, target: Snapshot, table_key: str
) -> TablePlan:
    """The plan of a table that the source did not change, for a resolution to change it."""
    entity = catalog.by_table_key(table_key)
    assert entity is not None, table_key
    source_entry, target_entry = source.entries[table_key], target.entries[table_key]
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
    is_own = plan.target_entry.table_branch == lane_of(target_branch)
    # A branch shows the greatest version it was given, so a lower number would not be seen.
    is_later = plan.source_entry.version > plan.target_entry.version
    if plan.is_rewrite or is_own or target_branch == MAIN or not is_later:
        return How.APPLY
    return How.SWITCH if plan.source_entry.table_branch is None else How.FORK
