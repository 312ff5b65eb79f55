"""Row versions: what changed between a version of a table and one that came from it.

Lance stamps every row with the version that created it and the one that last changed it, and a
fork goes on counting where it left. Rows only ever change by moving to a new data file, and a row
keeps its row id for as long as it lives. So, from an older version to a newer one of the same
line of descent, only data files that the older one does not have can hold touched rows, and what
is gone are the row ids that are missing. Neither costs a look at the rows that stayed.

None of this holds across a change of columns; `field_ids` tells whether there was one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np
import pyarrow as pa

from omnigraph.storage.base_paths import RelocatedDataset
from omnigraph.storage.blobs import blob_columns, read_blobs
from omnigraph.storage.counters import record
from omnigraph.storage.filters import at_addresses
from omnigraph.storage.handles import Piece, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import transaction_uuid
from omnigraph.storage.reads import ROW_ADDRESS, ROW_ID, projection, result_schema
from omnigraph.storage.row_ids import RowIds, UnknownSequence, physical_row_ids

CREATED = "_row_created_at_version"
UPDATED = "_row_last_updated_at_version"


def field_ids(handle: TableHandle) -> tuple[tuple[str, int], ...]:
    """Name and identity of every column: a column dropped and made again has another one."""
    with lance_errors("reading the columns of a table", handle.location):
        fields = handle._dataset.lance_schema.fields()
    return tuple((field.name(), field.id()) for field in fields)


class Places:
    """Where rows lie that were listed just now: to find one by its id, Lance indexes them all."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], tuple[RowIds, RowIds]] = OrderedDict()
        self._lock = Lock()

    def remember(self, handle: TableHandle, row_ids: RowIds, addresses: RowIds) -> None:
        if len(row_ids) > _PLACES_ROWS_MAX:
            return
        order = np.argsort(row_ids)
        with self._lock:
            self._known[_key(handle)] = (row_ids[order], addresses[order])
            while len(self._known) > _PLACES_MAX:
                self._known.popitem(last=False)

    def find(self, handle: TableHandle, row_ids: RowIds) -> RowIds | None:
        """The address of each row; None unless all of them are known."""
        with self._lock:
            known = self._known.get(_key(handle))
        if known is None or len(known[0]) == 0:
            return None
        at = np.minimum(np.searchsorted(known[0], row_ids), len(known[0]) - 1)
        return known[1][at] if np.array_equal(known[0][at], row_ids) else None


_PLACES_MAX = 8
_PLACES_ROWS_MAX = 262_144


def _key(handle: TableHandle) -> tuple[object, ...]:
    return (handle.location, handle.version, transaction_uuid(handle._dataset))


def touched_since(
    handle: TableHandle, ancestor: TableHandle, places: Places
) -> tuple[pa.Array, RowIds, RowIds]:
    """Rows that were made or changed after `ancestor`: their ids, row ids, and making versions."""
    known = {_files(fragment) for fragment in ancestor._dataset.get_fragments()}
    with lance_errors("reading a table", handle.location):
        new = [each for each in handle._dataset.get_fragments() if _files(each) not in known]
        if not new:
            return pa.array([], pa.utf8()), _NO_ROWS, _NO_ROWS
        rows = handle._dataset.scanner(
            columns=["id", CREATED, UPDATED],
            with_row_id=True,
            with_row_address=True,
            fragments=new,
        ).to_table()
    record(scans=1, rows_scanned=rows.num_rows)
    # Filtered here and not by Lance: a row that compaction moved is in a new file, yet untouched.
    touched = rows.filter(pa.compute.greater(rows[UPDATED], ancestor.version))
    row_ids = _numbers(touched[ROW_ID])
    places.remember(handle, row_ids, _numbers(touched[ROW_ADDRESS]))
    return touched["id"].combine_chunks(), row_ids, _numbers(touched[CREATED])


def gone_since(handle: TableHandle, ancestor: TableHandle, count: int) -> RowIds:
    """The row ids of `ancestor` that are not there any more; the caller knows how many."""
    if count == 0:
        return _NO_ROWS
    gone = row_ids_gone(handle, ancestor)
    if gone is None or len(gone) != count:
        gone = np.setdiff1d(all_row_ids(ancestor), all_row_ids(handle), assume_unique=True)
    return gone


def row_ids_gone(handle: TableHandle, ancestor: TableHandle) -> RowIds | None:
    """The same as Lance itself says it, at the cost of a look at two manifests.

    None when it cannot say. Whoever can knows how many there are and counts.
    """
    if isinstance(handle._dataset, RelocatedDataset):
        return None  # Lance would open the ancestor with the base paths of its file
    try:
        delta = handle._dataset.delta(compared_against=ancestor.version)
        return _numbers(delta.get_deleted_row_ids().read_all()[ROW_ID])
    except (OSError, ValueError, RuntimeError):
        # A fork has no versions of its own from before it was made.
        return None


def pieces(handle: TableHandle) -> tuple[Piece, ...]:
    """The fragments of a version in scan order."""
    with lance_errors("reading a table", handle.location):
        return tuple(
            Piece(each.fragment_id, _files(each), each.metadata.num_rows)
            for each in handle._dataset.get_fragments()
        )


def all_row_ids(handle: TableHandle) -> RowIds:
    """The row id of every row; reads no data file."""
    with lance_errors("reading a table", handle.location):
        rows = handle._dataset.scanner(columns=[], with_row_id=True).to_table()
    record(scans=1, rows_scanned=rows.num_rows)
    return _numbers(rows[ROW_ID])


def take_stream(
    handle: TableHandle,
    row_ids: RowIds,
    columns: Sequence[str] | None,
    places: Places,
    *,
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with these row ids in that order, Blobs included, a batch at a time."""
    wanted = projection(handle.schema, columns, include_blobs=True)
    for start in range(0, len(row_ids), batch_rows):
        yield _taken(handle, row_ids[start : start + batch_rows], wanted, places)


def _taken(
    handle: TableHandle, numbers: RowIds, wanted: list[str], places: Places
) -> pa.RecordBatch:
    row_ids = numbers.tolist()
    schema = result_schema(handle.schema, wanted, with_row_id=False)
    blobs = set(blob_columns(handle.schema)).intersection(wanted)
    plain = [name for name in wanted if name not in blobs] or ["id"]
    with lance_errors("fetching rows", handle.location):
        rows = _taken_at(handle, places.find(handle, numbers), plain)
        if rows is None:
            rows = _taken_by_id(handle, numbers, plain)
        rows = rows.combine_chunks()
        assert rows.num_rows == len(row_ids), "a row id is not in this version"
        columns = [
            pa.array(read_blobs(handle._dataset, name, row_ids), pa.large_binary())
            if name in blobs
            else rows.column(name)
            for name in wanted
        ]
    record(rows_taken=len(row_ids), blobs_read=len(row_ids) * len(blobs))
    (batch,) = pa.Table.from_arrays(columns, schema=schema).combine_chunks().to_batches()
    return batch


def _taken_at(handle: TableHandle, addresses: RowIds | None, columns: list[str]) -> pa.Table | None:
    """The rows at these addresses, straight from their fragments; None when that is not possible.

    A fragment counts its rows without the deleted ones, so one that has deletions is left alone.
    """
    if addresses is None:
        return None
    order = np.argsort(addresses)
    in_order = addresses[order]
    fragments = (in_order >> np.uint64(32)).astype(np.int64)
    parts = []
    for fragment_id in np.unique(fragments).tolist():
        fragment = handle._dataset.get_fragment(fragment_id)
        if fragment is None or fragment.metadata.deletion_file is not None:
            return None
        offsets = in_order[fragments == fragment_id] & np.uint64(0xFFFFFFFF)
        parts.append(fragment.take(offsets.tolist(), columns=columns))
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_tables(parts).take(pa.array(back))


def _taken_by_id(handle: TableHandle, row_ids: RowIds, columns: list[str]) -> pa.Table:
    """The rows with these row ids, found as Lance does, or in a large table by their addresses."""
    if handle.row_count >= _LOOKED_UP_ROWS and len(row_ids) <= _LOOKED_UP_MAX:
        addresses = addresses_of(handle, row_ids)
        rows = handle._dataset.scanner(
            columns=columns,
            filter=at_addresses(addresses.tolist()),
            with_row_address=True,
        ).to_table()
        known = _numbers(rows[ROW_ADDRESS])
        order = np.argsort(known)
        if len(known) == len(row_ids) and len(np.unique(row_ids)) == len(row_ids):
            return rows.take(pa.array(order[np.searchsorted(known[order], addresses)]))
    return handle._dataset._take_rows(row_ids.tolist(), columns=columns)


_LOOKED_UP_ROWS = 100_000
_LOOKED_UP_MAX = 8_192


def addresses_of(handle: TableHandle, row_ids: RowIds) -> RowIds:
    """Where rows are now: fragment id, then position in it.

    Costs less than Lance's own look-up, which takes deleted rows out of all row ids first. The
    caller has live rows in mind; of a row that moved, the place in the later fragment is found.
    """
    order = np.argsort(row_ids)
    wanted = row_ids[order]
    found = np.full(len(wanted), _NOWHERE, dtype=np.uint64)
    with lance_errors("reading a table", handle.location):
        parts = list(_row_places(handle))
    for ids, addresses in parts:
        sorter = None if bool(np.all(ids[:-1] < ids[1:])) else np.argsort(ids)
        at = np.minimum(np.searchsorted(ids, wanted, sorter=sorter), len(ids) - 1)
        at = at if sorter is None else sorter[at]
        is_here = ids[at] == wanted
        found[is_here] = addresses[at[is_here]]
    assert not np.any(found == _NOWHERE), "a row id is not in this version"
    back = np.empty_like(found)
    back[order] = found
    return back


def _row_places(handle: TableHandle) -> Iterator[tuple[RowIds, RowIds]]:
    """Row ids and addresses of the places of each fragment, in their order."""
    for fragment in handle._dataset.get_fragments():
        first = np.uint64(fragment.fragment_id << 32)
        try:
            ids = physical_row_ids(fragment.metadata)
        except UnknownSequence:
            rows = fragment.scanner(columns=[], with_row_id=True, with_row_address=True).to_table()
            record(scans=1, rows_scanned=rows.num_rows)
            if rows.num_rows:
                yield _numbers(rows[ROW_ID]), _numbers(rows[ROW_ADDRESS])
            continue
        if len(ids):
            yield ids, np.arange(len(ids), dtype=np.uint64) + first


_NO_ROWS: RowIds = np.empty(0, dtype=np.uint64)
_NOWHERE = np.uint64(2**64 - 1)


def _numbers(column: pa.Array | pa.ChunkedArray) -> RowIds:
    return np.asarray(column.to_numpy(), dtype=np.uint64)


def _files(fragment: object) -> tuple[str, ...]:
    return tuple(sorted(file.path for file in fragment.metadata.files))  # type: ignore[attr-defined]
