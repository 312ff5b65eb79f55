"""Reads: rows of one open version, filtered by a typed predicate.

A predicate goes down to Lance when it can be spelled safely, and is evaluated in memory when it
cannot; either way the same rows come back. Blob columns are left out unless asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequestError, NotFoundError
from omnigraph.lru import Lru
from omnigraph.storage.blobs import StoredBlob, blob_columns, open_blob, read_blobs
from omnigraph.storage.counters import record
from omnigraph.storage.filters import is_pushable, to_lance
from omnigraph.storage.fragments import FragmentFacts, read_deletion_file
from omnigraph.storage.handles import BESIDE, BY_PLACE, Fragment, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.masks import PreparedMask, keep
from omnigraph.storage.pending import Pending, hide_pending, to_pending_table
from omnigraph.storage.predicates import Compare, CompareOp, Predicate, columns_of
from omnigraph.storage.projection import (
    IN_TURN,
    ROW_ADDRESS,
    ROW_ID,
    projection,
    recast,
    result_schema,
    to_schema,
)
from omnigraph.storage.row_addresses import (
    LOOKUP_ROWS_MAX,
    LOOKUP_TABLE_ROWS_MIN,
    AddressCache,
    look_up,
    scan_for,
    take_at,
    take_by_id,
    take_in_fragments,
)
from omnigraph.storage.row_ids import RowIds, UnknownSequence, physical_row_ids
from omnigraph.storage.taken_rows import find_taken, keep_taken
from omnigraph.storage.written_rows import WrittenRows

BATCH_ROWS = 8_192
ADDRESS_BATCH_ROWS = 1 << 16
MASK_BATCH_ROWS = 1 << 18
CREATED = "_row_created_at_version"
DELETION_FILES_MAX = 64
UPDATED = "_row_last_updated_at_version"


class Reads:
    """Reads tables through their handles. Thread-safe."""

    def __init__(self) -> None:
        self.addresses = AddressCache()
        self.written = WrittenRows()
        self._facts = FragmentFacts()
        self._deleted: Lru[tuple[str, str], np.ndarray] = Lru(DELETION_FILES_MAX)

    def scan(
        self,
        handle: TableHandle,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        *,
        with_row_id: bool = False,
        limit: int | None = None,
        include_blobs: bool = False,
        fragment_ids: Sequence[int] | None = None,
    ) -> pa.Table:
        """Return the matching rows in table order. `_rowid` comes last when asked for."""
        batches = self.scan_stream(
            handle,
            columns,
            predicate,
            with_row_id=with_row_id,
            limit=limit,
            include_blobs=include_blobs,
            fragment_ids=fragment_ids,
        )
        wanted = projection(handle.schema, columns, include_blobs=include_blobs)
        schema = result_schema(handle.schema, wanted, with_row_id=with_row_id)
        return pa.Table.from_batches(batches, schema)

    def scan_stream(
        self,
        handle: TableHandle,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        limit: int | None = None,
        include_blobs: bool = False,
        batch_rows: int = BATCH_ROWS,
        fragment_ids: Sequence[int] | None = None,
        include_deleted: bool = False,
        places: range | None = None,
        in_turn: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows, of some fragments only if they are named, in bounded memory.

        Rows that are deleted, but still in their data file, are given only if they are asked for.
        `places` names the rows to look at, by their place among the rows of these fragments. With
        `in_turn` no batch is decoded before it is asked for.
        """
        if fragment_ids is not None and len(fragment_ids) == 0:
            return  # to Lance, no fragments are all of them
        wanted = projection(handle.schema, columns, include_blobs=include_blobs)
        # Lance would count places after its filter.
        can_push = predicate is None or (places is None and _is_pushable(predicate, handle))
        mask = None if can_push else predicate
        if mask is not None and not wanted:
            # What is compared is dropped again, so larger batches are not held.
            batch_rows = max(batch_rows, MASK_BATCH_ROWS)
        read = list(dict.fromkeys([*wanted, *([] if mask is None else columns_of(mask))]))
        options: dict[str, Any] = {
            "columns": [name for name in read if name not in handle.absent],
            "with_row_id": with_row_id,
            "with_row_address": with_row_address,
            "batch_size": batch_rows,
            "scan_in_order": True,
            # Blobs arrive as bytes when they are asked for; as descriptors they are of no use.
            "blob_handling": "all_binary",
        }
        if in_turn:
            options |= IN_TURN
        if include_deleted:
            options |= {"include_deleted_rows": True, "with_row_id": True}
        if fragment_ids is not None:
            options["fragments"] = [handle._dataset.get_fragment(each) for each in fragment_ids]
        if predicate is not None and mask is None:
            options |= {"filter": to_lance(predicate, handle.schema), "prefilter": True}
        if limit is not None and mask is None:
            options["limit"] = limit
        if places is not None:
            options |= {"offset": places.start, "limit": len(places)}
        with lance_errors("reading a table", handle.location, handle.version):
            batches = iter(handle._dataset.scanner(**options).to_reader())
        extra = {"with_row_id": with_row_id, "with_row_address": with_row_address}
        read_schema = result_schema(handle.schema, read, **extra)
        schema = result_schema(handle.schema, wanted, **extra)
        prepared = None if mask is None else PreparedMask(mask, read_schema)
        rows = 0
        while limit is None or rows < limit:
            with lance_errors("reading a table", handle.location, handle.version):
                batch = next(batches, None)
            if batch is None:
                break
            if prepared is not None:
                batch = prepared.filter(to_schema(handle, batch, read_schema))
            batch = to_schema(handle, batch, schema)
            batch = batch if limit is None else batch.slice(0, limit - rows)
            rows += batch.num_rows
            yield batch
        record(scans=1, rows_scanned=rows)

    def scan_addresses(
        self,
        handle: TableHandle,
        columns: Sequence[str],
        predicate: Predicate | None = None,
        fragment_ids: Sequence[int] | None = None,
        places: range | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns, Blobs included, and as `_rowaddr` the address of each row."""
        return self.scan_stream(
            handle,
            columns,
            predicate,
            with_row_address=True,
            include_blobs=True,
            batch_rows=ADDRESS_BATCH_ROWS,
            fragment_ids=fragment_ids,
            places=places,
        )

    def find_addresses(self, handle: TableHandle, predicate: Predicate) -> RowIds:
        """The physical addresses of the matching rows: fragment id, then position in it."""
        batches = self.scan_addresses(handle, [], predicate)
        found = [batch.column(ROW_ADDRESS).to_numpy() for batch in batches]
        return np.concatenate([np.empty(0, dtype=np.uint64), *found])

    def count_rows(self, handle: TableHandle, predicate: Predicate | None = None) -> int:
        """Count the matching rows; without a predicate no data is read."""
        if predicate is None:
            return handle.row_count
        if _is_pushable(predicate, handle):
            with lance_errors("counting rows", handle.location, handle.version):
                count = int(handle._dataset.count_rows(filter=to_lance(predicate, handle.schema)))
            record(scans=1)
            return count
        batches = self.scan_stream(handle, columns_of(predicate), predicate)
        return sum(batch.num_rows for batch in batches)

    def scan_with_pending(
        self,
        handle: TableHandle,
        pending: Pending,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        key_column: str | None = None,
        *,
        include_blobs: bool = False,
    ) -> pa.Table:
        """Return committed and then pending rows; a pending key hides its committed row."""
        wanted = projection(handle.schema, columns, include_blobs=include_blobs)
        if key_column is not None and key_column not in wanted:
            raise BadRequestError(f"the projection {wanted} has to include the key '{key_column}'")
        committed = self.scan(handle, wanted, predicate, include_blobs=include_blobs)
        rows = to_pending_table(pending, handle.schema, include_blobs=include_blobs)
        if key_column is not None:
            committed = hide_pending(committed, rows, key_column)
        matching = rows if predicate is None else keep(predicate, rows)
        return pa.concat_tables([committed, matching.select(wanted).cast(committed.schema)])

    def take_rows(
        self, handle: TableHandle, row_ids: Sequence[int], columns: Sequence[str]
    ) -> pa.Table:
        """Return the rows with these row ids, in this order; every id has to be there."""
        return self._take(handle, "row ids", row_ids, columns, handle._dataset._take_rows)

    def take_places(
        self, handle: TableHandle, places: Sequence[int], columns: Sequence[str]
    ) -> pa.Table:
        """The same by places in a full scan: Lance then lists no row ids, which it does once."""
        rows = [each.rows for each in self.fragments(handle)]
        take = partial(take_in_fragments, handle, rows)
        return self._take(handle, "places", places, columns, take)

    def _take(
        self,
        handle: TableHandle,
        kind: str,
        rows: Sequence[int],
        columns: Sequence[str],
        take: Callable[..., pa.Table],
    ) -> pa.Table:
        wanted = projection(handle.schema, columns, include_blobs=False)
        schema = result_schema(handle.schema, wanted)
        if len(rows) == 0:
            return schema.empty_table()
        with lance_errors("fetching rows", handle.location, handle.version):
            present = [name for name in wanted if name not in handle.absent]
            found = take(list(rows), columns=present or ["id"])
        if found.num_rows != len(rows):
            raise BadRequestError(
                f"{len(rows) - found.num_rows} of {len(rows)} {kind} are not in version "
                f"{handle.version} of '{handle.location}'"
            )
        record(rows_taken=found.num_rows)
        batches = [to_schema(handle, each, schema) for each in found.to_batches()]
        return pa.Table.from_batches(batches, schema)

    def take_stream(
        self,
        handle: TableHandle,
        row_ids: RowIds,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows with these row ids in that order, Blobs included, in bounded memory."""
        wanted = projection(handle.schema, columns, include_blobs=True)
        for start in range(0, len(row_ids), batch_rows):
            some = row_ids[start : start + batch_rows]
            yield self._take_batch(handle, some, self.addresses.find(handle, some), wanted)

    def take_one(self, handle: TableHandle, row_id: int, address: int) -> pa.RecordBatch:
        """A row that is known to lie at an address, Blobs included."""
        wanted = projection(handle.schema, None, include_blobs=True)
        row_ids, addresses = (np.array([each], dtype=np.uint64) for each in (row_id, address))
        return self._take_batch(handle, row_ids, addresses, wanted)

    def expect_takes(self, handle: TableHandle, row_ids: RowIds) -> None:
        """Find where very many rows lie at once, before they are taken a batch at a time."""
        is_many = len(row_ids) > LOOKUP_ROWS_MAX and handle.row_count >= LOOKUP_TABLE_ROWS_MIN
        if is_many and self.addresses.find(handle, row_ids) is None:
            self.addresses.put_rows(handle, scan_for(handle, row_ids))

    def _take_batch(
        self,
        handle: TableHandle,
        row_ids: RowIds,
        addresses: RowIds | None,
        wanted: list[str],
    ) -> pa.RecordBatch:
        if handle.beside is not None:
            return self._take_both(handle, handle.beside, row_ids, wanted)
        known = find_taken(handle, row_ids, wanted)
        schema = result_schema(handle.schema, wanted)
        if len(known) == len(wanted):
            return pa.RecordBatch.from_arrays([known[name] for name in wanted], schema=schema)
        blobs = set(blob_columns(handle.schema)).intersection(wanted) - handle.absent
        ready = blobs | handle.absent | known.keys()
        plain = [name for name in wanted if name not in ready] or ["id"]
        with lance_errors("fetching rows", handle.location, handle.version):
            addresses = look_up(handle, row_ids) if addresses is None else addresses
            rows = take_at(handle, addresses, plain)
            if rows is None:
                rows = take_by_id(handle, row_ids, plain, addresses)
        assert rows.num_rows == len(row_ids), "a row id is not in this version"

        def column(name: str) -> pa.Array:
            if name in known:
                return known[name]
            if name in handle.absent:
                return pa.nulls(len(row_ids), schema.field(name).type)
            if name in blobs:
                found = self.read_blobs(handle, name, row_ids.tolist(), addresses)
                return pa.array(found, pa.large_binary())
            taken = rows.column(name).combine_chunks()
            return recast(taken, schema.field(name).type)[0] if name in handle.recast else taken

        columns = [column(name) for name in wanted]
        record(rows_taken=len(row_ids))
        (batch,) = pa.Table.from_arrays(columns, schema=schema).combine_chunks().to_batches()
        keep_taken(handle, row_ids, batch.drop_columns(list(known)))
        return batch

    def _take_both(
        self, handle: TableHandle, beside: TableHandle, row_ids: RowIds, wanted: list[str]
    ) -> pa.RecordBatch:
        """Rows of a version and rows beside it, in the order of their row ids."""
        is_beside = row_ids >= np.uint64(BESIDE)
        parts = [
            (replace(handle, beside=None), row_ids[~is_beside]),
            (beside, row_ids[is_beside] - np.uint64(BESIDE)),
        ]
        batches = [
            self._take_batch(*part, self.addresses.find(*part), wanted)
            for part in parts
            if len(part[1])
        ]
        if len(batches) == 1:
            return batches[0]
        rows = pa.Table.from_batches([each.cast(batches[0].schema) for each in batches])
        places = np.argsort(np.argsort(is_beside, kind="stable"), kind="stable")
        (batch,) = rows.take(pa.array(places)).combine_chunks().to_batches()
        return batch

    def open_blob(self, handle: TableHandle, column: str, *, entity_id: str) -> StoredBlob | None:
        """Open one Blob cell for reading; None when it is null."""
        if column not in blob_columns(handle.schema):
            raise BadRequestError(f"column '{column}' is not a Blob")
        same = Compare("id", CompareOp.EQ, pa.scalar(entity_id))
        rows = self.scan(handle, ["id"], same, with_row_id=True, limit=1)
        if rows.num_rows == 0:
            raise NotFoundError(f"there is no row '{entity_id}'")
        [row_id] = rows.column(ROW_ID).to_pylist()
        with lance_errors("reading a blob", handle.location, handle.version):
            written = handle._dataset._take_rows([row_id], [UPDATED]).column(UPDATED)[0]
            found = open_blob(handle._dataset, column, row_id, f"{row_id}-{written}-{column}")
        record(blobs_read=1)
        return found

    def read_blobs(
        self,
        handle: TableHandle,
        column: str,
        row_ids: Sequence[int],
        addresses: RowIds | None = None,
    ) -> list[bytes | None]:
        """Return the bytes of a Blob column for these rows, in the order given.

        Their `addresses`, where they are known, spare Lance a look at all row ids.
        """
        if column in handle.absent:
            return [None] * len(row_ids)
        with lance_errors("reading blobs", handle.location, handle.version):
            places = None if addresses is None else addresses.tolist()
            found = read_blobs(handle._dataset, column, list(row_ids), places)
        record(blobs_read=len(found))
        return found

    def fragment_ids(self, handle: TableHandle) -> list[int]:
        """The fragments of a version, which can be read apart from one another."""
        return [each.fragment_id for each in handle._dataset.get_fragments()]

    def fragments(self, handle: TableHandle) -> tuple[Fragment, ...]:
        """The fragments of a version in scan order."""
        with lance_errors("reading a table", handle.location, handle.version):
            return self._facts.read(handle._dataset)

    def list_indexed_fragments(self, handle: TableHandle, column: str) -> set[int]:
        """The fragments of a version whose values of a column an index knows by their place."""
        with lance_errors("reading indexes", handle.location, handle.version):
            found = handle._dataset.describe_indices()
            segments = [
                segment
                for each in found
                if each.field_names[0] == column and each.index_type.lower() in BY_PLACE
                for segment in each.segments
            ]
        covered = {each for segment in segments for each in segment.fragment_ids}
        return covered & {each.fragment_id for each in self.fragments(handle)}

    def scan_fragments(
        self, handle: TableHandle, columns: Sequence[str], fragments: Sequence[Fragment]
    ) -> pa.Table:
        """The rows of some fragments and `_rowid`; no scan where they were just written here."""
        if all(each.rows == each.physical_rows for each in fragments):
            known = self.written.find(handle, columns, fragments)
            found = None if known is None else [self.read_row_ids(handle, e) for e in fragments]
            row_ids = [each for each in found or [] if each is not None]
            if known is not None and len(row_ids) == len(fragments):
                # Of a table without columns Arrow does not know how many rows it has.
                arrays = [*known.columns, pa.chunked_array(row_ids)]
                return pa.Table.from_arrays(arrays, [*columns, ROW_ID])
        ids = [each.fragment_id for each in fragments]
        return self.scan(handle, columns, with_row_id=True, fragment_ids=ids)

    def read_row_ids(
        self, handle: TableHandle, fragment: Fragment, offsets: np.ndarray | None = None
    ) -> RowIds | None:
        """The row ids that a fragment records, deleted rows included; None in an unknown form.

        With `offsets`, only of the rows there in its data file.
        """
        with lance_errors("reading a table", handle.location, handle.version):
            found = handle._dataset.get_fragment(fragment.fragment_id)
            assert found is not None
            try:
                return physical_row_ids(found.metadata, offsets)
            except UnknownSequence:
                return None

    def scan_physical(
        self, handle: TableHandle, columns: Sequence[str], fragments: Sequence[Fragment]
    ) -> pa.Table:
        """Every row in the data files of some fragments, deleted ones included, in their order."""
        known = self.written.find(handle, columns, fragments)
        if known is not None:
            return known
        ids = [each.fragment_id for each in fragments]
        batches = self.scan_stream(handle, columns, fragment_ids=ids, include_deleted=True)
        rows = pa.Table.from_batches(batches, result_schema(handle.schema, columns))
        expected = sum(each.physical_rows for each in fragments)
        assert rows.num_rows == expected, f"{rows.num_rows} rows in files of {expected}"
        return rows

    def list_deleted(self, handle: TableHandle, fragment: Fragment) -> np.ndarray | None:
        """The same, from a small file near by; None when that is not to be had."""
        if fragment.deletions is None:
            return np.zeros(0, dtype=np.int64)
        key = (handle.location.uri, fragment.deletions)
        found = self._deleted.get(key)
        if found is None:
            found = read_deletion_file(handle.location, fragment.deletions)
        if found is None or len(found) != fragment.physical_rows - fragment.rows:
            return None
        self._deleted.put(key, found)
        return found

    def read_deleted(self, handle: TableHandle, fragment: Fragment) -> np.ndarray:
        """Which rows of the data file of a fragment are deleted, ascending."""
        listed = self.list_deleted(handle, fragment)
        if listed is not None:
            return listed
        with lance_errors("reading a table", handle.location, handle.version):
            lance_fragment = handle._dataset.get_fragment(fragment.fragment_id)
            assert lance_fragment is not None
            rows = lance_fragment.scanner(columns=[], with_row_address=True).to_table()
        record(scans=1, rows_scanned=rows.num_rows)
        live = rows.column(ROW_ADDRESS).to_numpy() & np.uint64(0xFFFFFFFF)
        is_deleted = np.ones(fragment.physical_rows, dtype=bool)
        is_deleted[live] = False
        return np.flatnonzero(is_deleted)


def _is_pushable(predicate: Predicate, handle: TableHandle) -> bool:
    """Whether Lance can evaluate it: it knows only the columns that are there, as they are."""
    is_known = (handle.absent | handle.recast).isdisjoint(columns_of(predicate))
    return is_known and is_pushable(predicate, handle.schema)
