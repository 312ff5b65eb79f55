"""Vectors: their numbers, their distances, and the rows nearest to a query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequestError

EXACT_COMPONENTS_MAX = 2**24
"""Numbers in an indexed column up to which the answer is exact: 40,000 vectors of width 384.

So many are compared as quickly as Lance finds its way through an index.
"""

KEPT_COMPONENTS_MAX = 2**25
"""Numbers in a column without an index up to which it is kept in memory: 128 MiB."""

TAKE_ROWS_MAX = 4_096
"""Candidates up to which their vectors are fetched one by one instead of by a scan."""

BATCH_ROWS = 8_192


def to_query_vector(query: Sequence[float], dimension: int) -> np.ndarray:
    """The query as an array; refused unless it has `dimension` finite numbers."""
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


class NearestRows:
    """The rows nearest so far: at most a few limits of them, and every tie at the edge."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._ids: list[pa.Array] = []
        self._row_ids: list[np.ndarray] = []
        self._distances: list[np.ndarray] = []
        self._rows = 0

    def add(self, ids: pa.Array, row_ids: pa.Array, distances: np.ndarray) -> None:
        """Consider more rows."""
        self._keep(ids, np.asarray(row_ids.to_numpy(), np.uint64), distances)
        if self._limit is not None and self._rows > max(4 * self._limit, BATCH_ROWS):
            self._keep(*self._take())

    def sort(self) -> tuple[np.ndarray, np.ndarray]:
        """Row ids and distances, nearest first, ties by entity id."""
        ids, row_ids, distances = self._take()
        columns = pa.table({"distance": distances, "id": ids})
        order = pc.sort_indices(
            columns, sort_keys=[("distance", "ascending"), ("id", "ascending")]
        ).to_numpy()[: self._limit]
        return row_ids[order], distances[order]

    def _keep(self, ids: pa.Array, row_ids: np.ndarray, distances: np.ndarray) -> None:
        near = within(distances, self._limit)
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


def within(distances: np.ndarray, limit: int | None) -> np.ndarray:
    """Which distances can be among the first `limit`: ties with the last one included."""
    known: np.ndarray = ~np.isnan(distances)
    if limit is None or limit <= 0 or np.count_nonzero(known) <= limit:
        return known
    known &= distances <= np.partition(distances[known], limit - 1)[limit - 1]
    return known


def to_components(vectors: pa.Array | pa.ChunkedArray, dimension: int) -> np.ndarray:
    """One row per vector; NaN for a null component, and all through for a null vector."""
    if isinstance(vectors, pa.ChunkedArray):
        vectors = vectors.combine_chunks()
    present = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
    if vectors.null_count == 0:
        return np.asarray(present, dtype=np.float32)
    components = np.full((len(vectors), dimension), np.nan, dtype=np.float32)
    components[np.asarray(vectors.is_valid())] = present
    return components


def square_distances(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    """The squared L2 distance of each vector to the query."""
    # What overflows F32 is infinitely far away.
    with np.errstate(over="ignore", invalid="ignore"):
        difference = vectors - query
        # A sum per row, not a matrix product: a vector has the same distance in every batch.
        squares: np.ndarray = np.einsum("ij,ij->i", difference, difference)
    return squares.astype(np.float64)
