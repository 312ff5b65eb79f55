"""Vector parts: the vectors of one version kept in memory, those of other versions reused.

A commit of one row reads the vector of one row; a delete reads none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.index.addressed import make_addresses
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.keys import TableId, VectorsKey
from omnigraph.index.layout import Layout, read_layout
from omnigraph.index.notes import note
from omnigraph.index.parts import Part, choose_whole, cover, merge_small, place_part
from omnigraph.index.selection import Selection
from omnigraph.index.vector_index import VectorIndex, build_vector_index, merge_vector_indexes
from omnigraph.storage.handles import Fragment, TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.vectors import to_query_vector

_NONE: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class KeptVectors:
    """The vectors of one version. `number` is that of the column."""

    parts: tuple[Part[VectorIndex], ...]
    layout: Layout
    number: int

    @property
    def nbytes(self) -> int:
        return self.layout.nbytes + sum(part.nbytes for part in self.parts)

    @property
    def shared(self) -> tuple[VectorIndex, ...]:
        """What other versions have too; see `Sized`."""
        return tuple(part.index for part in self.parts)

    def nearest(
        self, query: Sequence[float], dimension: int, wanted: Selection | None, limit: int | None
    ) -> tuple[IntArray, AnyArray]:
        """Positions by squared L2 distance to `query`, ties by entity id, and the distances."""
        vector = to_query_vector(query, dimension)
        found = [_nearest_of_part(part, vector, wanted, limit) for part in self.parts]
        pairs = list(zip(self.parts, [documents for documents, _ in found], strict=True))
        positions = np.concatenate([_NONE, *(part.positions(each) for part, each in pairs)])
        distances = np.concatenate([np.zeros(0), *(each for _, each in found)])
        order = np.argsort(distances, kind="stable")
        in_order = distances[order]
        if np.any(in_order[1:] == in_order[:-1]):
            ids = [part.index.ids.take(each) for part, each in pairs]
            order = pc.sort_indices(
                pa.table({"distance": distances, "id": pa.chunked_array(ids, pa.large_utf8())}),
                sort_keys=[("distance", "ascending"), ("id", "ascending")],
            ).to_numpy()
        return positions[order[:limit]], distances[order[:limit]]


def _nearest_of_part(
    part: Part[VectorIndex], vector: AnyArray, wanted: Selection | None, limit: int | None
) -> tuple[IntArray, AnyArray]:
    documents: IntArray | None = None
    if part.is_live is not None:
        documents = np.flatnonzero(part.is_live)
    if wanted is not None:
        documents = np.arange(len(part.index)) if documents is None else documents
        documents = documents[wanted.contains(part.positions(documents))]
    return part.index.nearest(vector, documents, limit)


def read_vectors(
    tables: TableStorage, handle: TableHandle, name: str, cache: RuntimeCache
) -> KeptVectors:
    """The vectors of a column, cached; only those that no cached version has are read."""
    key = VectorsKey(TableId(*handle.identity), name)
    return cache.get(key, lambda: _build(tables, handle, key, cache))


def _build(
    tables: TableStorage, handle: TableHandle, key: VectorsKey, cache: RuntimeCache
) -> KeptVectors:
    number = dict(tables.ancestry.field_ids(handle)).get(key.name, -1)
    cached = [
        found
        for each in cache.other_versions(key)
        if isinstance(found := cache.peek(each), KeptVectors) and found.number == number
    ]
    layout = read_layout(tables, handle, cached[0].layout if cached else None)
    if key.name in handle.absent:
        return KeptVectors((), layout, number)
    known = {id(each): each for found in cached for each in found.shared}
    choices, missing = cover(layout, known.values())
    if missing:
        fragments = [layout.fragments[each] for each in missing]
        choices.append(choose_whole(_read_index(tables, handle, key.name, fragments)))
    merged = merge_small(choices, merge_vector_indexes)
    return KeptVectors(tuple(place_part(each, layout) for each in merged), layout, number)


def _read_index(
    tables: TableStorage, handle: TableHandle, name: str, fragments: Sequence[Fragment]
) -> VectorIndex:
    rows, components = tables.search.read_vectors(handle, name, fragments)
    note(f"read the vectors of {name}", rows.num_rows)
    addresses = [
        make_addresses(number, np.arange(each.physical_rows))
        for number, each in enumerate(fragments)
    ]
    ids = rows.column("id").cast(pa.large_utf8())
    files = [each.files for each in fragments]
    return build_vector_index(ids, components, np.concatenate(addresses), files)
