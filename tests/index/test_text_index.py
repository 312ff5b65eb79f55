"""Text indexes: every token of every row that has the field, whatever the index is made of."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.index.addressed import make_addresses, split_addresses
from omnigraph.index.merge_texts import merge_text_indexes
from omnigraph.index.text_index import ADDRESS, TextIndex, build_text_index

WORDS = ["graph", "graphs", "whale", "run", "running", "the", "Köln", "boat"]


def build(bodies: dict[str, str], file: str = "f", language: str = "en") -> TextIndex:
    rows = pa.table(
        {
            "id": list(bodies),
            "body": pa.array(bodies.values(), pa.utf8()),
            ADDRESS: make_addresses(0, np.arange(len(bodies))),
        }
    )
    return build_text_index(rows, "body", [(file,)], language)


def counts(index: TextIndex, stem: str) -> dict[str, int]:
    ids = index.ids.to_list()
    documents, amounts = index.counts_of_stem(stem)
    return {ids[document]: int(amount) for document, amount in zip(documents, amounts, strict=True)}


def test_an_index_counts_every_token_of_every_text() -> None:
    index = build({"b": "run running graph", "a": "graph graph", "d": "", "e": "the"})

    assert index.ids.to_list() == ["a", "b", "d", "e"]
    assert index.lengths.all().tolist() == [2, 3, 0, 0]
    assert counts(index, "run") == {"b": 2}
    assert counts(index, "graph") == {"a": 2, "b": 1}
    assert counts(index, "absent") == {}
    assert index.surface_texts == ["graph", "run", "running"]
    assert index.total_length == 5


def test_an_index_knows_the_place_of_every_token() -> None:
    index = build({"a": "the boat and the boats", "b": "boat"})

    documents, places = index.places_of_stem("boat")

    assert sorted(zip(documents.tolist(), places.tolist(), strict=True)) == [(0, 1), (0, 4), (1, 0)]


def test_the_entity_id_can_be_indexed() -> None:
    rows = pa.table({"id": ["one two", "three"], ADDRESS: make_addresses(0, np.arange(2))})

    index = build_text_index(rows, "id", [("f",)], "en")

    assert Counter(index.stems.to_list()) == Counter(["one", "two", "three"])


def test_nothing_has_an_empty_index() -> None:
    index = build({})

    assert (len(index), index.stems.to_list(), index.total_length) == (0, [], 0)
    assert index.find_documents(make_addresses(0, np.arange(3))).tolist() == []


@pytest.mark.parametrize("chunk_rows", [1, 3])
def test_chunks_do_not_change_an_index(monkeypatch: pytest.MonkeyPatch, chunk_rows: int) -> None:
    bodies = {f"n{number}": " ".join(WORDS[: number % 4]) for number in range(10)}
    whole = build(bodies)

    monkeypatch.setattr("omnigraph.index.text_index.TEXT_CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr("omnigraph.storage.tokens.ANALYSED_WORDS", chunk_rows)
    pieced = build(bodies)

    assert_same(pieced, whole)


def assert_same(index: TextIndex, other: TextIndex) -> None:
    for words in ("ids", "stems", "surfaces"):
        assert getattr(index, words).to_list() == getattr(other, words).to_list(), words
    for name, section in index.sections.items():
        assert section.all().tolist() == getattr(other, name).all().tolist(), name
    assert index.total_length == other.total_length


@pytest.mark.parametrize("seed", range(5))
def test_merged_indexes_are_the_index_of_all_their_texts(seed: int) -> None:
    chance = random.Random(seed)
    bodies = {
        f"n{chance.randrange(10**6):06}": " ".join(chance.choices(WORDS, k=chance.randint(0, 6)))
        for _ in range(120)
    }
    names = list(bodies)
    cut = chance.randrange(1, len(names))
    halves = [
        build({name: bodies[name] for name in some}, file)
        for some, file in ((names[:cut], "f"), (names[cut:], "g"))
    ]

    merged = merge_text_indexes([(half, half.fragments) for half in halves])
    whole = build(bodies)

    assert merged.fragments == (("f",), ("g",))
    fragments, rows = split_addresses(merged.addresses.all())
    assert [names[each] for each in rows + fragments * cut] == whole.ids.to_list()
    for words in ("ids", "stems", "surfaces"):
        assert getattr(merged, words).to_list() == getattr(whole, words).to_list(), words
    for name in ("lengths", "offsets", "documents", "counts", "place_offsets", "places"):
        assert getattr(merged, name).all().tolist() == getattr(whole, name).all().tolist(), name


def test_a_merge_leaves_out_fragments_that_are_not_wanted() -> None:
    both = merge_text_indexes(
        [
            (each, each.fragments)
            for each in (build({"b": "boat run"}, "f"), build({"a": "run"}, "g"))
        ]
    )

    kept = merge_text_indexes([(both, [("f",)]), (build({"c": "whale boat"}, "h"), [("h",)])])

    assert kept.fragments == (("f",), ("h",))
    assert kept.ids.to_list() == ["b", "c"]
    assert counts(kept, "run") == {"b": 1}
    assert counts(kept, "boat") == {"b": 1, "c": 1}
    assert kept.total_length == 4
