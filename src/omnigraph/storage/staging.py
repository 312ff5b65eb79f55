"""Staging: write the files of a change and build its transaction. HEAD never moves here.

Rows arrive in the logical schema of the table. A nullable column may be left out and is null; a
row is always written whole, so an upsert never keeps half of the old row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ConstraintError, InvariantViolated
from omnigraph.storage.blobs import is_blob, to_keyed_schema, to_stored
from omnigraph.storage.counters import record
from omnigraph.storage.datasets import DATA_STORAGE_VERSION, session
from omnigraph.storage.fragments import list_field_ids, with_row_ids
from omnigraph.storage.handles import StagedTransaction, StageKind, TableHandle
from omnigraph.storage.known_keys import KeyedRows, KnownKeys, Places
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.operation_files import new_fragments
from omnigraph.storage.predicates import Predicate
from omnigraph.storage.reads import Reads
from omnigraph.storage.row_addresses import to_addresses
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.transactions import Stager
from omnigraph.storage.write_files import Written, write_files

MERGE_WITH_INDEX_BYTES_MAX = 32 * 1024 * 1024
LOCATED_ROWS_MAX = 1_024
"""Of more rows than this, the merge itself finds out which are there."""


@dataclass(frozen=True, slots=True)
class RowStaging:
    """Stages changes of rows."""

    stager: Stager
    reads: Reads
    keys: KnownKeys

    def stage_append(self, handle: TableHandle, rows: pa.Table) -> StagedTransaction:
        """Stage new rows. The caller knows that they are new."""
        if rows.num_rows == 0:
            raise BadRequestError("there are no rows to append")
        conformed = conform(rows, handle.schema)
        return self._stage_append(handle, iter(conformed.to_batches()), known=conformed)

    def stage_append_stream(
        self, handle: TableHandle, batches: Iterable[pa.RecordBatch]
    ) -> StagedTransaction:
        """Stage new rows from a stream, in bounded memory."""
        return self._stage_append(handle, conform_stream(batches, handle.schema))

    def stage_merge_insert(
        self, handle: TableHandle, rows: pa.Table, key: str = "id"
    ) -> StagedTransaction:
        """Stage an upsert: a row with a known key is replaced whole, the others are inserted.

        A few rows are looked up by their keys and written without a join: new ones are appended,
        the others also take the places and the row ids of the rows that are there.
        """
        if rows.num_rows == 0:
            raise BadRequestError("there are no rows to merge")
        conformed = conform(rows, handle.schema)
        _refuse_duplicate_keys(conformed, key)
        found = None
        if rows.num_rows <= LOCATED_ROWS_MAX:
            found = self.keys.locate(handle, key, conformed[key].combine_chunks())
        if found is None:
            operation = _merge(handle, conformed, key)
        else:
            conformed = _put_first(conformed, found.which)
            operation = self._write_over(handle, conformed, found)
        staged = self.stager.stage(
            handle, StageKind.MERGE_INSERT, operation, rows=conformed.num_rows
        )
        if found is not None:
            self.keys.remember(new_fragments(operation), conformed[key])
        record(stage_merge_insert_calls=1, stage_merge_insert_rows=rows.num_rows)
        return staged

    def stage_appends(
        self, handle: TableHandle, parts: Sequence[pa.Table], key: str = "id"
    ) -> list[StagedTransaction]:
        """Stage several appends of new rows, to be committed one after the other."""
        conformed = [conform(each, handle.schema) for each in parts]
        operations = self._append_each(handle, conformed)
        staged = self.stager.stage_many(
            handle, StageKind.APPEND, operations, rows=[each.num_rows for each in conformed]
        )
        for operation, rows in zip(operations, conformed, strict=True):
            self.keys.remember(new_fragments(operation), rows[key])
        record(stage_append_calls=len(parts), stage_append_rows=sum(each.rows for each in staged))
        return staged

    def _append_each(self, handle: TableHandle, parts: Sequence[pa.Table]) -> list[Written]:
        """Write each part to a file of its own: in one call where all have as many rows."""
        rows_each = parts[0].num_rows
        if len(parts) == 1 or any(each.num_rows != rows_each for each in parts):
            return [self._append(handle, each) for each in parts]
        batches = (batch for each in parts for batch in each.to_batches())
        operation, _ = write_files(handle, batches, mode="append", rows_per_file=rows_each)
        found = list(operation.fragments)
        if [each.physical_rows for each in found] != [rows_each] * len(parts):
            raise InvariantViolated(
                f"{len(parts)} parts of {rows_each} rows were written as {len(found)} files — "
                "nothing was committed"
            )
        for fragment, rows in zip(found, parts, strict=True):
            self.reads.written.remember([fragment], rows)
        return [LanceOperation.Append([each]) for each in found]

    def _append(self, handle: TableHandle, rows: pa.Table) -> Written:
        operation, _ = write_files(handle, iter(rows.to_batches()), mode="append")
        self.reads.written.remember(new_fragments(operation), rows)
        return operation

    def _write_over(
        self, handle: TableHandle, rows: pa.Table, stored: KeyedRows
    ) -> LanceOperation.BaseOperation:
        """Write rows, the first of which are other images of stored ones, in that order."""
        appended = self._append(handle, rows)
        if len(stored.which) == 0:
            return appended
        with lance_errors("staging a merge", handle.location):
            updated, removed = write_deletions(handle._dataset, stored.addresses)
        (fragment,) = appended.fragments
        return LanceOperation.Update(
            removed_fragment_ids=removed,
            updated_fragments=updated,
            new_fragments=[with_row_ids(fragment, stored.row_ids)],
            # No index of any of these columns answers for the new images.
            fields_for_preserving_frag_bitmap=list_field_ids(handle._dataset),
            update_mode="rewrite_rows",
        )

    def stage_overwrite(self, handle: TableHandle, rows: pa.Table) -> StagedTransaction:
        """Stage the replacement of all rows, also by none. Indexes go; they are derived."""
        if rows.num_rows == 0:
            operation: Written = LanceOperation.Overwrite(handle._dataset.schema, [])
        else:
            conformed = conform(rows, handle.schema)
            operation, _ = write_files(handle, iter(conformed.to_batches()), mode="overwrite")
        return self.stager.stage(handle, StageKind.OVERWRITE, operation, rows=rows.num_rows)

    def stage_rewrite(
        self, handle: TableHandle, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> StagedTransaction:
        """Stage the replacement of all rows and columns; `batches` are in the new `schema`."""
        stored = to_keyed_schema(schema)
        written, rows = write_files(handle, iter(batches), mode="overwrite", stored=stored)
        operation = written if rows else LanceOperation.Overwrite(stored, [])
        return self.stager.stage(handle, StageKind.OVERWRITE, operation, rows=rows)

    def stage_delete(self, handle: TableHandle, predicate: Predicate) -> StagedTransaction | None:
        """Stage the removal of the matching rows; None when there is none."""
        return self._delete_at(handle, self.reads.find_addresses(handle, predicate))

    def stage_delete_rows(self, handle: TableHandle, row_ids: RowIds) -> StagedTransaction | None:
        """Stage the removal of the rows with these row ids; None when there is none."""
        return self._delete_at(handle, to_addresses(handle, row_ids))

    def _delete_at(self, handle: TableHandle, addresses: np.ndarray) -> StagedTransaction | None:
        if len(addresses) == 0:
            return None
        with lance_errors("staging a delete", handle.location):
            updated, removed = write_deletions(handle._dataset, addresses)
        # To Lance the predicate is a remark; the deletion files decide what is removed.
        operation = LanceOperation.Delete(updated, removed, "staged delete")
        return self.stager.stage(handle, StageKind.DELETE, operation, rows=len(addresses))

    def stage_replace(
        self, handle: TableHandle, batches: Iterable[pa.RecordBatch], addresses: np.ndarray
    ) -> StagedTransaction:
        """Stage rows in place of those at `addresses`, holding only a few batches in memory.

        No join: the caller knows which rows go. They get new row ids.
        """
        written, rows = write_files(handle, conform_stream(batches, handle.schema), mode="append")
        with lance_errors("staging a replacement", handle.location):
            updated, removed = write_deletions(handle._dataset, addresses)
        operation = LanceOperation.Update(
            removed_fragment_ids=removed,
            updated_fragments=updated,
            new_fragments=list(written.fragments),
        )
        staged = self.stager.stage(handle, StageKind.UPDATE, operation, rows=rows)
        record(stage_update_rows=rows)
        return staged

    def stage_replace_rows(
        self, handle: TableHandle, batches: Iterable[pa.RecordBatch], row_ids: RowIds
    ) -> StagedTransaction:
        """The same, in place of the rows with these row ids."""
        return self.stage_replace(handle, batches, to_addresses(handle, row_ids))

    def _stage_append(
        self,
        handle: TableHandle,
        batches: Iterator[pa.RecordBatch],
        known: pa.Table | None = None,
    ) -> StagedTransaction:
        operation, rows = write_files(handle, batches, mode="append")
        if rows == 0:
            raise BadRequestError("there are no rows to append")
        if known is not None:
            self.reads.written.remember(new_fragments(operation), known)
        staged = self.stager.stage(handle, StageKind.APPEND, operation, rows=rows)
        record(stage_append_calls=1, stage_append_rows=rows)
        return staged


def _merge(handle: TableHandle, rows: pa.Table, key: str) -> LanceOperation.BaseOperation:
    with lance_errors("staging a merge", handle.location):
        transaction, _ = (
            handle._dataset.merge_insert(key)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            # The indexed join holds its input in a bounded pool and fails on wide rows.
            .use_index(rows.nbytes <= MERGE_WITH_INDEX_BYTES_MAX)
            .execute_uncommitted(to_stored(rows, handle._dataset.schema))
        )
    record(joins=1)
    return transaction.operation


def _put_first(rows: pa.Table, places: Places) -> pa.Table:
    """The same rows, those at these places before the others."""
    if rows.num_rows == 1 or len(places) == 0:
        return rows
    is_other = np.ones(rows.num_rows, dtype=bool)
    is_other[places] = False
    return rows.take(pa.array(np.concatenate([places, np.flatnonzero(is_other)])))


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return `rows` in the columns, order and types of the table, or say what does not fit."""
    unknown = [name for name in rows.column_names if name not in schema.names]
    if unknown:
        raise BadRequestError(f"there is no column {unknown} — the table has {schema.names}")
    columns = [_conform_column(rows, field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def conform_stream(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from conform(pa.Table.from_batches([batch]), schema).to_batches()


def _conform_column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name in rows.column_names:
        column = rows.column(field.name)
    else:
        column = pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
    if not field.nullable and column.null_count:
        raise ConstraintError(
            f"column '{field.name}' is required, but {column.null_count} rows have none"
        )
    if column.type == field.type or is_blob(field):
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise BadRequestError(f"column '{field.name}' does not fit {field.type}") from error


def _refuse_duplicate_keys(rows: pa.Table, key: str) -> None:
    keys = rows.column(key)
    if len(keys) == 1 or pc.count_distinct(keys, mode="all").as_py() == len(keys):
        return
    counts = pc.value_counts(keys.combine_chunks())
    repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    shown = ", ".join(repr(value.as_py()) for value in repeated[:3])
    # Lance would silently insert a new key once per occurrence.
    raise ConstraintError(f"{len(repeated)} keys occur more than once in one merge: {shown}")


def write_rows(dataset: LanceDataset, rows: pa.Table) -> list[FragmentMetadata]:
    """Write rows, in the schema of the dataset, to files of it that no version names yet."""
    transaction = write_fragments(
        rows,
        dataset,
        mode="append",
        return_transaction=True,
        data_storage_version=DATA_STORAGE_VERSION,
        session=session(),
    )
    assert isinstance(transaction.operation, LanceOperation.Append)
    return list(transaction.operation.fragments)


def write_deletions(
    dataset: LanceDataset, addresses: np.ndarray
) -> tuple[list[FragmentMetadata], list[int]]:
    """Write deletion files for the rows at `addresses`: changed fragments, ids of emptied ones."""
    updated: list[FragmentMetadata] = []
    removed: list[int] = []
    fragment_ids = (addresses >> np.uint64(32)).astype(np.int64)
    positions = addresses & np.uint64(0xFFFFFFFF)
    for fragment_id in sorted(set(fragment_ids.tolist())):  # `np.unique` loads `numpy.ma`
        fragment = dataset.get_fragment(fragment_id)
        assert fragment is not None
        rows = positions[fragment_ids == fragment_id].tolist()
        left = fragment.delete_rows(rows)
        before = fragment.metadata.num_rows
        if before - len(rows) != (0 if left is None else left.num_rows):
            raise InvariantViolated(
                f"rows of fragment {fragment_id} are to be removed that are not there — nothing "
                "was written; run `omnigraph verify`"
            )
        if left is None:
            removed.append(fragment_id)
        else:
            updated.append(left)
    return updated, removed
