"""Text index: the tokens of a text column, counted, of all rows of a table version or of some.

Why full text does not ask Lance's inverted index. Measured on 14.0.2: for the same rows the order
by score differs between no index, an index with an unindexed tail, and an index whose rows were
partly deleted; fuzzy queries miss words that stand in the unindexed tail only; stop words are
looked for after stemming. A query may not change its answer because an index was built, so the
words are counted here, from the rows and nothing else. The structure never changes: it is kept and
evicted, never invalidated. What a later version changed is counted apart, see `index/full_text.py`.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.storage.projection import ROW_ID
from omnigraph.storage.tokens import Form, tokenize_texts

TEXT_CHUNK_ROWS = 8_192


@dataclass(frozen=True, slots=True)
class TextIndex:
    """Where every token of one text column stands.

    Documents are the rows that have the field, numbered in the order of their entity ids, so
    that a stable sort breaks ties by id. The postings of form i are `documents` and `counts`
    from `offsets[i]` to `offsets[i + 1]`; forms are sorted, so those of one stem are neighbours.
    `by_row_id` are the documents in the order of their row ids.
    """

    ids: pa.ChunkedArray = field(repr=False)
    row_ids: np.ndarray
    by_row_id: np.ndarray
    lengths: np.ndarray
    stems: tuple[str, ...] = field(repr=False)
    surfaces: tuple[str, ...] = field(repr=False)
    offsets: np.ndarray
    documents: np.ndarray
    counts: np.ndarray
    nbytes: int

    def find_documents(self, row_ids: np.ndarray) -> np.ndarray:
        """The documents that these rows are; rows that are none are left out."""
        if len(self.row_ids) == 0:
            return np.zeros(0, dtype=np.int64)
        places = np.searchsorted(self.row_ids, row_ids, sorter=self.by_row_id)
        found: np.ndarray = self.by_row_id[np.minimum(places, len(self.row_ids) - 1)]
        is_one: np.ndarray = self.row_ids[found] == row_ids
        return np.compress(is_one, found)

    def forms_of_stem(self, stem: str) -> range:
        """The forms with exactly this stem."""
        return range(bisect_left(self.stems, stem), bisect_right(self.stems, stem))

    def postings(self, forms: range) -> tuple[np.ndarray, np.ndarray]:
        """Documents and counts of neighbouring forms; a document occurs once per form."""
        first, last = self.offsets[forms.start], self.offsets[forms.stop]
        return self.documents[first:last], self.counts[first:last]

    def counts_of_stem(self, stem: str) -> tuple[np.ndarray, np.ndarray]:
        """The documents that have the stem, each once, and how often they have it."""
        forms = self.forms_of_stem(stem)
        documents, counts = self.postings(forms)
        if len(forms) < 2:
            return documents, counts
        distinct, inverse = np.unique(documents, return_inverse=True)
        return distinct, np.bincount(inverse, weights=counts)


def text_columns(column: str) -> list[str]:
    """The columns that an index is built from, beside the row id; the text may be the id."""
    return list(dict.fromkeys(["id", column]))


def build_text_index(rows: pa.Table, column: str) -> TextIndex:
    """Count the tokens of one text column. `rows` have it, `id` and `_rowid`."""
    rows = _sort_by_id(rows, column)
    found = tokenize_texts(rows.column(column).chunks)
    documents = rows.num_rows
    # One sort groups the tokens by form and, within a form, by document.
    keys = found.form_ids * np.int64(max(documents, 1)) + found.documents
    pairs, counts = np.unique(keys, return_counts=True)
    pair_forms, pair_documents = np.divmod(pairs, max(documents, 1))
    offsets = np.searchsorted(pair_forms, np.arange(len(found.forms) + 1))
    row_ids = np.asarray(rows.column(ROW_ID).to_numpy(), dtype=np.uint64)
    arrays = (
        row_ids,
        np.argsort(row_ids),
        np.bincount(found.documents, minlength=documents).astype(np.uint32),
        offsets.astype(np.int64),
        pair_documents.astype(np.uint32),
        counts.astype(np.uint32),
    )
    return _text_index(rows.column("id").cast(pa.large_utf8()), found.forms, *arrays)


def _sort_by_id(rows: pa.Table, column: str) -> pa.Table:
    """The rows in the order of their entity ids, in bounded chunks."""
    order = pc.sort_indices(rows, sort_keys=[("id", "ascending")])
    # A column may hold more than the 2 GiB that small offsets reach.
    texts = rows.column(column).cast(pa.large_utf8())
    rows = rows.set_column(rows.column_names.index(column), column, texts)
    parts = [
        rows.take(order.slice(start, TEXT_CHUNK_ROWS)).combine_chunks()
        for start in range(0, len(order), TEXT_CHUNK_ROWS)
    ]
    return pa.concat_tables(parts) if parts else rows


def _text_index(ids: pa.ChunkedArray, forms: Sequence[Form], *arrays: np.ndarray) -> TextIndex:
    row_ids, by_row_id, lengths, offsets, documents, counts = arrays
    stems = tuple(form.stem for form in forms)
    surfaces = tuple(form.surface for form in forms)
    words = sum(map(sys.getsizeof, stems)) + sum(map(sys.getsizeof, surfaces)) + 16 * len(forms)
    nbytes = words + ids.nbytes + sum(array.nbytes for array in arrays)
    return TextIndex(
        ids, row_ids, by_row_id, lengths, stems, surfaces, offsets, documents, counts, nbytes
    )
