"""Texts: what full-text search sees of a batch of texts, without an index.

A task counts the words of its own rows. Relevance needs numbers over all rows, which a first pass
brings together: `TextTotals`, a few numbers for each task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.executor.search import find_near, score_token
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.languages import DEFAULT_LANGUAGE
from omnigraph.storage.tokens import TokenizedTexts, query_forms, tokenize_texts


@dataclass(frozen=True, slots=True)
class TextTotals:
    """Over all rows that have the text: how many, their words, and the rows with each stem."""

    rows: int
    words: int
    having: tuple[int, ...]


def match_texts(texts: pa.Array, query: str, *, is_fuzzy: bool, edits: int | None) -> BoolArray:
    """Which texts have a token of the query, or with `is_fuzzy` one near it."""
    answer = np.zeros(len(texts), dtype=bool)
    present, found = _tokenize(texts)
    if is_fuzzy:
        is_wanted = find_near(
            [form.surface for form in found.forms], query, edits, DEFAULT_LANGUAGE
        )
    else:
        stems = {form.stem for form in query_forms(query)}
        is_wanted = np.array([form.stem in stems for form in found.forms], dtype=bool)
    answer[present[found.documents[is_wanted[found.form_ids]]]] = True
    return answer


def count_texts(texts: pa.Array, stems: Sequence[str]) -> TextTotals:
    """The totals of one batch."""
    present, found = _tokenize(texts)
    counts = _counts_by_stem(found, stems, len(present))
    return TextTotals(
        len(present), len(found.documents), tuple(int(np.count_nonzero(each)) for each in counts)
    )


def score_texts(texts: pa.Array, stems: Sequence[str], totals: TextTotals) -> np.ndarray:
    """The relevance of each text; 0 exactly where it has no token of the query."""
    present, found = _tokenize(texts)
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


def _tokenize(texts: pa.Array) -> tuple[IntArray, TokenizedTexts]:
    """Where there is a text, and the tokens of those texts."""
    present = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    return present, tokenize_texts([texts.drop_null().cast(pa.large_utf8())])


def _counts_by_stem(found: TokenizedTexts, stems: Sequence[str], size: int) -> Iterator[np.ndarray]:
    for stem in stems:
        is_wanted = np.array([form.stem == stem for form in found.forms], dtype=bool)
        yield np.bincount(found.documents[is_wanted[found.form_ids]], minlength=size)
