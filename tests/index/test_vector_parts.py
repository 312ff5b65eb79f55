"""Vectors in memory follow the change: a commit reads no more than it wrote, no answer differs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.executor.search import rank
from omnigraph.index import RuntimeCache, open_tables
from omnigraph.ir.expressions import Constant, Nearest, PropertyRef
from omnigraph.storage.counters import counting
from omnigraph.storage.tables import TableStorage
from omnigraph.testing.inside import inside
from omnigraph.types import PropertyType, Scalar
from tests.depth import depth

WIDTH = 3
SCHEMA = f"node Doc {{ slug: String @key  vec: Vector({WIDTH})?  n: I32? }}"
VECTOR = PropertyRef("d", "vec", PropertyType(Scalar.VECTOR, dimension=WIDTH, nullable=True))
NEAREST = Nearest(VECTOR, Constant("", PropertyType(Scalar.STRING)))


def record(chance: random.Random, slug: str) -> dict[str, Any]:
    """Few distinct vectors, so that many rows tie; some rows have none."""
    vector = None if chance.random() < 0.1 else [chance.randrange(3) for _ in range(WIDTH)]
    return {"type": "Doc", "data": {"slug": slug, "vec": vector, "n": chance.randrange(9)}}


def answers(graph: og.Graph, branch: str, cache: RuntimeCache | None = None) -> list[Any]:
    """The nearest rows with their distances; with an empty cache, from the files."""
    tables = inside(graph).store.tables
    if cache is None:
        cache, tables = RuntimeCache(), TableStorage(tables.root)
    snapshot = graph.snapshot(branch=branch)
    view = open_tables(snapshot, graph.catalog, tables, cache).view("node:Doc")
    ids = view.column("id")
    some = np.arange(0, view.size, 3)
    found = []
    for candidates, limit in ((None, None), (None, 5), (some, 5), (some, None)):
        positions, distances = rank(view, NEAREST, [1.0, 0.5, 2.0], candidates, limit)
        found.append((ids.take(positions).to_pylist(), distances.tolist()))
    return found


def change(graph: og.Graph, chance: random.Random, branch: str) -> None:
    slug = f"d{chance.randrange(180):05}"
    match chance.randrange(5):
        case 0:
            graph.mutate(f'query q() {{ delete Doc where slug = "{slug}" }}', branch=branch)
        case 1:
            some = [record(chance, f"e{chance.randrange(9_999):05}") for _ in range(9)]
            graph.load(some, mode="merge", branch=branch)
        case 2 if chance.random() < 0.3:
            graph.optimize()
        case _:
            graph.load([record(chance, slug)], mode="merge", branch=branch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(depth(1, 40)))
def test_after_random_commits_the_answers_are_those_of_the_rows(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    graph = og.init(tmp_path / "graph", schema=SCHEMA, durability="process", self_care=False)
    graph.load([record(chance, f"d{place:05}") for place in range(150)], mode="append")
    graph.create_branch("work")
    cache = inside(graph).cache

    for _ in range(depth(8, 80)):
        branch = chance.choice(["main", "work"])
        for _ in range(chance.randint(1, 2)):
            change(graph, chance, branch)
        assert answers(graph, branch, cache) == answers(graph, branch)


def test_a_commit_knows_the_vectors_it_wrote_and_a_delete_reads_none(tmp_path: Path) -> None:
    chance = random.Random(5)
    graph = og.init(tmp_path / "graph", schema=SCHEMA, durability="process", self_care=False)
    graph.load([record(chance, f"d{place:05}") for place in range(1_100)], mode="append")
    session = inside(graph)

    def read() -> tuple[float, int]:
        view = open_tables(
            graph.snapshot(), graph.catalog, session.store.tables, session.cache
        ).view("node:Doc")
        with counting() as counters:
            _, distances = rank(view, NEAREST, [9, 9, 9], None, 1)
        return distances[0], counters.rows_scanned

    assert read()[1] == 1_100
    graph.mutate('query q() { insert Doc { slug: "new", vec: [9, 9, 9] } }')
    assert read() == (0.0, 0)
    graph.mutate('query q() { delete Doc where slug = "new" }')
    distance, rows = read()
    assert distance > 0
    assert rows == 0
