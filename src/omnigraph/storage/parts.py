"""Parts: a change of a large table whose files are written by tasks.

A task writes rows to files of the table, or marks rows deleted, and returns what names the files.
The process that commits makes one staged transaction of all parts, as if it had written them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.dataclass import dataclass
from omnigraph.storage.blobs import to_keyed_schema
from omnigraph.storage.checksums import Checksums, checksum_files
from omnigraph.storage.counters import record
from omnigraph.storage.handles import StagedTransaction, StageKind, TableHandle
from omnigraph.storage.operation_files import existing_files
from omnigraph.storage.row_addresses import to_addresses
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.staging import conform_stream
from omnigraph.storage.table_tasks import TableTasks
from omnigraph.storage.transactions import Stager
from omnigraph.storage.unattached import MarkedRows, mark_deleted
from omnigraph.storage.work_progress import REMOVING
from omnigraph.storage.write_files import Written, write_files

if TYPE_CHECKING:
    from omnigraph.storage.tables import TableStorage


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """Files of a table that no version names yet: its fragments, as JSON of Lance.

    `checksums` are by path from the table; in an object store they are taken after the commit.
    """

    fragments: tuple[str, ...]
    rows: int
    checksums: Checksums = field(default_factory=dict)


def count_rows(part: WrittenPart) -> int:
    return part.rows


def write_part(handle: TableHandle, batches: Iterable[pa.RecordBatch]) -> WrittenPart:
    """Write rows to be added to a table."""
    operation, rows = write_files(handle, conform_stream(batches, handle.schema), mode="append")
    return _describe(handle, operation, rows)


def rewrite_part(
    handle: TableHandle, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> WrittenPart:
    """Write rows, in another schema, that are to take the place of all there are."""
    stored = to_keyed_schema(schema)
    operation, rows = write_files(handle, iter(batches), mode="overwrite", stored=stored)
    return _describe(handle, operation, rows)


def _describe(handle: TableHandle, operation: Written, rows: int) -> WrittenPart:
    fragments = tuple(json.dumps(each.to_json()) for each in operation.fragments if rows)
    # Checksums are taken where files were written, so that tasks do it side by side.
    top = handle.location.physical_uri
    files = existing_files(operation, top) if handle.location.is_local and rows else []
    return WrittenPart(fragments, rows, checksum_files(files, top))


def mark_by_tasks(tasks: TableTasks, handle: TableHandle, row_ids: RowIds) -> list[MarkedRows]:
    """Mark rows deleted, each fragment's by one task."""
    addresses = np.sort(to_addresses(handle, row_ids))
    starts = np.flatnonzero(np.diff(addresses >> np.uint64(32))) + 1
    return list(tasks.run(handle, _mark, np.split(addresses, starts), REMOVING))


def _mark(_: TableStorage, handle: TableHandle, addresses: np.ndarray) -> MarkedRows:
    return mark_deleted(handle, addresses)


@dataclass(frozen=True, slots=True)
class PartStaging:
    """Stages what tasks have written."""

    stager: Stager

    def stage_append(self, handle: TableHandle, parts: Sequence[WrittenPart]) -> StagedTransaction:
        """Stage the parts as new rows."""
        operation = LanceOperation.Append(_read_fragments(parts))
        staged = self._stage(handle, StageKind.APPEND, operation, parts)
        record(stage_append_calls=1, stage_append_rows=staged.rows)
        return staged

    def stage_rewrite(
        self, handle: TableHandle, schema: pa.Schema, parts: Sequence[WrittenPart]
    ) -> StagedTransaction:
        """Stage the parts, which are in the new `schema`, as all rows and columns there are."""
        # Lance numbers the columns of a schema in order, here as where the parts were written.
        operation = LanceOperation.Overwrite(to_keyed_schema(schema), _read_fragments(parts))
        return self._stage(handle, StageKind.OVERWRITE, operation, parts)

    def stage_replace(
        self, handle: TableHandle, parts: Sequence[WrittenPart], marked: Sequence[MarkedRows]
    ) -> StagedTransaction:
        """Stage the parts as new rows, and the removal of the rows that are marked."""
        operation = LanceOperation.Update(
            removed_fragment_ids=[number for each in marked for number in each.removed],
            updated_fragments=_read_marked(marked),
            new_fragments=_read_fragments(parts),
        )
        staged = self._stage(handle, StageKind.UPDATE, operation, parts)
        record(stage_update_rows=staged.rows)
        return staged

    def stage_delete(
        self, handle: TableHandle, marked: Sequence[MarkedRows], rows: int
    ) -> StagedTransaction:
        """Stage the removal of the rows that are marked."""
        removed = [number for each in marked for number in each.removed]
        operation = LanceOperation.Delete(_read_marked(marked), removed, "staged delete")
        return self.stager.stage(handle, StageKind.DELETE, operation, rows=rows)

    def _stage(
        self,
        handle: TableHandle,
        kind: StageKind,
        operation: LanceOperation.BaseOperation,
        parts: Sequence[WrittenPart],
    ) -> StagedTransaction:
        rows = sum(each.rows for each in parts)
        checksums = {path: found for each in parts for path, found in each.checksums.items()}
        return self.stager.stage(handle, kind, operation, rows=rows, checksums=checksums)


def _read_fragments(parts: Sequence[WrittenPart]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_json(text) for each in parts for text in each.fragments]


def _read_marked(marked: Sequence[MarkedRows]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_json(text) for each in marked for text in each.updated]
