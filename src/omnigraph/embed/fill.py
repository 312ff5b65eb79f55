"""Fill: give rows the `@embed` vectors that they lack.

A vector is missing when it is null and its source text has something in it. Vectors that came
with the rows are left as they are. The embedder is asked for only when a vector is missing, so
rows that lack none need no provider and no key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.embed.config import NOT_CONFIGURED
from omnigraph.embed.embedder import Embedder, check_model
from omnigraph.errors import EmbeddingNotConfigured


@dataclass(frozen=True, slots=True)
class EmbedColumn:
    """One `@embed` property: the text that feeds it, its width, the model it records."""

    name: str
    source: str
    dimension: int
    nullable: bool
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Filled:
    """The rows with their vectors, how many were made, and how many had to stay null."""

    rows: pa.Table
    embedded: int
    left_null: int


def fill_vectors(
    rows: pa.Table,
    columns: Sequence[EmbedColumn],
    embedder: Callable[[], Embedder | None],
) -> Filled:
    """Embed what is missing. With no provider an optional vector stays null.

    Raises:
        EmbeddingNotConfigured: A required vector is missing and there is no provider.
        EmbeddingModelMismatch: A property records another model than the embedder's.
        EmbeddingFailed: The provider failed.
    """
    embedded = left_null = 0
    for column in columns:
        missing = _missing(rows, column)
        if len(missing) == 0:
            continue
        maker = embedder()
        if maker is not None:
            rows = _with_vectors(rows, column, missing, maker)
            embedded += len(missing)
        elif column.nullable:
            left_null += len(missing)
        else:
            raise EmbeddingNotConfigured(
                f"{len(missing)} rows lack the required vector '{column.name}': {NOT_CONFIGURED}"
            )
    return Filled(rows, embedded, left_null)


def _missing(rows: pa.Table, column: EmbedColumn) -> np.ndarray:
    """The positions of the rows to embed."""
    if column.source not in rows.column_names:
        return np.zeros(0, np.int64)
    # A text of nothing but spaces has no meaning to embed, and providers refuse it.
    wanted = pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(rows.column(column.source))), 0)
    if column.name in rows.column_names:
        wanted = pc.and_(wanted, pc.is_null(rows.column(column.name)))
    return np.flatnonzero(pc.fill_null(wanted, False).to_numpy())


def _with_vectors(
    rows: pa.Table, column: EmbedColumn, missing: np.ndarray, embedder: Embedder
) -> pa.Table:
    check_model(column.name, column.model, embedder)
    texts = rows.column(column.source).take(pa.array(missing)).combine_chunks().dictionary_encode()
    # Equal texts have equal vectors: each is sent and paid for once.
    vectors = embedder.embed_documents(texts.dictionary.to_pylist(), column.dimension)
    stored = _vector_column(rows, column)
    made = pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.reshape(-1), pa.float32()), column.dimension
    ).cast(stored.type)
    positions = np.arange(rows.num_rows)
    positions[missing] = rows.num_rows + texts.indices.to_numpy()
    filled = pa.concat_arrays([stored, made]).take(pa.array(positions))
    return _set_column(rows, column, filled)


def _vector_column(rows: pa.Table, column: EmbedColumn) -> pa.FixedSizeListArray:
    if column.name in rows.column_names:
        chunked = rows.column(column.name)
        return pa.concat_arrays(chunked.chunks) if chunked.num_chunks else chunked.combine_chunks()
    vector = pa.list_(pa.field("item", pa.float32()), column.dimension)
    return pa.nulls(rows.num_rows, vector)


def _set_column(rows: pa.Table, column: EmbedColumn, values: pa.Array) -> pa.Table:
    if column.name not in rows.column_names:
        return rows.append_column(pa.field(column.name, values.type, column.nullable), values)
    place = rows.column_names.index(column.name)
    return rows.set_column(place, rows.schema.field(place), values)
