"""Texts: what full-text search sees of a batch of texts, without an index.

A task counts the words of its own rows. Relevance needs numbers over all rows, which a first pass
brings together: `TextTotals`, a few numbers for each task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.executor.phrases import find_phrase
from omnigraph.executor.relevance import score_token
from omnigraph.executor.search import find_near
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.ir.expressions import TextMatch
from omnigraph.storage.tokens import TokenizedTexts, query_forms, query_phrase, tokenize_texts


@dataclass(frozen=True, slots=True)
class TextTotals:
    """Over all rows that have the text: how many, their words, and the rows with each stem."""

    rows: int
    words: int
    having: tuple[int, ...]


def match_texts(texts: pa.Array, match: TextMatch, query: str, edits: int | None) -> BoolArray:
    """Which texts match the query."""
    answer = np.zeros(len(texts), dtype=bool)
    present, found = _tokenize(texts, match.language)
    answer[present[_find_documents(found, match, query, edits)]] = True
    return answer


def _find_documents(
    found: TokenizedTexts, match: TextMatch, query: str, edits: int | None
) -> IntArray:
    match match.function:
        case "match_text":
            phrase = query_phrase(query, match.language)
            return find_phrase(lambda stem: _places_of_stem(found, stem), phrase)
        case "search":
            stems = {form.stem for form in query_forms(query, match.language)}
            is_wanted = np.array([form.stem in stems for form in found.forms], dtype=bool)
        case "fuzzy":
            surfaces = [form.surface for form in found.forms]
            is_wanted = find_near(surfaces, query, edits, match.language)
        case _:
            assert_never(match.function)
    documents: IntArray = found.documents[is_wanted[found.form_ids]]
    return documents


def _places_of_stem(found: TokenizedTexts, stem: str) -> tuple[IntArray, np.ndarray]:
    is_wanted = np.array([form.stem == stem for form in found.forms], dtype=bool)[found.form_ids]
    return found.documents[is_wanted], found.places[is_wanted]


def count_texts(texts: pa.Array, stems: Sequence[str], language: str) -> TextTotals:
    """The totals of one batch."""
    present, found = _tokenize(texts, language)
    counts = _counts_by_stem(found, stems, len(present))
    return TextTotals(
        len(present), len(found.documents), tuple(int(np.count_nonzero(each)) for each in counts)
    )


def score_texts(
    texts: pa.Array, stems: Sequence[str], totals: TextTotals, language: str
) -> np.ndarray:
    """The relevance of each text; 0 exactly where it has no token of the query."""
    present, found = _tokenize(texts, language)
    lengths = np.bincount(found.documents, minlength=len(present)).astype(np.uint32)
    scores = np.zeros(len(present))
    mean_length = totals.words / totals.rows if totals.rows else 0.0
    counted = _counts_by_stem(found, stems, len(present))
    for having, counts in zip(totals.having, counted, strict=True):
        found_in = np.flatnonzero(counts)
        scores[found_in] += score_token(
            counts[found_in], lengths[found_in], totals.rows, having, mean_length
        )
    answer = np.zeros(len(texts))
    answer[present] = scores
    return answer


def _tokenize(texts: pa.Array, language: str) -> tuple[IntArray, TokenizedTexts]:
    """Where there is a text, and the tokens of those texts."""
    present = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    return present, tokenize_texts([texts.drop_null().cast(pa.large_utf8())], language)


def _counts_by_stem(found: TokenizedTexts, stems: Sequence[str], size: int) -> Iterator[np.ndarray]:
    for stem in stems:
        is_wanted = np.array([form.stem == stem for form in found.forms], dtype=bool)
        yield np.bincount(found.documents[is_wanted[found.form_ids]], minlength=size)
