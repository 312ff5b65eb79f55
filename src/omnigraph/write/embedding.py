"""Embedding on write: which vectors of a type a text makes, and which model makes them.

No property holds the vectors of two models: a write looks at the model that its snapshot records
and notes on its commit what it changed (`manifest/vector_models.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EntityType
from omnigraph.embed import EmbedColumn, Embedder, EmbedSource, fill_vectors
from omnigraph.embed.fill import SAMPLE_ROWS, is_made_by_local
from omnigraph.embed.remember import RememberingEmbedder
from omnigraph.errors import ConflictError, EmbeddingModelMismatch
from omnigraph.manifest import Snapshot
from omnigraph.manifest.vector_models import VectorModels
from omnigraph.storage.predicates import IsNull, Not
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin
from omnigraph.write.validate import null_violations

_NO_MODELS: VectorModels = {}


def embed_columns(entity: EntityType, models: VectorModels = _NO_MODELS) -> tuple[EmbedColumn, ...]:
    """The vector properties that may be missing from a row: they are made from a text."""
    return tuple(
        EmbedColumn(
            each.name,
            each.embed.source,
            each.type.dimension or 0,
            each.type.nullable,
            each.embed.model or models.get(each.property_id),
            type_name=entity.name,
        )
        for each in entity.properties.values()
        if each.embed is not None
    )


def look_at_vectors(
    tables: TableStorage, snapshot: Snapshot, entity: EntityType, source: EmbedSource
) -> tuple[EmbedColumn, ...]:
    """The vector properties of a type, with what is known about the vectors that are there."""
    columns = embed_columns(entity, snapshot.vector_models)
    if source.is_chosen:
        return columns
    return tuple(
        replace(each, is_foreign=_holds_foreign(tables, snapshot, entity, each))
        if each.fits_local and each.model is None
        else each
        for each in columns
    )


def _holds_foreign(
    tables: TableStorage, snapshot: Snapshot, entity: EntityType, column: EmbedColumn
) -> bool:
    entry = snapshot.entries.get(entity.table_key)
    if entry is None or entry.row_count == 0:
        return False
    rows = tables.reads.scan(
        open_pin(tables, entry),
        [column.source, column.name],
        Not(IsNull(column.name)),
        limit=SAMPLE_ROWS,
    )
    return not is_made_by_local(rows, column)


def find_changed_models(
    entity: EntityType,
    made: Mapping[str, str],
    snapshot: Snapshot,
    *,
    replaced: Collection[str] = (),
) -> dict[int, str | None]:
    """What a write notes, by property id: `made` has the models of its vectors, by property.

    Every vector of a `replaced` property is written anew.

    Raises:
        EmbeddingModelMismatch: A property would hold vectors of two models.
    """
    changed: dict[int, str | None] = {}
    for name in {*made, *replaced}:
        key = entity.properties[name].property_id
        recorded, model = snapshot.vector_models.get(key), made.get(name)
        if recorded == model:
            continue
        if recorded is not None and name not in replaced:
            assert model is not None
            label = f"{entity.name}.{name}"
            raise EmbeddingModelMismatch(label, recorded=recorded, configured=model)
        changed[key] = model
    return changed


def refuse_foreign(
    tables: TableStorage,
    entity: EntityType,
    made: Collection[str],
    source: EmbedSource,
    seen: Snapshot,
    now: Snapshot,
) -> None:
    """Refuse vectors of the default beside unknown ones that another writer has added since `seen`.

    Raises:
        ConflictError: There are some. What is made from now on takes them into account.
    """
    key = entity.table_key
    if not made or source.is_chosen or seen.version_of(key) == now.version_of(key):
        return
    for column in look_at_vectors(tables, now, entity, source):
        if column.name in made and column.is_foreign:
            raise ConflictError(
                f"vectors of '{column.label}' whose model is not recorded were written meanwhile — "
                "nothing was written; try again"
            )


class VectorFiller:
    """Fills the vectors of one mutation. A text is embedded once, however often it is prepared."""

    def __init__(
        self, find_source: Callable[[], EmbedSource], tables: TableStorage, snapshot: Snapshot
    ) -> None:
        self._find_source = find_source
        self._tables = tables
        self._snapshot = snapshot
        self._embedders: dict[str, Embedder] = {}
        self._made: dict[str, tuple[EntityType, dict[str, str]]] = {}

    @cached_property
    def _source(self) -> EmbedSource:
        return self._find_source()  # most mutations fill no vector

    def fill(
        self, entity: EntityType, rows: pa.Table, names: Collection[str] | None = None
    ) -> pa.Table:
        """Embed the source texts of the rows that lack a vector, of these properties or of all.

        Raises:
            BadRowsError: A required vector is missing, and there is no text to make it from.
        """
        columns = look_at_vectors(self._tables, self._snapshot, entity, self._source)
        wanted = [each for each in columns if names is None or each.name in names]
        filled = fill_vectors(rows, wanted, self._find_embedder)
        _, made = self._made.setdefault(entity.table_key, (entity, {}))
        for name, count in filled.counts.items():
            if count.embedded and count.model is not None:
                made[name] = count.model
        null_violations(entity, filled.rows).raise_if_any()
        return filled.rows

    def refill(
        self, entity: EntityType, before: pa.Table, rows: pa.Table, assigned: Collection[str]
    ) -> pa.Table:
        """Make the vectors anew whose text an update changed, unless it gave the vector too."""
        stale = [
            each
            for each in embed_columns(entity)
            if each.source in assigned and each.name not in assigned
        ]
        for column in stale:
            rows = _clear_stale(column, before, rows)
        return self.fill(entity, rows, [each.name for each in stale]) if stale else rows

    def find_changed_models(self, snapshot: Snapshot) -> dict[int, str | None]:
        """What the mutation notes on its commit, over the snapshot that it is prepared on."""
        changed: dict[int, str | None] = {}
        for entity, made in self._made.values():
            changed |= find_changed_models(entity, made, snapshot)
            refuse_foreign(self._tables, entity, made, self._source, self._snapshot, snapshot)
        return changed

    def _find_embedder(self, column: EmbedColumn) -> Embedder | None:
        if column.label not in self._embedders:
            found = self._source.find_for_documents(column)
            if found is None:
                return None
            self._embedders[column.label] = RememberingEmbedder(found)
        return self._embedders[column.label]


def _clear_stale(column: EmbedColumn, before: pa.Table, rows: pa.Table) -> pa.Table:
    """Drop the vectors of the rows whose text is another one than before."""
    old, new = before.column(column.source), rows.column(column.source)
    is_same = pc.fill_null(pc.equal(old, new), False)
    positions = pa.array(np.arange(rows.num_rows), mask=~is_same.to_numpy())
    place = rows.schema.get_field_index(column.name)
    kept = pa.chunked_array([rows.column(place).combine_chunks().take(positions)])
    return rows.set_column(place, rows.schema.field(place), kept)
