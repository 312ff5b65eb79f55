"""Full text after commits: searched in parts, with the answers of a version read anew."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.executor.search import match_text, rank
from omnigraph.index import RuntimeCache, TableView, open_tables
from omnigraph.ir.expressions import Bm25, Constant, PropertyRef, TextMatch
from omnigraph.storage.counters import counting
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.tokens import query_forms
from omnigraph.testing.inside import inside
from omnigraph.types import PropertyType, Scalar
from tests.depth import depth

WORDS = ["river", "rivers", "boat", "boats", "stone", "stones", "light", "night", "bridge", "ferry"]
SCHEMA = "node Doc { slug: String @key  body: String? @index  n: I32? }"
BODY = PropertyRef("d", "body", PropertyType(Scalar.STRING, nullable=True))
ASKED = Constant("", BODY.type)
QUERIES = ["river stones", "boat night ferry river", "brigde", "stone"]


def text(chance: random.Random) -> str | None:
    """Short texts of few words: many documents have the same score."""
    if chance.random() < 0.1:
        return None
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 4)))


def answers(graph: og.Graph, kept: RuntimeCache | None = None) -> list[Any]:
    """Which rows match, and which rank best, with their scores; without a cache, from files."""
    tables = inside(graph).store.tables
    if kept is None:
        kept, tables = RuntimeCache(), TableStorage(tables.root)
    view = open_tables(graph.snapshot(), graph.catalog, tables, kept).view("node:Doc")
    ids = view.column("id")
    some = np.arange(0, view.size, 3)
    found: list[Any] = []
    for query in QUERIES:
        for function in ("search", "match_text", "fuzzy"):
            positions = match_text(view, TextMatch(function, BODY, ASKED), query)
            found.append(sorted(ids.take(positions).to_pylist()))
            if function == "search":
                assert found[-1] == search_by_hand(view, query)
        for candidates, limit in ((None, None), (None, 7), (some, 7), (some, None)):
            ranked, scores = rank(view, Bm25(BODY, ASKED), query, candidates, limit)
            found.append((ids.take(ranked).to_pylist(), scores.tolist()))
    return found


def search_by_hand(view: TableView, query: str) -> list[str]:
    """The ids of the texts that have a word of the query, one text after the other."""
    stems = {form.stem for form in query_forms(query)}
    pairs = zip(view.read("id").to_pylist(), view.read("body").to_pylist(), strict=True)
    return sorted(id_ for id_, body in pairs if body and stems & stems_of(body))


@cache
def stems_of(body: str) -> set[str]:
    return {form.stem for form in query_forms(body)}


def fill(graph: og.Graph, chance: random.Random, count: int) -> None:
    records = [
        {"type": "Doc", "data": {"slug": f"d{place:05}", "body": text(chance), "n": place % 10}}
        for place in range(count)
    ]
    graph.load(records, mode="overwrite")


def change(graph: og.Graph, chance: random.Random, count: int) -> None:
    """One random commit."""
    slug = f"d{chance.randrange(count + 20):05}"
    record = {"slug": slug, "body": text(chance), "n": chance.randrange(10)}
    match chance.randrange(6):
        case 0:
            graph.mutate(f'query q() {{ delete Doc where slug = "{slug}" }}')
        case 1:
            some = [
                {"type": "Doc", "data": {**record, "slug": f"e{chance.randrange(99_999):05}"}}
                for _ in range(chance.randint(1, 30))
            ]
            graph.load(some, mode="merge")
        case 2 if chance.random() < 0.3:
            graph.optimize()
        case _:
            graph.load([{"type": "Doc", "data": record}], mode="merge")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(depth(1, 40)))
def test_a_search_after_commits_is_that_of_a_version_read_anew(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    graph = og.init(tmp_path / "graph", schema=SCHEMA, durability="process", self_care=False)
    fill(graph, chance, 200)
    cache = inside(graph).cache
    answers(graph, cache)

    for _ in range(depth(5, 60)):
        for _ in range(chance.randint(1, 3)):
            change(graph, chance, 200)
        assert answers(graph, cache) == answers(graph)


@pytest.mark.parametrize("size", [100, 1_600])
def test_a_commit_of_one_row_counts_the_words_of_one_row(tmp_path: Path, size: int) -> None:
    graph = og.init(tmp_path / "graph", schema=SCHEMA, durability="process", self_care=False)
    fill(graph, random.Random(1), size)
    search = 'query q() { match { $d: Doc search($d.body, "zebra") } return { $d.slug as s } }'
    for _ in range(3):  # what is used more than once is kept
        assert graph.query(search).rows() == []
    graph.mutate('query q() { insert Doc { slug: "new", body: "a zebra at night" } }')

    with counting() as counters:
        found = graph.query(search).rows()

    assert found == [{"s": "new"}]
    assert counters.rows_scanned == 0
