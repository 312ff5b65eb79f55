"""Nearest neighbours beyond the exact size: the vector index answers, and `explain` says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.index.addressed import make_addresses
from omnigraph.index.vector_index import build_vector_index
from omnigraph.storage import vectors
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import IndexInfo, TableHandle
from omnigraph.storage.indexes import Indexes

WIDTH = 8
ROWS = 600
SCHEMA = f"""
node Doc {{ slug: String @key  vec: Vector({WIDTH})? @index }}
node Far {{ slug: String @key }}
edge Is: Far -> Doc
"""
NEAREST = f"""query q($v: Vector({WIDTH})) {{ match {{ $d: Doc }} return {{ $d.slug as s }}
             order {{ nearest($d.vec, $v) }} limit 5 }}"""


def points() -> np.ndarray:
    return np.random.default_rng(7).normal(size=(ROWS, WIDTH)).astype(np.float32)


def exact(query: np.ndarray, count: int) -> list[str]:
    distances = ((points() - query) ** 2).sum(axis=1)
    return [f"d{place}" for place in np.argsort(distances)[:count]]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    """As if no column were small enough to compare or keep as a whole."""
    monkeypatch.setattr(vectors, "EXACT_COMPONENTS_MAX", 0)
    monkeypatch.setattr(vectors, "KEPT_COMPONENTS_MAX", 0)
    graph = og.init(tmp_path / "graph", schema=SCHEMA, durability="process", self_care=False)
    records = [
        {"type": "Doc", "data": {"slug": f"d{place}", "vec": vector.tolist()}}
        for place, vector in enumerate(points())
    ]
    graph.load(records, mode="overwrite")
    return graph


@pytest.mark.accepts("S-172")
def test_an_index_answers_instead_of_a_scan(graph: og.Graph) -> None:
    """With the index only what it finds is compared; without it, every vector."""
    query = points()[17] + np.float32(0.01)
    params = {"v": query.tolist()}

    def asked() -> tuple[list[str], int]:
        graph.query(NEAREST, params=params)  # what is not the search is in memory after this
        with counting() as counters:
            rows = graph.query(NEAREST, params=params).rows()
        return [row["s"] for row in rows], counters.rows_scanned

    before, scanned = asked()
    graph.ensure_indices()
    after, searched = asked()

    assert before == exact(query, 5)
    assert after[0] == "d17"
    assert len(set(after) & set(before)) >= 4
    assert scanned >= ROWS
    assert searched < ROWS // 4


@pytest.mark.accepts("S-172")
def test_explain_says_whether_an_index_answered(graph: og.Graph) -> None:
    params = {"v": points()[0].tolist()}
    assert "nearest vec by a scan" in str(graph.explain(NEAREST, params=params, analyze=True))

    graph.ensure_indices()

    shown = str(graph.explain(NEAREST, params=params, analyze=True))
    assert "nearest vec by its vector index" in shown


@pytest.mark.accepts("S-172")
def test_a_filter_comes_before_the_ranking_with_an_index_too(graph: og.Graph) -> None:
    """The limit is the best of the rows that match, not what is left of the best of all."""
    graph.ensure_indices()
    text = NEAREST.replace("$d: Doc }", '$d: Doc $d.slug > "d5" }')
    query = points()[17]

    rows = graph.query(text, params={"v": query.tolist()}).rows()

    expected = [slug for slug in exact(query, ROWS) if slug > "d5"][:5]
    assert [row["s"] for row in rows] == expected


FILTERED = NEAREST.replace("$d: Doc }", '$d: Doc $d.slug > "d3" }')


def test_an_index_answers_for_many_candidates_too(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows in three match the filter: so many are not compared one by one."""
    monkeypatch.setattr(vectors, "TAKE_ROWS_MAX", 100)
    graph.ensure_indices()
    query = points()[17] + np.float32(0.01)
    graph.query(FILTERED, params={"v": query.tolist()})

    with counting() as counters:
        rows = graph.query(FILTERED, params={"v": query.tolist()}).rows()

    expected = [slug for slug in exact(query, ROWS) if slug > "d3"][:5]
    assert len({row["s"] for row in rows} & set(expected)) >= 4
    assert counters.rows_scanned < ROWS // 4


def test_candidates_that_an_index_does_not_come_to_are_found_by_a_scan(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The candidates are the rows that are farthest from the query."""
    monkeypatch.setattr(vectors, "TAKE_ROWS_MAX", 100)
    query = points()[17]
    far = sorted(exact(query, ROWS)[-200:])
    graph.load(
        [{"type": "Far", "data": {"slug": slug}} for slug in far]
        + [{"edge": "Is", "from": slug, "to": slug} for slug in far],
        mode="append",
    )
    graph.ensure_indices()
    text = NEAREST.replace("$d: Doc }", "$f: Far $f is $d }")

    rows = graph.query(text, params={"v": query.tolist()}).rows()

    assert [row["s"] for row in rows] == exact(query, ROWS)[-200:][:5]


def test_as_many_rows_as_nodes_are_not_all_nodes(tmp_path: Path) -> None:
    """Three rows of two of three nodes, the last node among them: the third is not ranked."""
    with og.init(tmp_path / "graph", schema=SCHEMA, durability="process") as graph:
        docs = [{"slug": f"d{place}", "vec": [float(place)] * WIDTH} for place in range(3)]
        records = [{"type": "Doc", "data": data} for data in docs]
        for far, near in (("f0", "d0"), ("f1", "d0"), ("f2", "d2")):
            records.append({"type": "Far", "data": {"slug": far}})
            records.append({"edge": "Is", "from": far, "to": near})
        graph.load(records, mode="append")
        text = NEAREST.replace("$d: Doc }", "$f: Far $f is $d }").replace(
            "$d.slug as s", "$d.slug as s, $f.slug as f"
        )

        rows = graph.query(text, params={"v": [2.0] * WIDTH}).rows()

    assert [(row["s"], row["f"]) for row in rows] == [("d2", "f2"), ("d0", "f0"), ("d0", "f1")]


def test_the_indexes_of_a_version_are_listed_once_however_often_it_is_searched(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing them looks at every fragment: a search of many small ones took twice as long."""
    graph.ensure_indices()
    listed: list[int] = []
    describe = Indexes.describe

    def count(indexes: Indexes, handle: TableHandle) -> list[IndexInfo]:
        listed.append(handle.version)
        return describe(indexes, handle)

    monkeypatch.setattr(Indexes, "describe", count)
    params = {"v": points()[3].tolist()}

    found = [graph.query(NEAREST, params=params).rows() for _ in range(3)]

    assert found[0][0]["s"] == "d3"
    assert found[0] == found[1] == found[2]
    assert len(listed) == 1


@pytest.mark.parametrize("offset", [0.0, 1.0, 4_096.0, 1e18])
@pytest.mark.parametrize("limit", [1, 7, 999])
def test_vectors_kept_in_memory_are_ranked_as_by_comparing_each(offset: float, limit: int) -> None:
    """Far from the origin a product says little about a distance: nothing near may be lost."""
    generator = np.random.default_rng(3)
    components = (offset + generator.normal(size=(1_000, WIDTH))).astype(np.float32)
    components[500:520] = components[100]  # ties
    query = components[100] + np.float32(0.001)
    ids = pa.chunked_array([[f"{number:04}" for number in range(1_000)]], pa.large_utf8())
    index = build_vector_index(ids, components, make_addresses(0, np.arange(1_000)), [("f",)])

    found, distances = index.nearest(query, None, limit)

    compared = vectors.square_distances(components, query)
    near = np.flatnonzero(compared <= np.sort(compared)[limit - 1])
    assert found.tolist() == near.tolist()
    assert distances.tolist() == compared[near].tolist()


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 6, 100])
def test_ties_of_vectors_kept_in_memory_go_by_id_whatever_order_rows_were_written_in(
    tmp_path: Path, limit: int
) -> None:
    """In one data file, across several, after a delete, and after a row is written again."""
    with og.init(tmp_path / "graph", schema=SCHEMA, durability="process") as graph:
        same, other = [1.0] * WIDTH, [2.0] * WIDTH
        rows = [("d", same), ("b", same), ("z", other), ("c", same)]
        more = [("a", same), ("y", other)]
        for part in (rows, more):
            data = [{"type": "Doc", "data": {"slug": slug, "vec": vec}} for slug, vec in part]
            graph.load(data, mode="append")
        asked = NEAREST.replace("limit 5", f"limit {limit}")

        def ask() -> list[str]:
            return [row["s"] for row in graph.query(asked, params={"v": same}).rows()]

        assert ask() == ["a", "b", "c", "d", "y", "z"][:limit]
        graph.mutate('query w() { delete Doc where slug = "b" }')
        assert ask() == ["a", "c", "d", "y", "z"][:limit]
        graph.load([{"type": "Doc", "data": {"slug": "a", "vec": same}}], mode="merge")
        assert ask() == ["a", "c", "d", "y", "z"][:limit]
