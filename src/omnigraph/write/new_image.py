"""New image: the rows of a table as another schema has them, in bounded memory.

    a property that continues   its values, in the type it has now
    a new property              what its `@backfill` makes, else its `@default`, else null
    the id of an edge           made anew where the edge gets another key

A value that is not one of the new type is null in the image and marked as unfit: such a table is
not stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Backfill, EntityType, Property, arrow_schema
from omnigraph.dataclass import dataclass
from omnigraph.storage.blobs import blob_columns
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.projection import recast
from omnigraph.storage.tables import TableStorage
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.convert import scalar_from_value
from omnigraph.write.fit import Fitted, Mask, to_mask
from omnigraph.write.keys import canonical_strings, column_type, key_ids
from omnigraph.write.table_changes import column_sources, makes_other_ids

BATCH_ROWS = 8_192
BATCH_ROWS_WITH_BLOBS = 64
"""Blobs are held as bytes while they are copied, so few of them at a time."""

_ID = "id"


@dataclass(frozen=True, slots=True)
class ImageBatch:
    """Some rows: the columns asked for, the ids they have now, and which rows do not fit."""

    rows: pa.Table
    old_ids: pa.StringArray
    unfit: Mask


@dataclass(frozen=True, slots=True)
class NewImage:
    """A table of `old`, read as one of `new`; of some fragments only if they are named."""

    tables: TableStorage
    handle: TableHandle
    old: EntityType
    new: EntityType
    fragment_ids: Sequence[int] | None = None

    def read(self, columns: Sequence[str] | None = None) -> Iterator[ImageBatch]:
        """The columns named, all of them by default, in batches of table order."""
        wanted = [*arrow_schema(self.new).names] if columns is None else list(columns)
        needed = self._find_needed(wanted)
        has_blobs = set(blob_columns(self.handle.schema)) & set(needed)
        size = BATCH_ROWS_WITH_BLOBS if has_blobs else BATCH_ROWS
        for batch in self.tables.reads.scan_stream(
            self.handle,
            needed,
            include_blobs=bool(has_blobs),
            batch_rows=size,
            fragment_ids=self.fragment_ids,
        ):
            yield self._convert(batch, wanted)

    def read_batches(self) -> Iterator[pa.RecordBatch]:
        """All columns, as they are stored; the caller knows that every row fits."""
        return (batch for each in self.read() for batch in each.rows.to_batches())

    def _find_needed(self, wanted: Sequence[str]) -> list[str]:
        """The columns of the table that an image with these columns is made of."""
        sources = column_sources(self.old, self.new)
        needed = {_ID: _ID}
        for name in wanted:
            for member in self._find_members(name):
                source = sources[member]
                if source is not None:
                    needed[source] = source
        return list(needed)

    def _find_members(self, name: str) -> Sequence[str]:
        property_ = self.new.properties.get(name)
        if property_ is not None and property_.backfill is not None:
            return [name, *property_.backfill.members]
        if name == _ID and makes_other_ids(self.old, self.new):
            return [*(self.new.key or ()), _ID]
        return [name]

    def _convert(self, batch: pa.RecordBatch, wanted: Sequence[str]) -> ImageBatch:
        unfit: Mask = np.zeros(batch.num_rows, dtype=np.bool_)
        columns: dict[str, pa.Array] = {}
        members = self.new.key or () if makes_other_ids(self.old, self.new) else ()
        asked = [*wanted, *(members if _ID in wanted else ())]
        for name in dict.fromkeys(asked):
            fitted = self._column(batch, name)
            columns[name] = fitted.values
            if fitted.unfit is not None:
                unfit |= fitted.unfit
        if members and _ID in wanted:
            columns[_ID] = key_ids(self.new, pa.table(columns))
        schema = pa.schema([arrow_schema(self.new).field(name) for name in wanted])
        arrays = [columns[name] for name in wanted]
        rows = pa.Table.from_arrays(arrays, schema=schema)
        return ImageBatch(rows, batch.column(_ID), unfit)

    def _column(self, batch: pa.RecordBatch, name: str) -> Fitted:
        source = column_sources(self.old, self.new)[name]
        if source is None:
            return self._fill(batch, self.new.properties[name])
        return convert(batch.column(source), column_type(self.new, name))

    def _fill(self, batch: pa.RecordBatch, property_: Property) -> Fitted:
        """The values of a property that the table has not."""
        made = Fitted(pa.nulls(batch.num_rows, property_.type.arrow_type()))
        if property_.backfill is not None:
            made = self._backfill(batch, property_, property_.backfill)
        if property_.default is None:
            return made
        value = scalar_from_value(property_.type, property_.default, name=property_.name)
        return Fitted(pc.if_else(made.values.is_null(), value, made.values), made.unfit)

    def _backfill(self, batch: pa.RecordBatch, property_: Property, backfill: Backfill) -> Fitted:
        sources = column_sources(self.old, self.new)
        named = {
            member: (batch.column(sources[member]), self._type_of(sources[member]))
            for member in backfill.members
        }
        if not backfill.is_text and not property_.type.is_text:
            (column, _) = named[backfill.members[0]]
            return convert(column, property_.type)
        parts = [
            part
            for text, member in backfill.parts
            for part in (text, *([] if member is None else [to_texts(*named[member])]))
        ]
        if not named:
            return Fitted(pa.repeat("".join(map(str, parts)), batch.num_rows))
        return Fitted(pc.binary_join_element_wise(*parts, ""))

    def _type_of(self, column: str | None) -> PropertyType:
        assert column is not None
        return column_type(self.old, column)


def convert(column: pa.Array, type_: PropertyType) -> Fitted:
    """The values in another type, each the same value or unfit. Nothing is rounded or wrapped."""
    wanted = type_.arrow_type()
    if column.type == wanted:
        return Fitted(column)
    values, unfit = recast(column, wanted)
    mask = to_mask(unfit)
    return Fitted(values, mask if mask.any() else None)


def to_texts(column: pa.Array, type_: PropertyType) -> pa.StringArray:
    """Values as people write them: dates by their calendar, everything else as in an id."""
    match type_.scalar:
        case Scalar.DATE:
            return column.cast(pa.utf8())
        case Scalar.DATETIME:
            return pc.strftime(column.cast(pa.timestamp("ms")), format="%Y-%m-%dT%H:%M:%SZ")
        case _:
            return canonical_strings(column, type_)
