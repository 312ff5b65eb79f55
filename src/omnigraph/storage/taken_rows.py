"""Taken rows: what an operation has read of rows, for it to read again.

A merge compares rows, holds them to the rules and writes them. In a large table rows that are far
apart are each in a page of its own, so to take them again costs as much as the first time. What was
taken is kept while the operation runs, of so many rows and bytes; of more, all is read each time.

What is kept is told by the version and the columns it is shown with, and a version never changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import pyarrow as pa

from omnigraph.storage.handles import TableHandle
from omnigraph.storage.row_ids import RowIds

ROWS_MAX = 1 << 15
"""Of one version; so few that a look at all of them is no work."""
BYTES_MAX = 16 * 1024 * 1024

_Column = tuple[Hashable, str]


class _TakenRows:
    """Some columns of some rows, by version."""

    def __init__(self) -> None:
        self._parts: defaultdict[_Column, list[tuple[RowIds, pa.Array]]] = defaultdict(list)
        self._bytes = 0

    def keep(self, handle: TableHandle, row_ids: RowIds, values: pa.RecordBatch) -> None:
        order = np.argsort(row_ids)
        for name in values.schema.names:
            parts, column = self._parts[handle.identity, name], values.column(name)
            size = row_ids.nbytes + column.nbytes
            is_many = sum(len(known) for known, _ in parts) + len(row_ids) > ROWS_MAX
            if not is_many and self._bytes + size <= BYTES_MAX:
                self._bytes += size
                parts.append((row_ids[order], column.take(pa.array(order))))

    def find(self, handle: TableHandle, row_ids: RowIds, name: str) -> pa.Array | None:
        """A column of some rows, in their order; None unless it is known of all of them."""
        parts = self._parts.get((handle.identity, name))
        if not parts:
            return None
        places, first = np.full(len(row_ids), -1, dtype=np.int64), 0
        for known, _ in parts:
            at = np.minimum(np.searchsorted(known, row_ids), len(known) - 1)
            is_here = known[at] == row_ids
            places[is_here] = first + at[is_here]
            first += len(known)
        if (places < 0).any():
            return None
        return pa.concat_arrays([values for _, values in parts]).take(pa.array(places))


_taken: ContextVar[_TakenRows | None] = ContextVar("omnigraph_taken_rows", default=None)


@contextmanager
def keep_taken_rows() -> Iterator[None]:
    """Have the block, or the function that this decorates, read a row once for all that it does."""
    token = _taken.set(_taken.get() or _TakenRows())
    try:
        yield
    finally:
        _taken.reset(token)


def keep_taken(handle: TableHandle, row_ids: RowIds, values: pa.RecordBatch) -> None:
    """Keep columns of rows that were read, if the operation that runs keeps them."""
    taken = _taken.get()
    if taken is not None and len(row_ids):
        taken.keep(handle, row_ids, values)


def find_taken(handle: TableHandle, row_ids: RowIds, names: Iterable[str]) -> dict[str, pa.Array]:
    """The columns that the operation that runs has read before of all these rows."""
    taken = _taken.get()
    if taken is None:
        return {}
    found = ((name, taken.find(handle, row_ids, name)) for name in names)
    return {name: column for name, column in found if column is not None}
