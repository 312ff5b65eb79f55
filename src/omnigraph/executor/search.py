"""Search: which rows match a text, and in which order rows answer a ranking.

Every function takes one table version and gives row ids. Filters come first: a ranking looks at
`candidates` only, so that a limit means the best of the matching rows. The answer depends on the
rows of the version and on nothing else: not on an index, nor on how the rows are laid out.

Relevance is BM25 with k1 = 1.2 and b = 0.75 over the rows that have the field:

    score = Σ over query tokens  idf · count · (k1 + 1) / (count + k1 · (1 - b + b · length / mean))
    idf   = ln(1 + (rows - rows with the token + 0.5) / (rows with the token + 0.5))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequestError
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.keys import FullTextKey, TableId, VectorsKey
from omnigraph.index.notes import note
from omnigraph.ir.expressions import Bm25, Nearest, TextMatch
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text_index import TextIndex
from omnigraph.storage.tokens import query_forms
from omnigraph.storage.vectors import VectorColumn

BM25_K1 = 1.2
BM25_B = 0.75
RRF_K = 60
FUZZY_MAX_EDITS = 2
_MOST_EDITS = 2**31 - 2


def text_match_rows(
    tables: TableStorage,
    handle: TableHandle,
    match: TextMatch,
    query: str,
    max_edits: int | None,
    *,
    cache: RuntimeCache | None = None,
) -> pa.UInt64Array:
    """Row ids, by entity id, of the rows whose text has a token of `query`."""
    text = _text_index(tables, handle, match.target.property, cache)
    match match.function:
        case "search" | "match_text":
            stems = {form.stem for form in query_forms(query)}
            forms = [text.forms_of_stem(stem) for stem in stems]
        case "fuzzy":
            forms = _fuzzy_forms(text, query, max_edits)
        case _:
            assert_never(match.function)
    matching = np.zeros(len(text.row_ids), dtype=bool)
    for run in forms:
        matching[text.postings(run)[0]] = True
    return pa.array(text.row_ids[matching], pa.uint64())


def rank_rows(
    tables: TableStorage,
    handle: TableHandle,
    ranking: Nearest | Bm25,
    query: str | Sequence[float],
    candidates: pa.UInt64Array | None,
    limit: int | None,
    *,
    cache: RuntimeCache | None = None,
) -> tuple[pa.UInt64Array, np.ndarray]:
    """Row ids best first, ties by entity id, and their squared distances or their scores.

    Rows that cannot be ranked are left out: those without a vector, those without any token of
    the query.
    """
    column = ranking.target.property
    match ranking:
        case Nearest():
            if isinstance(query, str):
                raise BadRequestError("nearest needs a vector: embed the text first")
            row_ids, distances = _nearest(tables, handle, column, query, candidates, limit, cache)
            return pa.array(row_ids, pa.uint64()), distances
        case Bm25():
            if not isinstance(query, str):
                raise BadRequestError("bm25 needs a text to search for, not a vector")
            text = _text_index(tables, handle, column, cache)
            return _best_texts(text, query, candidates, limit)
        case _:
            assert_never(ranking)


def fuse(
    first: pa.UInt64Array, second: pa.UInt64Array, k: int = RRF_K
) -> tuple[pa.UInt64Array, np.ndarray]:
    """Reciprocal rank fusion of two rankings: Σ 1 / (k + rank), rank from 1.

    Ties keep the order of `first`, then that of `second`. A row that occurs twice in a ranking
    counts at its best rank.
    """
    if k <= 0:
        raise BadRequestError(f"rrf needs k > 0, not {k}")
    first, second = pc.unique(first), pc.unique(second)
    rows = pc.unique(pa.concat_arrays([first, second]))
    scores = _reciprocal_ranks(rows, first, k) + _reciprocal_ranks(rows, second, k)
    order = np.argsort(-scores, kind="stable")
    return rows.take(pa.array(order)), scores[order]


def _reciprocal_ranks(rows: pa.UInt64Array, ranking: pa.UInt64Array, k: int) -> np.ndarray:
    ranks = pc.index_in(rows, ranking).fill_null(-1).to_numpy() + 1
    return np.where(ranks > 0, 1.0 / (k + ranks), 0.0)


def _text_index(
    tables: TableStorage, handle: TableHandle, column: str, cache: RuntimeCache | None
) -> TextIndex:
    def build() -> TextIndex:
        return tables.search.build_text_index(handle, column)

    if cache is None:
        return build()
    return cache.get(FullTextKey(TableId(*handle.identity), column), build)


def _nearest(
    tables: TableStorage,
    handle: TableHandle,
    column: str,
    query: Sequence[float],
    candidates: pa.UInt64Array | None,
    limit: int | None,
    cache: RuntimeCache | None,
) -> tuple[np.ndarray, np.ndarray]:
    def build() -> VectorColumn:
        return tables.search.read_vectors(handle, column)

    if cache is None or not tables.search.is_worth_keeping(handle, column):
        is_indexed = tables.search.find_index(handle, column) is not None
        note(f"nearest {column} {'by its vector index' if is_indexed else 'by a scan'}")
        return tables.search.nearest(handle, column, query, candidates, limit)
    note(f"nearest {column} among vectors kept in memory")
    cached = cache.get(VectorsKey(TableId(*handle.identity), column), build)
    return cached.nearest(query, candidates, limit)


def _fuzzy_forms(text: TextIndex, query: str, max_edits: int | None) -> list[range]:
    """The forms whose surface is within `max_edits` edits of a token of the query."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    edits = FUZZY_MAX_EDITS if max_edits is None else max_edits
    if edits < 0:
        raise BadRequestError(f"fuzzy needs max_edits of 0 or more, not {edits}")
    edits = min(edits, _MOST_EDITS)
    wanted = {form.surface for form in query_forms(query)}
    near = np.zeros(len(text.surfaces), dtype=bool)
    for word in wanted:
        distances = cdist(
            [word], text.surfaces, scorer=Levenshtein.distance, score_cutoff=edits, dtype=np.uint32
        )
        near |= distances[0] <= edits
    return [range(form, form + 1) for form in np.flatnonzero(near).tolist()]


def _best_texts(
    text: TextIndex, query: str, candidates: pa.UInt64Array | None, limit: int | None
) -> tuple[pa.UInt64Array, np.ndarray]:
    scores = _bm25(text, [form.stem for form in query_forms(query)])
    # Every token of the query that a document has adds more than nothing.
    documents = np.flatnonzero(scores)
    if candidates is not None:
        wanted = pc.is_in(pa.array(text.row_ids[documents], pa.uint64()), candidates)
        documents = documents[wanted.to_numpy(zero_copy_only=False)]
    found = scores[documents]
    # Documents are numbered by entity id, so a stable sort breaks ties by it.
    order = np.argsort(-found, kind="stable")[:limit]
    return pa.array(text.row_ids[documents[order]], pa.uint64()), found[order]


def _bm25(text: TextIndex, stems: list[str]) -> np.ndarray:
    """The score of every document; 0 exactly where it has no token of the query."""
    rows = len(text.row_ids)
    scores = np.zeros(rows)
    mean_length = text.lengths.sum() / max(rows, 1)
    for stem in stems:
        documents, counts = text.counts_of_stem(stem)
        idf = np.log1p((rows - len(documents) + 0.5) / (len(documents) + 0.5))
        damping = BM25_K1 * (1 - BM25_B + BM25_B * text.lengths[documents] / mean_length)
        scores[documents] += idf * counts * (BM25_K1 + 1) / (counts + damping)
    return scores
