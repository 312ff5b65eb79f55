"""Vectors: the rows whose vectors are nearest to a query, in one table version.

Distance is squared L2. Up to `EXACT_COMPONENTS_MAX` numbers in the column the answer is exact, by
brute force over a stream of vectors or over a `VectorColumn` that the caller keeps; both give the
same rows with the same distances. Beyond that, and only when every row is a candidate and the
column has a vector index, Lance answers with that index and the rows it misses: faster, and
approximate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequestError
from omnigraph.storage import indexes, reads
from omnigraph.storage.counters import record
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.predicates import IsNull, Not
from omnigraph.storage.search import column_type

EXACT_COMPONENTS_MAX = 100_000 * 1_536
"""Numbers in a column up to which the answer is exact: 100,000 vectors of width 1,536."""

KEPT_COMPONENTS_MAX = 2**25
"""Numbers in a column up to which it is worth keeping in memory: 128 MiB."""

TAKE_ROWS_MAX = 4_096
"""Candidates up to which their vectors are fetched one by one instead of by a scan."""

BATCH_ROWS = 8_192
_PROBES_MIN = 20
_REFINE_FACTOR = 10


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """The vectors of one column, in the order of their entity ids; rows without one are absent."""

    row_ids: np.ndarray
    vectors: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.row_ids.nbytes + self.vectors.nbytes

    def nearest(
        self, query: Sequence[float], candidates: pa.UInt64Array | None, limit: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `nearest_rows` gives, without reading the table."""
        row_ids, vectors = self.row_ids, self.vectors
        vector = _query_vector(query, vectors.shape[1])
        if candidates is not None:
            wanted = pc.is_in(pa.array(row_ids), candidates).to_numpy(zero_copy_only=False)
            row_ids, vectors = row_ids[wanted], vectors[wanted]
        distances = _squared_distances(vectors, vector)
        # Rows are in the order of their ids, so a stable sort breaks ties by id.
        near = np.flatnonzero(_within(distances, limit))
        order = near[np.argsort(distances[near], kind="stable")][:limit]
        return row_ids[order], distances[order]


def is_worth_keeping(handle: TableHandle, column: str) -> bool:
    """Whether the column is small enough to keep as a `VectorColumn`."""
    return handle.row_count * _dimension(handle, column) <= KEPT_COMPONENTS_MAX


def read_vectors(handle: TableHandle, column: str) -> VectorColumn:
    """Read every vector of the column."""
    dimension = _dimension(handle, column)
    rows = pa.Table.from_batches(
        _vectors(handle, column, None),
        reads.result_schema(handle.schema, ["id", column], with_row_id=True),
    )
    order = pc.sort_indices(rows, sort_keys=[("id", "ascending")])
    rows = rows.take(order).combine_chunks()
    vectors = _components(rows.column(column), dimension)
    known = ~np.isnan(vectors).any(axis=1)
    row_ids = np.asarray(rows.column(reads.ROW_ID).to_numpy(), dtype=np.uint64)
    return VectorColumn(row_ids[known], vectors[known])


def nearest_rows(
    handle: TableHandle,
    column: str,
    query: Sequence[float],
    candidates: pa.UInt64Array | None,
    limit: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Row ids by squared L2 distance to `query`, ties by entity id, and the distances.

    Rows without a vector, or with a null or NaN component, are left out. Only `candidates` are
    considered when given.
    """
    dimension = _dimension(handle, column)
    vector = _query_vector(query, dimension)
    if candidates is None and limit is not None and uses_index(handle, column):
        found: Iterator[pa.RecordBatch] = iter(_indexed(handle, column, vector, limit))
    else:
        found = _vectors(handle, column, candidates)
    best = _Best(limit)
    for batch in found:
        distances = _squared_distances(_components(batch.column(column), dimension), vector)
        best.add(batch.column("id"), batch.column(reads.ROW_ID), distances)
    return best.sorted()


def _dimension(handle: TableHandle, column: str) -> int:
    stored = column_type(handle, column)
    if not pa.types.is_fixed_size_list(stored):
        raise BadRequestError(f"'{column}' is not a Vector column: it has no distance")
    return int(stored.list_size)


def _query_vector(query: Sequence[float], dimension: int) -> np.ndarray:
    if len(query) != dimension:
        raise BadRequestError(
            f"the query vector has {len(query)} components, the property has {dimension} — "
            f"give a vector of {dimension} numbers"
        )
    # A number beyond F32 becomes infinite here, and is refused with the others.
    with np.errstate(over="ignore"):
        vector = np.asarray(query, dtype=np.float64).astype(np.float32)
    if not np.isfinite(vector).all():
        raise BadRequestError("the query vector has a component that is not a finite F32 number")
    return vector


def uses_index(handle: TableHandle, column: str) -> bool:
    """Whether a search of every row asks the vector index, and compares only what that finds."""
    if handle.row_count * _dimension(handle, column) <= EXACT_COMPONENTS_MAX:
        return False
    return any(index.column == column for index in indexes.describe(handle))


def _indexed(
    handle: TableHandle, column: str, vector: np.ndarray, limit: int
) -> list[pa.RecordBatch]:
    options: dict[str, Any] = {
        "column": column,
        "q": vector,
        "k": limit,
        "metric": "l2",
        "minimum_nprobes": _PROBES_MIN,
        "refine_factor": _REFINE_FACTOR,
    }
    with lance_errors("searching vectors", handle.location, handle.version):
        rows = handle._dataset.scanner(
            columns=["id", column, "_distance"], nearest=options, prefilter=True, with_row_id=True
        ).to_table()
    record(scans=1, rows_scanned=rows.num_rows)
    return list(rows.to_batches())


def _vectors(
    handle: TableHandle, column: str, candidates: pa.UInt64Array | None
) -> Iterator[pa.RecordBatch]:
    """Ids, row ids and vectors of the candidates, in bounded batches."""
    if candidates is not None and len(candidates) <= TAKE_ROWS_MAX:
        wanted = pc.unique(candidates)
        rows = reads.take_rows(handle, wanted.to_pylist(), ["id", column])
        yield from rows.append_column(reads.ROW_ID, wanted).to_batches()
        return
    for batch in reads.scan_stream(
        handle,
        ["id", column],
        Not(IsNull(column)),
        with_row_id=True,
        batch_rows=BATCH_ROWS,
    ):
        if candidates is None:
            yield batch
        else:
            yield batch.filter(pc.is_in(batch.column(reads.ROW_ID), candidates))


class _Best:
    """The rows nearest so far: at most a few limits of them, and every tie at the edge."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._ids: list[pa.Array] = []
        self._row_ids: list[np.ndarray] = []
        self._distances: list[np.ndarray] = []
        self._rows = 0

    def add(self, ids: pa.Array, row_ids: pa.Array, distances: np.ndarray) -> None:
        self._keep(ids, np.asarray(row_ids.to_numpy(), np.uint64), distances)
        if self._limit is not None and self._rows > max(4 * self._limit, BATCH_ROWS):
            self._keep(*self._take())

    def sorted(self) -> tuple[np.ndarray, np.ndarray]:
        ids, row_ids, distances = self._take()
        columns = pa.table({"distance": distances, "id": ids})
        order = pc.sort_indices(
            columns, sort_keys=[("distance", "ascending"), ("id", "ascending")]
        ).to_numpy()[: self._limit]
        return row_ids[order], distances[order]

    def _keep(self, ids: pa.Array, row_ids: np.ndarray, distances: np.ndarray) -> None:
        near = _within(distances, self._limit)
        self._ids.append(ids.filter(pa.array(near)))
        self._row_ids.append(row_ids[near])
        self._distances.append(distances[near])
        self._rows += int(near.sum())

    def _take(self) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        ids = pa.concat_arrays(self._ids) if self._ids else pa.array([], pa.utf8())
        row_ids = np.concatenate([np.zeros(0, np.uint64), *self._row_ids])
        distances = np.concatenate([np.zeros(0, np.float64), *self._distances])
        self._ids, self._row_ids, self._distances, self._rows = [], [], [], 0
        return ids, row_ids, distances


def _within(distances: np.ndarray, limit: int | None) -> np.ndarray:
    """Which distances can be among the first `limit`: ties with the last one included."""
    known: np.ndarray = ~np.isnan(distances)
    if limit is None or limit <= 0 or np.count_nonzero(known) <= limit:
        return known
    known &= distances <= np.partition(distances[known], limit - 1)[limit - 1]
    return known


def _components(vectors: pa.Array | pa.ChunkedArray, dimension: int) -> np.ndarray:
    """One row per vector; NaN for a null component, and all through for a null vector."""
    if isinstance(vectors, pa.ChunkedArray):
        vectors = vectors.combine_chunks()
    present = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
    if vectors.null_count == 0:
        return np.asarray(present, dtype=np.float32)
    components = np.full((len(vectors), dimension), np.nan, dtype=np.float32)
    components[np.asarray(vectors.is_valid())] = present
    return components


def _squared_distances(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    # What overflows F32 is infinitely far away.
    with np.errstate(over="ignore", invalid="ignore"):
        difference = vectors - query
        # A sum per row, not a matrix product: a vector has the same distance in every batch.
        squares: np.ndarray = np.einsum("ij,ij->i", difference, difference)
    return squares.astype(np.float64)
