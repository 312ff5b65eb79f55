"""Relevance: the texts that answer a query best, by BM25 with k1 = 1.2 and b = 0.75.

    score = Σ over query tokens  idf · count · (k1 + 1) / (count + k1 · (1 - b + b · length / mean))
    idf   = ln(1 + (rows - rows with the token + 0.5) / (rows with the token + 0.5))

The rows are those that have the field; every number is a sum over the parts of a version, less its
deleted rows. With a limit, documents that cannot be among the best are not scored: tokens are taken
by what they can add at most, and once what is left cannot lift a document that has none of them to
the best so far, only documents that were seen are looked up in the rest. The scores of those that
are left are added up in the order of the query, so pruning changes no bit of an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.index import Selection
from omnigraph.index.arrays import IntArray
from omnigraph.index.full_text import FullText, counts_of_stem
from omnigraph.index.parts import Part
from omnigraph.index.text_index import TextIndex

K1 = 1.2
B = 0.75
BLOCKS = 1_024
"""Of how many blocks of documents the highest score is looked at."""
LOOK_UP_COST = 8
"""How many postings are added up in the time that a document is looked up in them."""
_SLACK = 1 + 1e-9
"""Sums of the same numbers in another order differ by less."""


@dataclass(frozen=True, slots=True, eq=False)
class _Token:
    """A stem of the query: its postings in each part, and what it adds to a score at most."""

    postings: tuple[tuple[IntArray, np.ndarray], ...]
    having: int
    most: float


def find_best(
    text: FullText, stems: Sequence[str], wanted: Selection | None, limit: int | None
) -> tuple[IntArray, np.ndarray]:
    """The positions with the best scores, ties by entity id, and the scores."""
    tokens = {stem: _read_token(text, stem) for stem in dict.fromkeys(stems)}
    seen = _find_documents(text, tokens, Counter(stems), wanted, limit)
    found = [
        _best_of_part(text, number, [tokens[stem] for stem in stems], documents, limit)
        for number, documents in enumerate(seen)
    ]
    if len(found) == 1:
        return text.parts[0].positions(found[0][0]), found[0][1]
    pairs = list(zip(text.parts, [documents for documents, _ in found], strict=True))
    none = np.zeros(0, dtype=np.int64)
    positions = np.concatenate([none, *(part.positions(each) for part, each in pairs)])
    scores = np.concatenate([np.zeros(0), *(each for _, each in found)])
    ids = [part.index.ids.take(each) for part, each in pairs]
    ranked = pc.sort_indices(
        pa.table({"score": scores, "id": pa.chunked_array(ids, pa.large_utf8())}),
        sort_keys=[("score", "descending"), ("id", "ascending")],
    ).to_numpy()[:limit]
    return positions[ranked], scores[ranked]


def score_token(
    counts: np.ndarray, lengths: np.ndarray, rows: int, having: int, mean_length: float
) -> np.ndarray:
    """What one token of the query is worth to the documents that have it, `having` of `rows`."""
    idf = np.log1p((rows - having + 0.5) / (having + 0.5))
    damping = K1 * (1 - B + B * lengths / mean_length)
    scores: np.ndarray = idf * counts * (K1 + 1) / (counts + damping)
    return scores


def _read_token(text: FullText, stem: str) -> _Token:
    postings = tuple(counts_of_stem(part, stem) for part in text.parts)
    having = sum(len(documents) for documents, _ in postings)
    highest = max((int(counts.max()) for _, counts in postings if len(counts)), default=0)
    if highest == 0:
        return _Token(postings, 0, 0.0)
    # A text is at least as long as its count of a token, and more of them are worth more.
    highest_count = np.array([highest], dtype=np.float64)
    most = score_token(highest_count, highest_count, text.rows, having, text.mean_length)
    return _Token(postings, having, float(most[0]))


def _find_documents(
    text: FullText,
    tokens: dict[str, _Token],
    times: Counter[str],
    wanted: Selection | None,
    limit: int | None,
) -> list[IntArray]:
    """Of each part the documents, ascending, that can be among the best."""
    by_worth = sorted(tokens, key=lambda stem: tokens[stem].most * times[stem], reverse=True)
    totals = [np.zeros(len(part.index)) for part in text.parts]
    least, rest = 0.0, sum(tokens[stem].most * times[stem] for stem in by_worth)
    for stem in by_worth:
        if limit is not None and rest * _SLACK < least:
            # Whether to look up the documents that are left, or to add up all that have the token.
            left = sum(int(np.count_nonzero(each >= (least - rest) / _SLACK)) for each in totals)
            if left * LOOK_UP_COST < tokens[stem].having:
                break
        rest -= tokens[stem].most * times[stem]
        for number, part in enumerate(text.parts):
            documents, counts = tokens[stem].postings[number]
            if wanted is not None and len(documents):
                is_wanted = wanted.contains(part.positions(documents))
                documents, counts = documents[is_wanted], counts[is_wanted]
            scores = _score(text, part, tokens[stem], documents, counts)
            totals[number][documents] += scores * times[stem]
        if limit is not None:
            least = _find_least(totals, limit)
    bound = (least - max(rest, 0.0)) / _SLACK
    # Every token of the query that a document has adds more than nothing.
    return [np.flatnonzero(each >= bound if bound > 0 else each > 0) for each in totals]


def _find_least(totals: Sequence[np.ndarray], limit: int) -> float:
    """A score that at least `limit` documents have, as high as is quickly found; 0 for none."""
    best = [_highest(each, limit) for each in totals]
    scores = np.concatenate([np.zeros(0), *best])
    if limit <= 0 or len(scores) < limit:
        return 0.0
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit])


def _highest(scores: np.ndarray, limit: int) -> np.ndarray:
    """Scores of different documents, the highest of each block of them."""
    width = len(scores) // BLOCKS
    if width < 2 or limit > BLOCKS:
        return scores
    cut = width * BLOCKS
    highest: np.ndarray = scores[:cut].reshape(BLOCKS, width).max(axis=1)
    return np.concatenate([highest, scores[cut:]])


def _best_of_part(
    text: FullText, number: int, tokens: Sequence[_Token], documents: IntArray, limit: int | None
) -> tuple[IntArray, np.ndarray]:
    """The best documents of a part, which are numbered by entity id: the first wins a tie."""
    part = text.parts[number]
    scores = np.zeros(len(documents))
    for token in tokens:
        places, counts = _look_up(*token.postings[number], documents)
        scores[places] += _score(text, part, token, documents[places], counts)
    order = np.argsort(-scores, kind="stable")[:limit]
    return documents[order], scores[order]


def _look_up(
    having: IntArray, counts: np.ndarray, documents: IntArray
) -> tuple[IntArray, np.ndarray]:
    """Which of these documents have a token, and how often; both lists are ascending."""
    if len(having) == 0:
        return np.zeros(0, dtype=np.int64), counts
    at = np.minimum(np.searchsorted(having, documents), len(having) - 1)
    places = np.flatnonzero(having[at] == documents)
    return places, counts[at[places]]


def _score(
    text: FullText, part: Part[TextIndex], token: _Token, documents: IntArray, counts: np.ndarray
) -> np.ndarray:
    lengths = part.index.lengths.at(documents)
    return score_token(counts, lengths, text.rows, token.having, text.mean_length)
