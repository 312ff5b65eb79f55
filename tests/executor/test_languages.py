"""Full text in other languages: their stems and stop words, and the relevance of their tokens."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.languages import LANGUAGES
from omnigraph.storage.tokens import query_forms
from omnigraph.testing.inside import inside

SCHEMA = 'node Doc { slug: String @key  body: String? @index(language: "LANGUAGE") }'
SEARCH = "query q($t: String) { match { $d: Doc search($d.body, $t) } return { $d.slug as s } }"
RANK = (
    "query q($t: String) { match { $d: Doc } return { $d.slug as s } "
    "order { bm25($d.body, $t) } limit 50 }"
)


@pytest.mark.parametrize(
    ("language", "text", "stems"),
    [
        ("de", "Die Häuser und die Bücher", ["haus", "buch"]),
        ("de", "Straße STRASSE", ["strass", "strass"]),
        ("fr", "les chevaux et les maisons", ["cheval", "maison"]),
        ("es", "los libros de la niña", ["libr", "nin"]),
        ("it", "le ragazze e gli alberi", ["ragazz", "alber"]),
        ("nl", "de boeken en het huis", ["boek", "huis"]),
        ("pt", "os livros e as casas", ["livr", "cas"]),
        ("sv", "böckerna och husen", ["bock", "hus"]),
        ("ru", "книги и дома", ["книг", "дом"]),
        ("none", "The Running of the Häuser", ["the", "running", "of", "the", "hauser"]),
        ("en", "The running of the bulls", ["run", "bull"]),
    ],
)
def test_a_text_has_the_tokens_of_its_language(language: str, text: str, stems: list[str]) -> None:
    assert [form.stem for form in query_forms(text, language)] == stems


STOP_WORDS = {
    "da": "og",
    "de": "und",
    "en": "the",
    "es": "los",
    "fi": "ja",
    "fr": "les",
    "hu": "az",
    "it": "gli",
    "nl": "het",
    "no": "og",
    "pt": "os",
    "ru": "и",
    "sv": "och",
}


def test_every_language_works_and_those_with_stop_words_are_the_documented_ones() -> None:
    for language in LANGUAGES:
        word = STOP_WORDS.get(language, "the")
        kept = [form.surface for form in query_forms(f"{word} 42", language)]
        assert kept == (["42"] if language in STOP_WORDS else [word, "42"]), language


def make(tmp_path: Path, language: str, texts: dict[str, str]) -> og.Graph:
    schema = SCHEMA.replace("LANGUAGE", language)
    graph = og.init(tmp_path / "graph", schema=schema, durability="process", self_care=False)
    records = [
        {"type": "Doc", "data": {"slug": slug, "body": body}} for slug, body in texts.items()
    ]
    graph.load(records, mode="append")
    return graph


def ask(graph: og.Graph, query: str, text: str) -> list[str]:
    return [row["s"] for row in graph.query(query, params={"t": text}).rows()]


WORDS = {
    "de": ["Haus", "Häuser", "Buch", "Bücher", "und", "Straße", "gehen", "ging"],
    "none": ["run", "running", "the", "RUN", "a", "Zoë"],
}


@pytest.mark.parametrize("language", WORDS)
def test_relevance_is_that_of_the_formula_over_the_tokens_of_the_language(
    tmp_path: Path, language: str
) -> None:
    chance = random.Random(2)
    texts = {
        f"n{number:02}": " ".join(chance.choices(WORDS[language], k=chance.randint(1, 6)))
        for number in range(40)
    }
    graph = make(tmp_path, language, texts)

    for query in (" ".join(WORDS[language][:2]), WORDS[language][-1], WORDS[language][2]):
        assert ask(graph, RANK, query) == rank_by_hand(texts, query, language)


def rank_by_hand(texts: dict[str, str], query: str, language: str) -> list[str]:
    documents = {
        slug: Counter(form.stem for form in query_forms(text, language))
        for slug, text in texts.items()
    }
    mean = sum(counts.total() for counts in documents.values()) / len(documents)
    scores = dict.fromkeys(documents, 0.0)
    for form in query_forms(query, language):
        having = sum(form.stem in counts for counts in documents.values())
        idf = math.log1p((len(documents) - having + 0.5) / (having + 0.5))
        for slug, counts in documents.items():
            count = counts[form.stem]
            damping = 1.2 * (0.25 + 0.75 * counts.total() / mean)
            scores[slug] += idf * count * 2.2 / (count + damping)
    found = [slug for slug, score in scores.items() if score > 0]
    return sorted(found, key=lambda slug: (-scores[slug], slug))


def test_a_phrase_is_found_in_the_forms_of_its_language(tmp_path: Path) -> None:
    graph = make(tmp_path, "de", {"a": "die alten Häuser", "b": "Haus der Alten"})
    phrase = SEARCH.replace("search", "match_text")

    assert ask(graph, phrase, "altes Haus") == ["a"]
    assert ask(graph, phrase, "Haus und Alte") == ["b"]


def test_a_change_of_language_holds_from_the_next_search_and_leaves_the_past(
    tmp_path: Path,
) -> None:
    graph = make(tmp_path, "de", {"a": "Die Häuser", "b": "running bulls"})
    before = graph.snapshot().head.commit_id
    assert ask(graph, SEARCH, "Haus") == ["a"]
    assert ask(graph, SEARCH, "run") == []

    graph.apply_schema(SCHEMA.replace("LANGUAGE", "en"))

    assert ask(graph, SEARCH, "Haus") == []
    assert ask(graph, SEARCH, "run") == ["b"]
    past = graph.query(SEARCH, params={"t": "Haus"}, commit=before).rows()
    assert [row["s"] for row in past] == ["a"]
    inside(graph).cache.clear()
    assert ask(graph, SEARCH, "run") == ["b"]
