"""Fill: give rows the `@embed` vectors that they lack.

A vector is missing when it is null and its source text has something in it. Vectors that came
with the rows are left as they are. The embedder is asked for only when a vector is missing, so
rows that lack none need no provider and no key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.embed.config import LOCAL_MODEL, NOT_CONFIGURED
from omnigraph.embed.embedder import Embedder, check_model, model_name
from omnigraph.embed.source import EmbedColumn, explain_missing, local_embedder
from omnigraph.errors import EmbeddingNotConfigured

FindEmbedder: TypeAlias = Callable[[EmbedColumn], Embedder | None]

SAMPLE_ROWS = 8
"""So many vectors are looked at to tell whether the local model made them."""

_COSINE_MIN = 0.999


@dataclass(frozen=True, slots=True)
class FillCount:
    """What became of the vectors of one property.

    `model` made those that were made, and those that came with the rows if they are known to be
    its own; `foreign` counts the vectors that came with the rows and are not.
    """

    embedded: int = 0
    left_null: int = 0
    foreign: int = 0
    model: str | None = None

    def __add__(self, other: FillCount) -> FillCount:
        return FillCount(
            self.embedded + other.embedded,
            self.left_null + other.left_null,
            self.foreign + other.foreign,
            self.model or other.model,
        )


@dataclass(frozen=True, slots=True)
class Filled:
    """The rows with their vectors, and what became of each property."""

    rows: pa.Table
    counts: dict[str, FillCount]

    @property
    def embedded(self) -> int:
        return sum(count.embedded for count in self.counts.values())

    @property
    def left_null(self) -> int:
        return sum(count.left_null for count in self.counts.values())


def fill_vectors(
    rows: pa.Table, columns: Sequence[EmbedColumn], find_embedder: FindEmbedder
) -> Filled:
    """Embed what is missing. With no provider an optional vector stays null.

    Raises:
        EmbeddingNotConfigured: A required vector is missing and there is no provider.
        EmbeddingModelMismatch: A property records another model than the embedder's.
        EmbeddingFailed: The provider failed.
    """
    counts: dict[str, FillCount] = {}
    for column in columns:
        given = count_given(rows, column)
        missing = find_missing(rows, column)
        if len(missing) == 0:
            counts[column.name] = given
            continue
        embedder = find_embedder(column)
        if embedder is not None:
            rows = _with_vectors(rows, column, missing, embedder)
            made = FillCount(embedded=len(missing), model=model_name(embedder))
        elif column.nullable:
            made = FillCount(left_null=len(missing))
        else:
            raise EmbeddingNotConfigured(
                f"{len(missing)} rows lack the required vector '{column.name}': "
                f"{explain_missing(column)}, and {NOT_CONFIGURED}"
            )
        counts[column.name] = made + given
    return Filled(rows, counts)


def count_given(rows: pa.Table, column: EmbedColumn) -> FillCount:
    """Count the vectors that came with the rows, told apart by whether `local` made them.

    That is how a graph that was exported and loaded again still knows its model.
    """
    if column.name not in rows.column_names:
        return FillCount()
    vectors = rows.column(column.name)
    given = rows.num_rows - vectors.null_count
    if given == 0:
        return FillCount()
    if column.fits_local and is_made_by_local(rows, column):
        return FillCount(model=LOCAL_MODEL)
    return FillCount(foreign=given)


def is_made_by_local(rows: pa.Table, column: EmbedColumn) -> bool:
    """Whether the first vectors of some rows are those that the local model makes of their texts.

    True as well when there are no vectors.
    """
    if column.source not in rows.column_names:
        return False
    given = rows.filter(pc.is_valid(rows.column(column.name))).slice(0, SAMPLE_ROWS)
    texts = given.column(column.source).to_pylist()
    if not all(text and text.strip() for text in texts):
        return False
    stored = np.array(given.column(column.name).to_pylist(), np.float32)
    if not texts:
        return True
    lengths = np.linalg.norm(stored, axis=1)
    made = local_embedder().embed_documents(texts, column.dimension)
    cosines = np.einsum("ij,ij->i", stored, made) / np.where(lengths > 0, lengths, 1)
    return bool((cosines > _COSINE_MIN).all())


def find_missing(rows: pa.Table, column: EmbedColumn) -> np.ndarray:
    """The positions of the rows that lack a vector and have a text to make it from."""
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
    check_model(column.label, column.model, embedder)
    texts = rows.column(column.source).take(pa.array(missing)).combine_chunks().dictionary_encode()
    # Equal texts have equal vectors: each is sent and paid for once.
    vectors = embedder.embed_documents(texts.dictionary.to_pylist(), column.dimension)
    is_repeated = len(vectors) < len(missing)
    made = vectors[texts.indices.to_numpy()] if is_repeated else vectors
    filled = _put_vectors(_vector_column(rows, column), missing, made)
    return _set_column(rows, column, filled)


def _put_vectors(
    stored: pa.FixedSizeListArray, missing: np.ndarray, made: np.ndarray
) -> pa.FixedSizeListArray:
    """The stored vectors with others put at the positions of those that are missing.

    By rows of a matrix: Arrow takes lists of fixed size number by number.
    """
    if len(missing) == len(stored):
        return pa.FixedSizeListArray.from_arrays(pa.array(made.reshape(-1)), type=stored.type)
    is_null = stored.is_null().to_numpy(zero_copy_only=False).copy()
    matrix = np.zeros((len(stored), stored.type.list_size), np.float32)
    matrix[~is_null] = stored.drop_null().flatten().to_numpy().reshape(-1, matrix.shape[1])
    matrix[missing] = made
    is_null[missing] = False
    return pa.FixedSizeListArray.from_arrays(
        pa.array(matrix.reshape(-1)), type=stored.type, mask=pa.array(is_null)
    )


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
