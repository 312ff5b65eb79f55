"""Schema plan: what a schema change would do to the data, before it is applied.

Beside the steps of a migration it says of each one whether it touches a table, how many rows, and
for a change that is refused, how many rows stand in its way, a few of them by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import (
    AddProperty,
    AddType,
    Catalog,
    DropProperty,
    DropType,
    EntityType,
    MigrationPlan,
    MigrationStep,
    Property,
    RenameProperty,
    UnsupportedChange,
    build_catalog,
    plan_migration,
)
from omnigraph.dataclass import dataclass
from omnigraph.json_form import JsonForm
from omnigraph.manifest import Snapshot
from omnigraph.storage.tables import TableStorage
from omnigraph.syntax import parse_schema
from omnigraph.upkeep.broken_rules import breaking
from omnigraph.write.fork import open_pin

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
    look = _Look(tables, snapshot, accepted, build_catalog(tree, accepted))
    effects = tuple(look.effect_of(step) for step in plan.steps)
    return SchemaPlan(plan.steps, plan.catalog, plan.diagnostics, effects)


@dataclass(frozen=True, slots=True)
class _Look:
    """The rows of a graph, seen with both schemas."""

    tables: TableStorage
    snapshot: Snapshot
    accepted: Catalog
    desired: Catalog

    def effect_of(self, step: MigrationStep) -> StepEffect:
        match step:
            case AddType(kind) if kind != "interface":
                return StepEffect(step, Effect.CREATE)
            case DropType(kind, name):
                return StepEffect(step, Effect.HIDE, self._rows(f"{kind}:{name}"))
            case AddProperty(kind, name) | RenameProperty(kind, name) | DropProperty(kind, name):
                if kind == "interface":
                    return StepEffect(step, Effect.METADATA)
                return StepEffect(step, Effect.REWRITE, self._rows(self._old_key(kind, name)))
            case UnsupportedChange():
                rows, samples = self._in_the_way(step)
                return StepEffect(step, Effect.REFUSED, rows, samples)
            case _:
                return StepEffect(step, Effect.METADATA)

    def _rows(self, table_key: str) -> int:
        entry = self.snapshot.entries.get(table_key)
        return 0 if entry is None else entry.row_count

    def _old_key(self, kind: str, name: str) -> str:
        new = self.desired.by_table_key(f"{kind}:{name}")
        old = self._old_of(new) if new is not None else None
        return old.table_key if old is not None else f"{kind}:{name}"

    def _old_of(self, new: EntityType) -> EntityType | None:
        return next((e for e in self.accepted.entities() if e.type_id == new.type_id), None)

    def _in_the_way(self, change: UnsupportedChange) -> tuple[int, tuple[str, ...]]:
        """The rows that stand in the way of a refused change."""
        key, _, property_name = change.entity.partition(".")
        new = self.desired.by_table_key(key)
        old = self._old_of(new) if new is not None else None
        if new is None or old is None or old.table_key not in self.snapshot.entries:
            return 0, ()
        if change.rule is not None:
            handle = open_pin(self.tables, self.snapshot.entries[old.table_key])
            return _count(breaking(self.tables, handle, old, new, change.rule))
        wanted = new.properties.get(property_name)
        if wanted is None:
            return 0, ()
        held = next(
            (p for p in old.properties.values() if p.property_id == wanted.property_id), None
        )
        return _count(self._offending(old, held, wanted))

    def _offending(
        self, old: EntityType, held: Property | None, wanted: Property
    ) -> Iterator[pa.Array]:
        handle = open_pin(self.tables, self.snapshot.entries[old.table_key])
        if held is None or held.type.is_blob:
            yield from (b.column("id") for b in self.tables.reads.scan_stream(handle, ["id"]))
            return
        for batch in self.tables.reads.scan_stream(handle, ["id", held.name]):
            yield batch.column("id").filter(_misfits(batch.column(1), held, wanted))


def _count(found: Iterable[pa.Array]) -> tuple[int, tuple[str, ...]]:
    rows, samples = 0, list[str]()
    for ids in found:
        rows += len(ids)
        samples += ids[: SAMPLES_MAX - len(samples)].to_pylist()
    return rows, tuple(samples)


def _misfits(values: pa.Array, held: Property, wanted: Property) -> pa.Array:
    """Which values the wanted type has no room for."""
    if held.type.is_enum and wanted.type.is_enum:
        known = pa.array(wanted.type.variants or (), pa.utf8())
        outside = pc.and_(values.is_valid(), pc.invert(pc.is_in(values, known)))
    elif held.type.arrow_type() == wanted.type.arrow_type():
        outside = pa.array([False] * len(values), pa.bool_())
    else:
        outside = values.is_valid()
    if wanted.type.nullable or not held.type.nullable:
        return outside
    return pc.or_(outside, values.is_null())
