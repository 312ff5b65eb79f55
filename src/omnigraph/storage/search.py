"""Search: the vector columns of one table version.

Distance is squared L2. Without a vector index, and up to `EXACT_COMPONENTS_MAX` numbers in the
column, the answer is exact: by brute force over a stream of vectors, or over vectors that the
caller keeps; both give the same rows with the same distances. Beyond that Lance answers with
the index and the rows it misses: faster, and approximate. Few candidates are compared one by one;
of many, the index is asked for so many rows that enough of them are candidates.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.lru import Lru
from omnigraph.storage import vectors
from omnigraph.storage.counters import record
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.indexes import Indexes
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.predicates import IsNull, Not
from omnigraph.storage.projection import ROW_ID, column_type
from omnigraph.storage.reads import Reads
from omnigraph.storage.vectors import NearestRows

_VERSIONS_KNOWN = 64
_FLAT = {"metric": "l2", "minimum_nprobes": 20}
# Quantised vectors are close to the true ones: the nearest of some more are compared exactly.
_QUANTISED = _FLAT | {"refine_factor": 10}


@dataclass(frozen=True, slots=True)
class Search:
    """Reads vectors, and finds the nearest."""

    reads: Reads
    indexes: Indexes
    _kinds: Lru[Hashable, dict[str, str]] = field(default_factory=lambda: Lru(_VERSIONS_KNOWN))

    def read_vectors(
        self, handle: TableHandle, column: str, fragments: Sequence[Fragment]
    ) -> tuple[pa.Table, np.ndarray]:
        """Ids and vectors of all rows in the data files of some fragments, deleted or not."""
        rows = self.reads.scan_physical(handle, ["id", column], fragments)
        components = vectors.to_components(rows.column(column), self.dimension(handle, column))
        return rows.select(["id"]), components

    def dimension(self, handle: TableHandle, column: str) -> int:
        """How many numbers each vector of a column has; any other column is refused."""
        stored = column_type(handle, column)
        if not pa.types.is_fixed_size_list(stored):
            raise BadRequestError(f"'{column}' is not a Vector column: it has no distance")
        return int(stored.list_size)

    def is_worth_keeping(self, handle: TableHandle, column: str) -> bool:
        """Whether the vectors of this column are few enough to keep, and no index finds them."""
        components = handle.row_count * self.dimension(handle, column)
        if components > vectors.KEPT_COMPONENTS_MAX:
            return False
        return self.find_index(handle, column) is None

    def find_index(self, handle: TableHandle, column: str) -> str | None:
        """The kind of vector index that `nearest` asks; None when it asks every row."""
        if handle.row_count * self.dimension(handle, column) <= vectors.EXACT_COMPONENTS_MAX:
            return None
        kinds = self._kinds.get_or_make(handle.identity, lambda: self._list_kinds(handle))
        return kinds.get(column)

    def _list_kinds(self, handle: TableHandle) -> dict[str, str]:
        """Column → the kind of its index. A version never gets another one."""
        found = self.indexes.describe(handle)
        return {index.column: index.kind for index in reversed(found)}

    def nearest(
        self,
        handle: TableHandle,
        column: str,
        query: Sequence[float],
        candidates: pa.UInt64Array | None = None,
        limit: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Row ids by squared L2 distance to `query`, ties by entity id, and the distances.

        Rows without a vector, or with a null or NaN component, are left out. Only `candidates`
        are considered when given.
        """
        dimension = self.dimension(handle, column)
        vector = vectors.to_query_vector(query, dimension)
        found: pa.Table | None = None
        if limit is not None and (kind := self.find_index(handle, column)):
            search = _QUANTISED if kind == "IVF_PQ" else _FLAT
            options = {"column": column, "q": vector, **search}
            found = _search_index(handle, options, candidates, limit)
        best = NearestRows(limit)
        every = self._read_candidates(handle, column, candidates)
        for batch in every if found is None else found.to_batches():
            components = vectors.to_components(batch.column(column), dimension)
            distances = vectors.square_distances(components, vector)
            best.add(batch.column("id"), batch.column(ROW_ID), distances)
        return best.sort()

    def _read_candidates(
        self, handle: TableHandle, column: str, candidates: pa.UInt64Array | None
    ) -> Iterator[pa.RecordBatch]:
        """Ids, row ids and vectors of the candidates, in bounded batches."""
        if candidates is not None and len(candidates) <= vectors.TAKE_ROWS_MAX:
            wanted = pc.unique(candidates)
            rows = self.reads.take_rows(handle, wanted.to_pylist(), ["id", column])
            yield from rows.append_column(ROW_ID, wanted).to_batches()
            return
        present = Not(IsNull(column))
        for batch in self.reads.scan_stream(
            handle, ["id", column], present, with_row_id=True, batch_rows=vectors.BATCH_ROWS
        ):
            if candidates is None:
                yield batch
            else:
                yield batch.filter(pc.is_in(batch.column(ROW_ID), candidates))


def _search_index(
    handle: TableHandle, options: dict[str, Any], candidates: pa.UInt64Array | None, limit: int
) -> pa.Table | None:
    """The nearest candidates, and perhaps others; None when comparing all of them costs less.

    The nearest rows are asked for, more and more of them, until enough are candidates: those are
    then the nearest candidates.
    """
    if candidates is None:
        return _ask_index(handle, options, limit)
    if len(candidates) <= vectors.TAKE_ROWS_MAX:
        return None
    asked = math.ceil(2 * limit * handle.row_count / len(candidates))
    while asked <= vectors.TAKE_ROWS_MAX:
        found = _ask_index(handle, options, asked)
        found = found.filter(pc.is_in(found.column(ROW_ID), candidates))
        if found.num_rows >= limit:
            return found
        asked *= 4
    return None


def _ask_index(handle: TableHandle, options: dict[str, Any], count: int) -> pa.Table:
    columns = ["id", options["column"], "_distance"]
    with lance_errors("searching vectors", handle.location, handle.version):
        rows = handle._dataset.scanner(
            columns=columns, nearest=options | {"k": count}, with_row_id=True
        ).to_table()
    record(scans=1, rows_scanned=rows.num_rows)
    return rows
