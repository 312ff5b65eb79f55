"""Embed part: rows of one table, written again with their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa

from omnigraph.catalog import NodeType
from omnigraph.dataclass import dataclass
from omnigraph.embed import EmbedColumn, Embedder, fill_vectors
from omnigraph.embed.fill import find_missing
from omnigraph.manifest import TableEntry
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.predicates import And, IsNull, Not, Or, Predicate
from omnigraph.storage.projection import ROW_ADDRESS
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin
from omnigraph.write.validate import null_violations

PART_ROWS = 50_000


@dataclass(slots=True)
class EmbedPart:
    """Some rows of a table, or all, to be written again with their vectors."""

    tables: TableStorage
    node: NodeType
    entry: TableEntry
    columns: Sequence[EmbedColumn]
    embedders: Mapping[str, Embedder]
    remakes: bool
    changed_models: Mapping[int, str | None]
    embedded: int = 0
    is_strict: bool = True
    _addresses: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        found = [batch.column(ROW_ADDRESS).to_numpy() for batch in self._find_rows([])]
        self._addresses = np.concatenate([np.empty(0, np.uint64), *found])

    @property
    def read_versions(self) -> dict[str, int]:
        return {self.node.table_key: self.entry.version}

    def list_pins(self) -> dict[str, TableEntry]:
        return {self.node.table_key: self.entry} if len(self._addresses) else {}

    def stage(self, handles: Mapping[str, TableHandle]) -> dict[str, StagedTransaction]:
        """Write the rows with their vectors, a batch at a time, in place of what they were."""
        self.embedded = 0
        return {
            key: self.tables.rows.stage_replace(handle, self._fill(), self._addresses)
            for key, handle in handles.items()
        }

    def _fill(self) -> Iterator[pa.RecordBatch]:
        names = [*self.node.structural_columns, *self.node.properties]
        for rows in _group(self._find_rows(names)):
            if self.remakes:
                rows = _clear(rows, [each.name for each in self.columns])
            filled = fill_vectors(rows, self.columns, lambda each: self.embedders[each.name])
            self.embedded += filled.embedded
            null_violations(self.node, filled.rows).raise_if_any()
            yield from filled.rows.to_batches()

    def _find_rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows to write again, with addresses: a part of those that lack a vector, or all."""
        handle = open_pin(self.tables, self.entry)
        sources = [name for each in self.columns for name in (each.source, each.name)]
        read = list(dict.fromkeys([*names, *sources]))
        if self.remakes:
            found = Or(tuple(_has_either(each) for each in self.columns))
            yield from self.tables.reads.scan_addresses(handle, read, found)
            return
        missing = Or(tuple(is_missing(each) for each in self.columns))
        count = 0
        for batch in self.tables.reads.scan_addresses(handle, read, missing):
            rows = pa.Table.from_batches([batch])
            lacking = [find_missing(rows, each) for each in self.columns]
            chosen = np.unique(np.concatenate(lacking))[: PART_ROWS - count]
            count += len(chosen)
            yield batch.take(pa.array(chosen))
            if count == PART_ROWS:
                return


def _group(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined to a part each: an engine that is asked often has little to spread."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= PART_ROWS:
            yield pa.Table.from_batches(held).drop_columns([ROW_ADDRESS])
            held = []
    if held:
        yield pa.Table.from_batches(held).drop_columns([ROW_ADDRESS])


def is_missing(column: EmbedColumn) -> Predicate:
    """The vector is null and the text is not; a text without words is told apart later."""
    return And((IsNull(column.name), Not(IsNull(column.source))))


def _has_either(column: EmbedColumn) -> Predicate:
    return Or((Not(IsNull(column.name)), Not(IsNull(column.source))))


def _clear(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    for name in names:
        place = rows.schema.get_field_index(name)
        kept = rows.schema.field(place)
        rows = rows.set_column(place, kept.with_nullable(True), pa.nulls(rows.num_rows, kept.type))
    return rows
