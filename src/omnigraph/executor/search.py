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
from omnigraph.index.arrays import IntArray
from omnigraph.index.cache import RuntimeCache
from omnigraph.index.full_text import FullText, TextPart, read_full_text
from omnigraph.index.keys import TableId, VectorsKey
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
    text = read_full_text(tables, handle, match.target.property, cache)
    found = [_matching(part, match, query, max_edits) for part in text.parts]
    return _sort_by_id(text, found)


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
            text = read_full_text(tables, handle, column, cache)
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


def _matching(part: TextPart, match: TextMatch, query: str, max_edits: int | None) -> IntArray:
    """The documents of a part that have a token of the query."""
    index = part.index
    match match.function:
        case "search" | "match_text":
            stems = {form.stem for form in query_forms(query)}
            forms = [index.forms_of_stem(stem) for stem in stems]
        case "fuzzy":
            forms = _fuzzy_forms(index, query, max_edits)
        case _:
            assert_never(match.function)
    matching = np.zeros(len(index.row_ids), dtype=bool)
    for run in forms:
        matching[index.postings(run)[0]] = True
    return part.keep_live(np.flatnonzero(matching))


def _sort_by_id(text: FullText, found: Sequence[IntArray]) -> pa.UInt64Array:
    """The row ids of documents of each part, in the order of their entity ids."""
    row_ids, ids = _name_documents(text, found)
    if len(text.parts) > 1:
        row_ids = row_ids.take(pc.sort_indices(ids))
    return row_ids


def _name_documents(
    text: FullText, found: Sequence[IntArray]
) -> tuple[pa.UInt64Array, pa.ChunkedArray]:
    """Row ids and entity ids of documents of each part. Within a part they are in order."""
    pairs = list(zip(text.parts, found, strict=True))
    row_ids = [part.index.row_ids[documents] for part, documents in pairs]
    ids = [part.index.ids.take(pa.array(documents)) for part, documents in pairs]
    chunks = [chunk for each in ids for chunk in each.chunks]
    return (
        pa.array(np.concatenate([np.zeros(0, np.uint64), *row_ids])),
        pa.chunked_array(chunks, pa.large_utf8()),
    )


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
    text: FullText, query: str, candidates: pa.UInt64Array | None, limit: int | None
) -> tuple[pa.UInt64Array, np.ndarray]:
    scores = _bm25(text, [form.stem for form in query_forms(query)])
    # Every token of the query that a document has adds more than nothing.
    documents = [np.flatnonzero(each) for each in scores]
    if candidates is not None:
        documents = [
            _keep_candidates(part, found, candidates)
            for part, found in zip(text.parts, documents, strict=True)
        ]
    found = [score[each] for score, each in zip(scores, documents, strict=True)]
    if len(found) == 1:
        # Documents are numbered by entity id, so a stable sort breaks ties by it.
        order = np.argsort(-found[0], kind="stable")[:limit]
        return pa.array(text.parts[0].index.row_ids[documents[0][order]]), found[0][order]
    every = np.concatenate([np.zeros(0), *found])
    if limit is not None and 0 < limit < len(every):
        least = np.partition(every, len(every) - limit)[len(every) - limit]
        documents = [each[score >= least] for each, score in zip(documents, found, strict=True)]
        every = every[every >= least]
    row_ids, ids = _name_documents(text, documents)
    ranked = pc.sort_indices(
        pa.table({"score": every, "id": ids}),
        sort_keys=[("score", "descending"), ("id", "ascending")],
    ).slice(0, limit)
    return row_ids.take(ranked), every[ranked.to_numpy()]


def _keep_candidates(part: TextPart, documents: IntArray, candidates: pa.UInt64Array) -> IntArray:
    wanted = pc.is_in(pa.array(part.index.row_ids[documents], pa.uint64()), candidates)
    return np.compress(wanted.to_numpy(zero_copy_only=False), documents)


def _bm25(text: FullText, stems: list[str]) -> list[np.ndarray]:
    """The score of every document of each part; 0 exactly where it has no token of the query."""
    rows, mean_length = text.rows, text.mean_length
    scores = [np.zeros(len(part.index.row_ids)) for part in text.parts]
    for stem in stems:
        counted = [part.counts_of_stem(stem) for part in text.parts]
        having = sum(len(documents) for documents, _ in counted)
        idf = np.log1p((rows - having + 0.5) / (having + 0.5))
        for part, score, (documents, counts) in zip(text.parts, scores, counted, strict=True):
            lengths = part.index.lengths[documents]
            damping = BM25_K1 * (1 - BM25_B + BM25_B * lengths / mean_length)
            score[documents] += idf * counts * (BM25_K1 + 1) / (counts + damping)
    return scores
