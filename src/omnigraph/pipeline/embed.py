"""Embed: fill the vectors of `@embed` properties while loading.

A row brings its vector, or the text to make it from, or neither. Only the second kind needs a
provider, and a load without such rows never asks for one. The driver looks once at what the
target records and holds (`LoadVectors`); the tasks fill; the driver then notes what was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import pyarrow as pa

from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.embed import (
    EmbedColumn,
    EmbedSource,
    FillCount,
    Filled,
    describe_default,
    explain_missing,
    fill_vectors,
)
from omnigraph.embed.config import PROVIDER
from omnigraph.embed.fill import find_missing
from omnigraph.manifest import Snapshot
from omnigraph.storage.tables import TableStorage
from omnigraph.write.embedding import (
    embed_columns,
    find_changed_models,
    look_at_vectors,
    refuse_foreign,
)

FillCounts: TypeAlias = Mapping[tuple[str, str], FillCount]
"""Table key and property → what became of its vectors."""


@dataclass(frozen=True, slots=True)
class EmbedPlan:
    """How the tasks of a load fill vectors. `columns` are by table key."""

    columns: Mapping[str, tuple[EmbedColumn, ...]]
    source: EmbedSource
    is_wanted: bool = True

    def fill(self, table_key: str, rows: pa.Table) -> Filled:
        """Embed the source text of every row whose vector is missing."""
        columns = self.columns[table_key]
        if self.is_wanted:
            return fill_vectors(rows, columns, self.source.find_for_documents)
        left = {each.name: FillCount(left_null=len(find_missing(rows, each))) for each in columns}
        return Filled(rows, left)


def has_vectors(catalog: Catalog) -> bool:
    """Whether a type has vectors that are made from text."""
    return any(embed_columns(node) for node in catalog.nodes.values())


def add_counts(parts: Iterable[FillCounts]) -> FillCounts:
    """The counts of several parts of a load, together."""
    total: dict[tuple[str, str], FillCount] = {}
    for part in parts:
        for key, count in part.items():
            total[key] = total.get(key, FillCount()) + count
    return total


@dataclass(slots=True)
class LoadVectors:
    """The vectors of one load, as the driver sees them.

    `seen` is where the load starts from; with `replaces` nothing that is there stays. `given` says
    which models made the vectors that come with the rows, by `Type.property`.
    """

    tables: TableStorage
    catalog: Catalog
    source: EmbedSource
    is_wanted: bool
    replaces: bool
    seen: Snapshot | None
    given: Mapping[str, str] = field(default_factory=dict)

    def plan(self) -> EmbedPlan:
        """Look at what the target records and holds."""
        columns = {}
        for node in self.catalog.nodes.values():
            if self.seen is None or self.replaces or not self.is_wanted:
                found = embed_columns(node)
            else:
                found = look_at_vectors(self.tables, self.seen, node, self.source)
            if found:
                columns[node.table_key] = tuple(map(self._with_given, found))
        return EmbedPlan(columns, self.source, self.is_wanted)

    def _with_given(self, column: EmbedColumn) -> EmbedColumn:
        """What is made beside vectors of a known model has to be of that model."""
        return replace(column, model=column.model or self.given.get(column.label))

    def find_mixed(self, plan: EmbedPlan, counts: FillCounts) -> EmbedPlan | None:
        """The plan that leaves vectors empty where others came with the rows; None if it is this.

        Only a provider that was chosen says that both are of one model.
        """
        mixed = {key for key, count in counts.items() if count.embedded and count.foreign}
        if self.source.is_chosen or not mixed:
            return None
        columns = {
            table_key: tuple(
                replace(each, is_foreign=True) if (table_key, each.name) in mixed else each
                for each in found
            )
            for table_key, found in plan.columns.items()
        }
        return replace(plan, columns=columns)

    def find_changed_models(self, counts: FillCounts, snapshot: Snapshot) -> dict[int, str | None]:
        """What the load notes on its commit.

        Raises:
            EmbeddingModelMismatch: A property would hold vectors of two models.
            ConflictError: Vectors of an unknown model were written meanwhile.
        """
        changed: dict[int, str | None] = {}
        for table_key in {key for key, _ in counts}:
            entity = self.catalog.entity(table_key)
            own = {name: count for (key, name), count in counts.items() if key == table_key}
            made = {
                name: count.model
                for name, count in own.items()
                if count.model is not None and (count.embedded or not count.foreign)
            }
            for name, count in own.items():
                model = self.given.get(f"{entity.name}.{name}")
                if model is not None and count.foreign:
                    made.setdefault(name, model)
            replaced = [each.name for each in embed_columns(entity)] if self.replaces else []
            changed |= find_changed_models(entity, made, snapshot, replaced=replaced)
            if self.seen is not None and not self.replaces:
                refuse_foreign(self.tables, entity, made, self.source, self.seen, snapshot)
        return changed

    def list_notes(self, plan: EmbedPlan, counts: FillCounts) -> tuple[str, ...]:
        """What to tell about vectors that were made by default, or not at all."""
        columns = {(key, each.name): each for key, found in plan.columns.items() for each in found}
        return tuple(
            note for key in sorted(counts) for note in self._notes_of(columns[key], counts[key])
        )

    def _notes_of(self, column: EmbedColumn, count: FillCount) -> Sequence[str]:
        notes = []
        if count.embedded and not self.source.is_chosen:
            notes.append(describe_default(column))
        if count.left_null:
            why = f"{explain_missing(column)} — choose a provider with {PROVIDER} and"
            notes.append(
                f"{column.label}: {count.left_null} rows have no vector, so `nearest` does not "
                f"find them: {why if self.is_wanted else 'embedding was turned off —'} run "
                "`omnigraph embed`"
            )
        return notes
