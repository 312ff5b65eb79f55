"""Schema plan: what a schema change would do to the data, before it is applied.

Beside the steps of a migration it says of each one whether it touches a table, how many rows, and
for a change that is refused, how many rows stand in its way, a few of them by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial

from omnigraph.catalog import (
    AddConstraint,
    AddProperty,
    AddType,
    Catalog,
    ChangeType,
    DropProperty,
    DropType,
    EntityType,
    MigrationPlan,
    MigrationStep,
    RenameProperty,
    RenameType,
    UnsupportedChange,
    build_catalog,
    plan_migration,
)
from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, show_html, show_text
from omnigraph.errors import MigrationError
from omnigraph.json_form import JsonForm
from omnigraph.manifest import Snapshot, TableEntry
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.table_tasks import cut_fragments
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.work_progress import CHECKING, one_part
from omnigraph.syntax import parse_schema
from omnigraph.upkeep.broken_rules import (
    count_broken,
    entity_of_step,
    find_broken,
    find_entity,
    is_row_by_row,
)
from omnigraph.write.fork import open_pin
from omnigraph.write.new_image import NewImage
from omnigraph.write.table_changes import column_sources, has_other_rows, makes_other_ids

SAMPLES_MAX = 3


class Effect(StrEnum):
    """What a step does to tables."""

    METADATA = "metadata only"
    CREATE = "new table"
    REWRITE = "rewrites"
    HIDE = "hides"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class StepEffect(JsonForm):
    """One step and the rows it concerns; for a refused one, the rows that stand in its way."""

    step: MigrationStep
    effect: Effect
    rows: int = 0
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaPlan(MigrationPlan):
    """A migration plan over a graph's data. Printed, it is a small table."""

    effects: tuple[StepEffect, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether every step can be applied to the rows that are there."""
        return not any(each.effect is Effect.REFUSED for each in self.effects)

    def __str__(self) -> str:
        if not self.effects:
            return "no schema changes"
        cells = [("step", "effect", "rows", "")]
        cells += [
            (str(each.step), each.effect.value, str(each.rows), _format_samples(each.samples))
            for each in self.effects
        ]
        widths = [max(len(row[column]) for row in cells) for column in range(3)]
        lines = [
            f"{step:<{widths[0]}} | {effect:<{widths[1]}} | {rows:>{widths[2]}} {samples}".rstrip()
            for step, effect, rows, samples in cells
        ]
        ruler = "-+-".join("-" * width for width in widths)
        return "\n".join([lines[0], ruler, *lines[1:]])

    def make_sheet(self) -> Sheet:
        steps = [
            (str(each.step), each.effect.value, each.rows, _format_samples(each.samples))
            for each in self.effects
        ]
        title = f"schema plan: {'supported' if self.supported else 'not supported'}"
        facts = {"note": "; ".join(self.diagnostics) or None, "steps": len(steps)}
        return Sheet(title, facts, [Grid(("step", "effect", "rows", ""), steps)])

    __repr__ = show_text
    _repr_html_ = show_html


def _format_samples(samples: tuple[str, ...]) -> str:
    return f"such as {', '.join(samples)}" if samples else ""


def plan_schema(
    tables: TableStorage,
    snapshot: Snapshot,
    accepted: Catalog,
    text: str,
    *,
    allow_data_loss: bool = False,
) -> SchemaPlan:
    """Plan the way from the accepted schema to `text`, over the rows of a snapshot.

    Raises:
        SourceError: The schema is not valid, or a rename hint cannot be followed.
    """
    tree = parse_schema(text)
    plan = plan_migration(accepted, tree, allow_data_loss=allow_data_loss)
    check = RowCheck(tables, snapshot.entries, accepted, build_catalog(tree, accepted))
    effects = tuple(check.find_effect(step) for step in plan.steps)
    return SchemaPlan(plan.steps, plan.catalog, plan.diagnostics, effects)


@dataclass(frozen=True, slots=True)
class RowCheck:
    """The rows of a graph, seen with both schemas."""

    tables: TableStorage
    entries: Mapping[str, TableEntry]
    accepted: Catalog
    desired: Catalog

    def find_effect(self, step: MigrationStep) -> StepEffect:
        """What a step does, or the rows that stand in its way."""
        rows, samples = self.count_broken(step)
        if rows or isinstance(step, UnsupportedChange):
            return StepEffect(step, Effect.REFUSED, rows, samples)
        match step:
            case AddType(kind) if kind != "interface":
                return StepEffect(step, Effect.CREATE)
            case DropType(kind, name):
                return StepEffect(step, Effect.HIDE, self._count_rows(f"{kind}:{name}"))
            case RenameType():
                return StepEffect(step, Effect.METADATA)
        old, new = self._find_types(step)
        if old is None or new is None or not self._writes_rows(step, old, new):
            return StepEffect(step, Effect.METADATA)
        return StepEffect(step, Effect.REWRITE, self._count_rows(old.table_key))

    def refuse_broken(self, steps: Iterable[MigrationStep]) -> None:
        """Check every step against the rows.

        Raises:
            MigrationError: Rows do not fit; the first step that is broken is named, with a few.
        """
        for step in steps:
            rows, samples = self.count_broken(step)
            if rows:
                raise MigrationError(
                    f"cannot {step}: {rows} row{'' if rows == 1 else 's'} of "
                    f"{entity_of_step(step)} {'does' if rows == 1 else 'do'} not fit, "
                    f"{_format_samples(samples)} — change them first; nothing was applied",
                    code=getattr(step, "code", None),
                )

    def count_broken(self, step: MigrationStep) -> tuple[int, tuple[str, ...]]:
        """How many rows do not fit the schema that a step leads to, and a few of them."""
        old, new = self._find_types(step)
        entry = None if old is None else self.entries.get(old.table_key)
        if old is None or new is None or entry is None or entry.row_count == 0:
            return 0, ()
        handle, tasks = open_pin(self.tables, entry), self.tables.tasks
        if tasks is None or not tasks.takes(handle) or not is_row_by_row(step):
            image = NewImage(self.tables, handle, old, new)
            with one_part(CHECKING, handle.row_count):
                return count_broken(find_broken(image, step), SAMPLES_MAX)
        groups = cut_fragments(self.tables.reads.fragments(handle))
        found = tasks.run(handle, partial(_count_group, old, new, step), groups, CHECKING)
        samples = tuple(each for _, some in found for each in some)
        return sum(rows for rows, _ in found), samples[:SAMPLES_MAX]

    def _find_types(self, step: MigrationStep) -> tuple[EntityType | None, EntityType | None]:
        """The type that a step is about, as it is and as it will be."""
        key = entity_of_step(step)
        if isinstance(step, UnsupportedChange):
            key = step.entity.partition(".")[0]
        new = None if key is None else self.desired.by_table_key(key)
        old = None if new is None else find_entity(self.accepted.entities(), new.type_id)
        return old, new

    def _count_rows(self, table_key: str) -> int:
        entry = self.entries.get(table_key)
        return 0 if entry is None else entry.row_count

    def _writes_rows(self, step: MigrationStep, old: EntityType, new: EntityType) -> bool:
        """Whether the table is written anew, and this step has a part in that."""
        match step:
            case AddConstraint(rule=("key", _)):
                return makes_other_ids(old, new)
            case ChangeType(property_name=name):
                source = column_sources(old, new)[name]
                assert source is not None
                is_same = (
                    old.properties[source].type.arrow_type()
                    == new.properties[name].type.arrow_type()
                )
                return has_other_rows(old, new) and not is_same
            case AddProperty() | RenameProperty() | DropProperty():
                return has_other_rows(old, new)
            case _:
                return False


def _count_group(
    old: EntityType,
    new: EntityType,
    step: MigrationStep,
    tables: TableStorage,
    handle: TableHandle,
    fragment_ids: Sequence[int],
) -> tuple[int, tuple[str, ...]]:
    """How many rows of some fragments do not fit, and a few of them, as a task."""
    image = NewImage(tables, handle, old, new, fragment_ids)
    return count_broken(find_broken(image, step), SAMPLES_MAX)
