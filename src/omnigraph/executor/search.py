"""Search: which rows match a text, and in which order rows answer a ranking.

Every function takes one table and gives positions. Filters come first: a ranking looks at
`candidates` only, so that a limit means the best of the matching rows. The answer depends on the
rows of the version and on nothing else: not on an index, nor on how the rows are laid out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequestError
from omnigraph.executor.phrases import find_phrase
from omnigraph.executor.relevance import find_best
from omnigraph.index import Selection, TableView
from omnigraph.index.arrays import IntArray
from omnigraph.index.full_text import FullText
from omnigraph.index.parts import Part
from omnigraph.index.text_index import TextIndex
from omnigraph.ir.expressions import Bm25, Nearest, TextMatch
from omnigraph.storage.tokens import query_forms, query_phrase

RRF_K = 60
FUZZY_MAX_EDITS = 2
_MOST_EDITS = 2**31 - 2
_NONE: IntArray = np.empty(0, dtype=np.int64)


def match_text(
    view: TableView,
    match: TextMatch,
    query: str,
    max_edits: int | None = None,
) -> IntArray:
    """The positions, in no order, of the rows whose text has a token of `query`, or all of it."""

    def ask(text: FullText) -> IntArray:
        found = [_matching(part, match, query, max_edits) for part in text.parts]
        return _to_positions(text, found)

    return view.full_text(match.target.property, match.language).ask(ask)


def rank(
    view: TableView,
    ranking: Nearest | Bm25,
    query: str | Sequence[float],
    candidates: IntArray | None,
    limit: int | None,
) -> tuple[IntArray, np.ndarray]:
    """Positions best first, ties by entity id, and their squared distances or their scores.

    Rows that cannot be ranked are left out: those without a vector, those without any token of
    the query.
    """
    column = ranking.target.property
    match ranking:
        case Nearest():
            if isinstance(query, str):
                raise BadRequestError("nearest needs a vector: embed the text first")
            return view.nearest(column, query, candidates, limit)
        case Bm25():
            if not isinstance(query, str):
                raise BadRequestError("bm25 needs a text to search for, not a vector")
            stems = [form.stem for form in query_forms(query, ranking.language)]
            wanted = None if candidates is None else Selection(view.size, positions=candidates)
            return view.full_text(column, ranking.language).ask(
                lambda text: find_best(text, stems, wanted, limit)
            )
        case _:
            assert_never(ranking)


def fuse(first: IntArray, second: IntArray, k: int = RRF_K) -> tuple[IntArray, np.ndarray]:
    """Reciprocal rank fusion of two rankings: Σ 1 / (k + rank), rank from 1.

    Ties keep the order of `first`, then that of `second`. A row that occurs twice in a ranking
    counts at its best rank.
    """
    check_fusion_constant(k)
    rankings = [pc.unique(pa.array(each, pa.int64())) for each in (first, second)]
    rows = pc.unique(pa.concat_arrays(rankings))
    scores = _reciprocal_ranks(rows, rankings[0], k) + _reciprocal_ranks(rows, rankings[1], k)
    order = np.argsort(-scores, kind="stable")
    return rows.to_numpy()[order], scores[order]


def check_fusion_constant(k: int) -> None:
    """Refuse a constant that would divide by nothing."""
    if k <= 0:
        raise BadRequestError(f"rrf needs k > 0, not {k}")


def _reciprocal_ranks(rows: pa.Int64Array, ranking: pa.Int64Array, k: int) -> np.ndarray:
    ranks = pc.index_in(rows, ranking).fill_null(-1).to_numpy() + 1
    return np.where(ranks > 0, 1.0 / (k + ranks), 0.0)


def _matching(
    part: Part[TextIndex], match: TextMatch, query: str, max_edits: int | None
) -> IntArray:
    """The documents of a part that match the query."""
    index = part.index
    match match.function:
        case "match_text":
            phrase = query_phrase(query, match.language)
            return part.keep_live(find_phrase(index.places_of_stem, phrase))
        case "search":
            stems = {form.stem for form in query_forms(query, match.language)}
            forms = [index.forms_of_stem(stem) for stem in stems]
        case "fuzzy":
            forms = _fuzzy_forms(index, query, max_edits, match.language)
        case _:
            assert_never(match.function)
    matching = np.zeros(len(index), dtype=bool)
    for run in forms:
        matching[index.postings(run)[0]] = True
    return part.keep_live(np.flatnonzero(matching))


def _to_positions(text: FullText, found: Sequence[IntArray]) -> IntArray:
    """The positions of documents of each part."""
    pairs = zip(text.parts, found, strict=True)
    return np.concatenate([_NONE, *(part.positions(documents) for part, documents in pairs)])


def _fuzzy_forms(text: TextIndex, query: str, max_edits: int | None, language: str) -> list[range]:
    """The forms whose surface is within `max_edits` edits of a token of the query."""
    near = find_near(text.surface_texts, query, max_edits, language)
    return [range(form, form + 1) for form in np.flatnonzero(near).tolist()]


def find_near(
    surfaces: Sequence[str], query: str, max_edits: int | None, language: str
) -> np.ndarray:
    """Which surfaces are within `max_edits` edits of a token of the query."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    edits = FUZZY_MAX_EDITS if max_edits is None else max_edits
    if edits < 0:
        raise BadRequestError(f"fuzzy needs max_edits of 0 or more, not {edits}")
    edits = min(edits, _MOST_EDITS)
    wanted = {form.surface for form in query_forms(query, language)}
    near = np.zeros(len(surfaces), dtype=bool)
    for word in wanted:
        distances = cdist(
            [word], surfaces, scorer=Levenshtein.distance, score_cutoff=edits, dtype=np.uint32
        )
        near |= distances[0] <= edits
    return near
