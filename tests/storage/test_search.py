"""Tokens are those of the tokenizer, whatever the texts; the structure counts them exactly."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import BadRequestError
from omnigraph.storage.location import graph_root
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.tokens import Form, query_forms, tokenize_texts
from tests.executor.searching import Row, State, store


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("The Running of the BULLS", ["run", "bull"]),
        ("because this is his", []),
        ("don't stop", ["don", "t", "stop"]),
        ("snake_case camelCase 3.14", ["snake", "case", "camelcas", "3", "14"]),
        ("Crème brûlée, naïve", ["creme", "brule", "naiv"]),
        ("re\u0301sume\u0301 résumé resume", ["resum", "resum", "resum"]),
        ("İstanbul ISTANBUL ⑴", ["istanbul", "istanbul", "1"]),
        ("日本語 für Ærø", ["日本語", "fur", "aero"]),
        ("e\u2014mail\u00a0me x\u200by", ["e", "mail", "x", "y"]),
        ("𝒳²", ["x2"]),
        ("b" * 64, ["b" * 64]),
        ("", []),
        (" \t—", []),
    ],
)
def test_a_text_is_split_folded_and_stemmed(text: str, stems: list[str]) -> None:
    """Stop words go before stemming, long tokens stay, composed and decomposed letters agree."""
    assert [form.stem for form in query_forms(text)] == stems


def test_a_form_keeps_the_word_as_written_beside_its_stem() -> None:
    assert query_forms("Queries") == (Form("queri", "queries"),)


ALPHABET = "aAbZz09 _-.'—é\u0301ßİσς日語Ⓐ𝒳²ि\u200d\u00a0\0\n"
TEXTS = st.one_of(st.text(ALPHABET), st.text(), st.sampled_from(["the running runs", "a an the"]))


def slow_forms(text: str) -> list[Form]:
    """One text and one step at a time, straight from Lance."""
    composed = unicodedata.normalize("NFC", text)
    words = [token.text for token in plain(composed)]
    folded = [
        token.text.lower()
        for word in words
        for token in lance.tokenize(word, stem=False, max_token_length=None)
    ]
    surfaces = ["".join(c for c in one if plain(c)) for one in folded]
    return [Form(stem(surface), surface) for surface in surfaces if surface]


def plain(text: str) -> list[lance.FtsToken]:
    return lance.tokenize(
        text,
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        max_token_length=None,
    )


def stem(surface: str) -> str:
    (token,) = lance.tokenize(surface, remove_stop_words=False, max_token_length=None)
    return token.text


@given(st.lists(st.lists(TEXTS, max_size=4), max_size=3))
def test_a_whole_column_has_the_tokens_of_each_of_its_texts(chunks: list[list[str]]) -> None:
    found = tokenize_texts([pa.array(chunk, pa.utf8()) for chunk in chunks])

    texts = [text for chunk in chunks for text in chunk]
    seen: list[list[Form]] = [[] for _ in texts]
    for form, document in zip(found.form_ids, found.documents, strict=True):
        seen[document].append(found.forms[form])
    assert seen == [slow_forms(text) for text in texts]
    assert found.forms == sorted(set(found.forms))


def test_a_slice_of_a_column_is_read_as_the_slice() -> None:
    texts = pa.array(["hidden", "one two", "three", "hidden"]).slice(1, 2)

    found = tokenize_texts([texts])

    assert [found.forms[form].surface for form in found.form_ids] == ["one", "two", "three"]
    assert found.documents.tolist() == [0, 0, 1]


def test_an_empty_table_has_no_vectors(tmp_path: Path) -> None:
    stored = store(tmp_path, "no index", [Row("a")], gone=["a"])

    row_ids, distances = stored.tables.search.nearest(stored.handle, "vector", [0.0] * 7, limit=3)

    assert (len(row_ids), len(distances)) == (0, 0)


def test_only_vectors_have_distances(tmp_path: Path) -> None:
    stored = store(tmp_path, "no index", [Row("a", "text")])

    with pytest.raises(BadRequestError, match="not a Vector column"):
        stored.tables.search.nearest(stored.handle, "body", [0.0])


@pytest.mark.parametrize("deletes", [3, 6_000])
def test_the_deleted_rows_of_a_file_are_known(tmp_path: Path, deletes: int) -> None:
    """Few are a list in a file of their own; many are kept in a form that only Lance reads."""
    rows = [Row(f"n{number:05}") for number in range(20_000)]
    gone = [row.id for row in rows[:: len(rows) // deletes]]
    stored = store(tmp_path, "no index", rows, gone=gone)

    (fragment,) = stored.tables.reads.fragments(stored.handle)
    found = stored.tables.reads.read_deleted(stored.handle, fragment)

    assert found.tolist() == list(range(0, len(rows), len(rows) // deletes))


def test_an_identity_names_one_version_of_one_table(tmp_path: Path) -> None:
    """Also a table that was deleted and made again in the same place has another one."""
    state: State = "no index"
    first = store(tmp_path / "a", state, [Row("a")])
    second = store(tmp_path / "b", state, [Row("a")])
    older = first.tables.open_at(first.handle.location, 1)

    root = graph_root(str(tmp_path / "a" / "no_index"))
    reopened = TableStorage(root, durability="process")
    same = reopened.open_at(first.handle.location, first.handle.version)
    known = first.handle.identity
    assert known == same.identity
    assert known != older.identity
    assert known[2:3] == second.handle.identity[2:3]
    assert known[3] != second.handle.identity[3]
