"""Row addresses: where rows lie in one version, as fragment id and position in the fragment.

To find rows by their row ids Lance expands all row ids of a table and takes deleted rows out
first. Finding them here, from what fragments record, costs less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.lru import Lru
from omnigraph.storage.counters import record
from omnigraph.storage.filters import at_addresses
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import fragment_messages, recorded_rows
from omnigraph.storage.projection import IN_TURN, ROW_ADDRESS, ROW_ID
from omnigraph.storage.row_ids import RowIds, UnknownSequence, locate_row_ids

CACHED_VERSIONS_MAX = 8
CACHED_ROWS_MAX = 262_144
LOOKUP_TABLE_ROWS_MIN = 100_000
LOOKUP_ROWS_MAX = 8_192
_SCANNED_ROWS = 1 << 16
_NOWHERE = np.uint64(2**64 - 1)


class AddressCache:
    """The addresses of rows that were listed a moment ago, by version."""

    def __init__(self) -> None:
        self._cache: Lru[tuple[object, ...], tuple[RowIds, RowIds]] = Lru(CACHED_VERSIONS_MAX)

    def put(self, handle: TableHandle, row_ids: RowIds, addresses: RowIds) -> None:
        """Keep the addresses of these rows, unless they are very many."""
        if len(row_ids) <= CACHED_ROWS_MAX:
            order = np.argsort(row_ids)
            self._cache.put(handle.identity, (row_ids[order], addresses[order]))

    def put_rows(self, handle: TableHandle, rows: pa.Table) -> None:
        """The same of a table that has row ids and addresses."""
        if rows.num_rows:
            self.put(handle, to_numbers(rows[ROW_ID]), to_numbers(rows[ROW_ADDRESS]))

    def find(self, handle: TableHandle, row_ids: RowIds) -> RowIds | None:
        """The address of each row; None unless all of them are known."""
        known = self._cache.get(handle.identity)
        if known is None or len(known[0]) == 0:
            return None
        at = np.minimum(np.searchsorted(known[0], row_ids), len(known[0]) - 1)
        return known[1][at] if np.array_equal(known[0][at], row_ids) else None


def scan_for(handle: TableHandle, row_ids: RowIds) -> pa.Table:
    """Row ids and addresses of these rows, by one pass over all row ids; reads no data file.

    For very many rows this costs less than to expand the row ids that fragments record.
    """
    wanted = np.sort(row_ids)
    parts: list[pa.Table] = []
    rows = 0
    with lance_errors("reading a table", handle.location, handle.version):
        batches = handle._dataset.scanner(
            columns=[], with_row_id=True, with_row_address=True, batch_size=_SCANNED_ROWS, **IN_TURN
        ).to_reader()
        for batch in batches:
            found = to_numbers(batch.column(ROW_ID))
            at = np.minimum(np.searchsorted(wanted, found), max(len(wanted) - 1, 0))
            parts.append(pa.Table.from_batches([batch.filter(pa.array(wanted[at] == found))]))
            rows += batch.num_rows
    record(scans=1, rows_scanned=rows)
    return pa.concat_tables(parts)


def to_addresses(handle: TableHandle, row_ids: RowIds) -> RowIds:
    """The address of each row id; all of them have to be live rows of this version.

    Of a row that moved, the address in the later fragment is found.
    """
    wanted, back = np.unique(row_ids, return_inverse=True)
    found = np.full(len(wanted), _NOWHERE, dtype=np.uint64)
    for which, addresses in locate_rows(handle, wanted):
        found[which] = addresses
    assert not np.any(found == _NOWHERE), "a row id is not in this version"
    return found[back]


def locate_rows(
    handle: TableHandle, wanted: RowIds
) -> Iterator[tuple[npt.NDArray[np.int64], RowIds]]:
    """Of each fragment, which of these row ids it records and at which addresses.

    `wanted` are in order, each of them once. Rows that are deleted, or moved on, are among them.
    """
    with lance_errors("reading a table", handle.location, handle.version):
        for recorded in map(recorded_rows, fragment_messages(handle._dataset)):
            first = np.uint64(recorded.fragment_id << 32)
            try:
                which, positions = locate_row_ids(recorded.row_ids, recorded.rows, wanted)
            except UnknownSequence:
                yield _scan_fragment(handle, recorded.fragment_id, wanted)
            else:
                yield which, positions + first


def _scan_fragment(
    handle: TableHandle, fragment_id: int, wanted: RowIds
) -> tuple[npt.NDArray[np.int64], RowIds]:
    """The same of a fragment whose row ids are recorded in a form that is not known."""
    fragment = handle._dataset.get_fragment(fragment_id)
    assert fragment is not None
    rows = fragment.scanner(columns=[], with_row_id=True, with_row_address=True).to_table()
    record(scans=1, rows_scanned=rows.num_rows)
    _, which, at = np.intersect1d(
        wanted, to_numbers(rows[ROW_ID]), assume_unique=True, return_indices=True
    )
    return which, to_numbers(rows[ROW_ADDRESS])[at]


def take_at(handle: TableHandle, addresses: RowIds | None, columns: list[str]) -> pa.Table | None:
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


def take_in_fragments(
    handle: TableHandle, rows: Sequence[int], places: Sequence[int], columns: list[str]
) -> pa.Table:
    """The rows at these places of a full scan, in their order, each from its fragment.

    `rows` are those of each fragment. Lance finds a place behind deleted rows by looking through
    the rows before it: tens of milliseconds for each one in a table of a million.
    """
    wanted = np.asarray(places, dtype=np.int64)
    order = np.argsort(wanted, kind="stable")
    ends = np.cumsum(np.asarray(rows, dtype=np.int64))
    assert wanted.max() < ends[-1], "a place is behind the last row"
    which = np.searchsorted(ends, wanted[order], side="right")
    parts = []
    for at, fragment in enumerate(handle._dataset.get_fragments()):
        here = wanted[order][which == at] - (ends[at] - rows[at])
        if len(here):
            parts.append(fragment.take(here.tolist(), columns=columns))
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_tables(parts).take(pa.array(back))


def look_up(handle: TableHandle, row_ids: RowIds) -> RowIds | None:
    """The addresses of a few rows of a large table; None of others, which Lance finds as fast."""
    return to_addresses(handle, row_ids) if _are_few(handle, row_ids) else None


def take_by_id(
    handle: TableHandle, row_ids: RowIds, columns: list[str], addresses: RowIds | None
) -> pa.Table:
    """The rows with these row ids, found as Lance does, or in a large table by their addresses."""
    if addresses is not None and _are_few(handle, row_ids):
        rows = handle._dataset.scanner(
            columns=columns,
            filter=at_addresses(addresses.tolist()),
            with_row_address=True,
        ).to_table()
        known = to_numbers(rows[ROW_ADDRESS])
        order = np.argsort(known)
        if len(known) == len(row_ids) and len(np.unique(row_ids)) == len(row_ids):
            return rows.take(pa.array(order[np.searchsorted(known[order], addresses)]))
    return handle._dataset._take_rows(row_ids.tolist(), columns=columns)


def _are_few(handle: TableHandle, row_ids: RowIds) -> bool:
    return handle.row_count >= LOOKUP_TABLE_ROWS_MIN and len(row_ids) <= LOOKUP_ROWS_MAX


def to_numbers(column: pa.Array | pa.ChunkedArray) -> RowIds:
    """A column of row ids, addresses or versions as an array."""
    return np.asarray(column.to_numpy(), dtype=np.uint64)
