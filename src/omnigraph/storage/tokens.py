"""Tokens: what full-text search sees of a text.

A text is put in NFC, split on everything that is not alphanumeric, lowercased, relieved of the
stop words of its language, folded to ASCII where letters have an ASCII form (`é` → `e`), and
stemmed (Snowball). A `Form` is one token both ways: `surface` before stemming, which fuzzy
matching compares, and `stem`, which everything else does. A stop word is no token, but it has a
place: the tokens around it are not neighbours.

Which characters separate, the stop words, the folding and the stems are those of Lance's own
tokenizer, asked through `lance.tokenize`. The order of the steps is ours. Lance stems
first, and so keeps the stop word `because` and gives `résumé` and `resume` different stems; it
also drops tokens of 40 bytes and more, which loses hashes and slugs. English is stemmed after
folding; the rules of other languages know their accents, so there the stem is folded.

Nothing here loops over texts or tokens: words are cut from the UTF-8 bytes of a whole column at
once, and only the distinct ones are analysed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.lance import tokenize as lance_tokenize

from omnigraph.dataclass import dataclass
from omnigraph.languages import DEFAULT_LANGUAGE, LANGUAGES, PLAIN

ANALYSED_WORDS = 65_536
_ANCHOR = "anchor"

_WORD_BYTES = np.zeros(256, dtype=bool)
_WORD_BYTES[[byte for byte in range(128) if chr(byte).isalnum()]] = True
# Whether a character beyond ASCII separates is decided later, once per distinct word.
_WORD_BYTES[128:] = True

_SPLIT_ONLY: dict[str, Any] = {
    "lower_case": False,
    "stem": False,
    "remove_stop_words": False,
    "ascii_folding": False,
    "max_token_length": None,
}


@dataclass(frozen=True, slots=True)
class _Analyser:
    """How the words of a language become tokens; `name` is what Lance calls the language."""

    name: str = "English"
    is_plain: bool = False
    stems_folded: bool = False


_ANALYSERS = {code: _Analyser(name) for code, name in LANGUAGES.items()}
_ANALYSERS[DEFAULT_LANGUAGE] = _Analyser(stems_folded=True)
_ANALYSERS[PLAIN] = _Analyser(is_plain=True)


class Form(NamedTuple):
    """One token as it is stored: its stem, and the surface it was written as.

    A tuple, because a column has as many forms as distinct words and they are sorted and hashed.
    """

    stem: str
    surface: str


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Every token of a column: token i is `forms[form_ids[i]]` and stands in `documents[i]`.

    `places[i]` is which word of its document it is, stop words counted.
    """

    forms: list[Form]
    form_ids: np.ndarray
    documents: np.ndarray
    places: np.ndarray


@lru_cache(maxsize=1_024)
def query_forms(text: str, language: str = DEFAULT_LANGUAGE) -> tuple[Form, ...]:
    """The tokens of one query text, in order, repeats kept."""
    return tuple(form for form, _ in query_phrase(text, language))


@lru_cache(maxsize=1_024)
def query_phrase(text: str, language: str = DEFAULT_LANGUAGE) -> tuple[tuple[Form, int], ...]:
    """The tokens of one query text, and which word of it each one is."""
    found = tokenize_texts([pa.array([text], pa.large_utf8())], language)
    forms = [found.forms[form] for form in found.form_ids]
    return tuple(zip(forms, found.places.tolist(), strict=True))


def tokenize_texts(texts: Sequence[pa.Array], language: str = DEFAULT_LANGUAGE) -> TokenizedTexts:
    """Tokenise chunks of a text column without nulls; documents are numbered through."""
    words: list[pa.Array] = []
    documents: list[np.ndarray] = [np.zeros(0, np.int64)]
    first = 0
    for chunk in texts:
        chunk_words, chunk_documents = _words(chunk)
        words.append(chunk_words)
        documents.append(chunk_documents + first)
        first += len(chunk)
    encoded = pa.chunked_array(words, pa.large_utf8()).dictionary_encode().combine_chunks()
    word_ids = encoded.indices.to_numpy(zero_copy_only=False)
    dictionary = encoded.dictionary.to_pylist()
    forms, offsets, form_of_part = _forms_of_words(dictionary, _ANALYSERS[language])
    sources, entries = _runs(offsets, word_ids)
    part_documents = np.concatenate(documents)[sources]
    counts = np.bincount(part_documents, minlength=first)
    places = np.arange(len(part_documents)) - (np.cumsum(counts) - counts)[part_documents]
    form_ids = form_of_part[entries]
    is_token = form_ids >= 0
    return TokenizedTexts(
        forms, form_ids[is_token], part_documents[is_token], places[is_token].astype(np.uint32)
    )


def _words(texts: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Cut texts into runs of word bytes: the words, and the document each one stands in."""
    texts = texts.cast(pa.large_utf8())
    content, offsets = _content(texts)
    if (content >= 128).any():
        content, offsets = _content(pc.utf8_normalize(texts, form="NFC"))
    inside = _WORD_BYTES[content]
    starting = inside.copy()
    starting[1:] &= ~inside[:-1]
    # A word never reaches over the end of its text.
    firsts = offsets[:-1][offsets[:-1] < offsets[1:]]
    starting[firsts] = inside[firsts]
    starts = np.flatnonzero(starting)
    documents = np.searchsorted(offsets, starts, side="right") - 1
    kept = content[inside]
    word_starts = np.flatnonzero(starting[inside])
    ends = pa.py_buffer(np.append(word_starts, len(kept)).astype(np.int64))
    return pa.LargeStringArray.from_buffers(len(word_starts), ends, pa.py_buffer(kept)), documents


def _content(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 bytes of the texts, and where each text starts and ends in them."""
    _, offsets_buffer, data = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, len(texts) + 1, texts.offset * 8)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return content[offsets[0] : offsets[-1]], offsets - offsets[0]


def _runs(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every entry of the runs that `rows` name: its position in `rows`, and in the runs."""
    starts = offsets[rows]
    counts = offsets[rows + 1] - starts
    sources = np.repeat(np.arange(len(rows)), counts)
    position = np.arange(len(sources)) - np.repeat(np.cumsum(counts) - counts, counts)
    return sources, np.repeat(starts, counts) + position


def _forms_of_words(
    words: list[str], analyser: _Analyser
) -> tuple[list[Form], np.ndarray, np.ndarray]:
    """The distinct forms in order, and as runs per word: the form of each part, -1 for none."""
    parts, part_words = _parts(words)
    found = list(_analyse(parts, analyser))
    forms = sorted({form for form in found if form is not None})
    number = {form: at for at, form in enumerate(forms)}
    ids = np.array([-1 if form is None else number[form] for form in found], dtype=np.int64)
    counts = np.bincount(part_words, minlength=len(words))
    return forms, np.concatenate([[0], np.cumsum(counts)]), ids


def _parts(words: list[str]) -> tuple[list[str], np.ndarray]:
    """Split words at characters beyond ASCII that separate; most words are one part."""
    foreign = {character for word in words if not word.isascii() for character in word}
    separators = _separators("".join(sorted(c for c in foreign if not c.isascii())))
    if not separators:
        return words, np.arange(len(words))
    spaces = str.maketrans(dict.fromkeys(separators, " "))
    split = [word.translate(spaces).split(" ") for word in words]
    parts = [(part, word) for word, found in enumerate(split) for part in found if part]
    return [part for part, _ in parts], np.array([word for _, word in parts], dtype=np.int64)


def _separators(characters: str) -> set[str]:
    """Those of the characters that are not alphanumeric."""
    tokens = lance_tokenize("".join(f"a{one}a " for one in characters), **_SPLIT_ONLY)
    whole = {token.text[1:-1] for token in tokens if len(token.text) > 1}
    return set(characters) - whole


def _analyse(parts: list[str], analyser: _Analyser) -> Iterator[Form | None]:
    """The form of each part; None for a stop word."""
    for start in range(0, len(parts), ANALYSED_WORDS):
        some = parts[start : start + ANALYSED_WORDS]
        surfaces = _surfaces(some, analyser)
        for surface, stem in zip(surfaces, _stems(some, surfaces, analyser), strict=True):
            yield Form(stem or surface, surface) if surface else None


def _stems(parts: list[str], surfaces: list[str], analyser: _Analyser) -> list[str]:
    if analyser.is_plain:
        return surfaces
    # A stop word has no surface, and no stem that is used; its letter keeps the words in step.
    words = [surface or "0" for surface in surfaces] if analyser.stems_folded else parts
    return _remove_signs(_filter_words(words, analyser.name, stem=True, remove_stop_words=False))


def _surfaces(parts: list[str], analyser: _Analyser) -> list[str]:
    """The parts lowercased and folded; empty for a stop word."""
    is_plain = analyser.is_plain
    folded = _filter_words(parts, analyser.name, stem=False, remove_stop_words=not is_plain)
    # Lowercase and folding may bring back a capital (`𝒳` → `X`) or a sign (`⑴` → `(1)`).
    return _remove_signs([surface.lower() for surface in folded])


def _remove_signs(words: list[str]) -> list[str]:
    if all(word.isascii() and word.isalnum() for word in words if word):
        return words
    removed = _separators("".join(sorted({c for word in words for c in word})))
    signs = str.maketrans(dict.fromkeys(removed, ""))
    return [word.translate(signs) for word in words]


def _filter_words(
    words: list[str], language: str, *, stem: bool, remove_stop_words: bool
) -> list[str]:
    """Lance's token for each of the words, which are one token each; empty where it drops one."""
    # Positions count from the first token that is kept, so the first one has to be.
    tokens = lance_tokenize(
        " ".join([_ANCHOR, *words]),
        language=language,
        stem=stem,
        remove_stop_words=remove_stop_words,
        max_token_length=None,
    )
    found = [""] * (len(words) + 1)
    for token in tokens:
        found[token.position] = token.text
    return found[1:]
