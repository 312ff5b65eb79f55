"""Rankings over what matched: filters first, all rows of a node share its rank."""

from __future__ import annotations

import math
from typing import Any

import pytest

from omnigraph.compiler import bind_params, compile_query, require_read
from omnigraph.errors import BadRequestError, TypeCheckError
from omnigraph.graph import Graph, init
from omnigraph.testing.evaluator import evaluate, read_graph
from omnigraph.testing.inside import inside
from tests.executor.running import run_query


def slugs(graph: Graph, match: str, order: str, params: dict[str, Any] | None = None) -> list[str]:
    declared = {"v": "$v: Vector(3)", "w": "$w: Vector(3)", "q": "$q: String", "k": "$k: I32"}
    heads = ", ".join(declared[name] for name in params or {})
    query = f"query x({heads}) {{ match {{ {match} }} return {{ $n.slug as s }} {order} }}"
    return [row["s"] for row in run_query(graph, query, params)]


def test_nearest_ranks_what_matches_and_leaves_out_rows_without_a_vector(people: Graph) -> None:
    query = {"v": [1.0, 0.0, 0.0]}

    assert slugs(people, "$n: Note", "order { nearest($n.vec, $v) } limit 9", query) == [
        "n1",
        "n3",
        "n2",
    ]
    filtered = '$n: Note $n.slug != "n1"'
    assert slugs(people, filtered, "order { nearest($n.vec, $v) } limit 1", query) == ["n3"]


@pytest.mark.accepts("S-172")
def test_nearest_needs_a_limit(people: Graph) -> None:
    with pytest.raises(TypeCheckError, match="limit"):
        slugs(people, "$n: Note", "order { nearest($n.vec, $v) }", {"v": [1.0, 0.0, 0.0]})


def test_a_ranking_counts_only_nodes_that_a_traversal_reaches(people: Graph) -> None:
    """The limit is the best of the matching rows, not a remainder of the best of all."""
    match = '$p: Person { name: "bo" } $p wrote $n'

    found = slugs(people, match, "order { nearest($n.vec, $v) } limit 1", {"v": [1.0, 0.0, 0.0]})

    assert found == ["n3"]


def test_all_rows_of_a_node_share_its_rank_and_the_limit_counts_rows(people: Graph) -> None:
    query = """query x($v: Vector(3)) { match { $p: Person $p wrote $n }
               return { $n.slug as s, $p.name as p } order { nearest($n.vec, $v) } limit 3 }"""

    rows = run_query(people, query, {"v": [1.0, 0.0, 0.0]}).rows()

    assert [(row["s"], row["p"]) for row in rows] == [("n1", "ada"), ("n1", "cy"), ("n3", "bo")]


@pytest.mark.accepts("S-173")
def test_bm25_ranks_by_relevance_and_needs_no_limit(people: Graph) -> None:
    order = "order { bm25($n.body, $q) }"

    assert slugs(people, "$n: Note", order, {"q": "pears"}) == ["n2", "n1"]
    assert slugs(people, "$n: Note", order, {"q": "zebra"}) == []


@pytest.mark.accepts("S-171", "S-174", "S-175")
def test_rrf_adds_reciprocal_ranks(people: Graph) -> None:
    """nearest: n1 n3 n2; bm25: n2 n1. So n1 1/61 + 1/62, n2 1/63 + 1/61, n3 1/62."""
    order = "order { rrf(nearest($n.vec, $v), bm25($n.body, $q)) desc } limit 20"

    found = slugs(people, "$n: Note", order, {"v": [1.0, 0.0, 0.0], "q": "pears"})

    assert found == ["n1", "n2", "n3"]


@pytest.mark.parametrize("k", [1, 60])
def test_equal_scores_keep_the_order_of_the_first_arm(people: Graph, k: int) -> None:
    """nearest v: n1 n3 n2; nearest w: n3 n1 n2."""
    order = "order { rrf(nearest($n.vec, $v), nearest($n.vec, $w), $k) } limit 9"
    vectors = {"v": [1.0, 0.0, 0.0], "w": [0.8, 0.2, 0.0], "k": k}

    assert slugs(people, "$n: Note", order, vectors) == ["n1", "n3", "n2"]


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Twenty notes; each of three vectors says which place its arm gives to the note.

    Two notes decide: `x` is 1st, 13th and 20th, `y` is 5th, 8th and 14th. The others follow in
    order, in `b` backwards. Four have a text, the shorter the better.
    """
    schema = """node Note {
        slug: String @key  a: Vector(2)  b: Vector(2)  c: Vector(2)  body: String? @index
    }"""
    arms = {"a": {"x": 1, "y": 5}, "b": {"x": 13, "y": 8}, "c": {"x": 20, "y": 14}}
    texts = {"z17": "pear", "z16": "pear tree", "z00": "pear tree now", "z01": "pear tree now too"}
    others = [f"z{number:02}" for number in range(18)]
    data: dict[str, dict[str, Any]] = {
        slug: {"slug": slug, "body": texts.get(slug)} for slug in ["x", "y", *others]
    }
    for arm, places in arms.items():
        free = sorted(set(range(1, 21)) - set(places.values()), reverse=arm == "b")
        for slug, place in {**places, **dict(zip(others, free, strict=True))}.items():
            data[slug][arm] = [math.cos(place / 20), math.sin(place / 20)]
    graph = init(tmp_path_factory.mktemp("ranked") / "g", schema=schema, durability="process")
    graph.load([{"type": "Note", "data": each} for each in data.values()], mode="append")
    return graph


@pytest.mark.accepts("S-174")
@pytest.mark.parametrize(
    ("arm", "k", "first"),
    [
        # 1/(k+1) + 1/(k+13) against 1/(k+5) + 1/(k+8): x is ahead up to k = 60.
        ("b", "", "x"),
        ("b", ", 1", "x"),
        ("b", ", 60", "x"),
        ("b", ", 61", "y"),
        # 1/(k+1) + 1/(k+20) against 1/(k+5) + 1/(k+14): x is ahead up to k = 59.
        ("c", "", "y"),
        ("c", ", 1", "x"),
        ("c", ", 59", "x"),
        ("c", ", 60", "y"),
    ],
)
def test_k_decides_between_one_top_place_and_two_good_ones(
    ranked: Graph, arm: str, k: str, first: str
) -> None:
    """The two hand-computed turning points enclose the default: it is 60 and nothing else."""
    fused = f"rrf(nearest($n.a, $v), nearest($n.{arm}, $v){k})"
    query = (
        "query q($v: Vector(2)) { match { $n: Note } return { $n.slug as s } "
        f"order {{ {fused} }} limit 20 }}"
    )

    found = [row["s"] for row in run_query(ranked, query, {"v": [1.0, 0.0]})]

    assert len(found) == 20
    assert next(slug for slug in found if slug in ("x", "y")) == first


A, B = "nearest($n.a, $v)", "nearest($n.b, $v)"
TEXT = 'bm25($n.body, "pear")'


@pytest.mark.accepts("S-174")
@pytest.mark.parametrize(
    ("arms", "best"),
    [
        # a: x z00; b: z17 z16. Without its end either arm would add something to the other's best.
        ((A, B), ["x", "z17"]),
        ((B, A), ["z17", "x"]),
        # bm25: z17 z16 z00 z01. Third there and second in a beat one first place; z01, third in a,
        # is beyond the end of that arm.
        ((A, TEXT), ["z00", "x"]),
        ((TEXT, A), ["z00", "z17"]),
    ],
)
def test_a_nearest_arm_ends_at_the_limit_and_a_bm25_arm_does_not(
    ranked: Graph, arms: tuple[str, str], best: list[str]
) -> None:
    query = (
        "query q($v: Vector(2)) { match { $n: Note } return { $n.slug as s } "
        f"order {{ rrf({', '.join(arms)}) }} limit 2 }}"
    )

    found = [row["s"] for row in run_query(ranked, query, {"v": [1.0, 0.0]})]

    assert found == best


@pytest.mark.accepts("S-171")
def test_search_traversal_and_fusion_work_in_one_query(people: Graph) -> None:
    match = '$p: Person $p wrote $n search($n.body, "pears") not { $p knows $p }'
    order = "order { rrf(nearest($n.vec, $v), bm25($n.body, $q)) } limit 9"

    found = slugs(people, match, order, {"v": [0.0, 1.0, 0.0], "q": "apples"})

    # n2 is nearest, n1 (of ada and of cy) is the only one with apples.
    assert found == ["n1", "n1", "n2"]


def test_search_works_on_a_node_that_a_traversal_introduces(people: Graph) -> None:
    match = '$p: Person { name: "ada" } $p wrote $n search($n.body, $q)'

    assert slugs(people, match, "order { $n.slug }", {"q": "apples"}) == ["n1"]


def test_search_inside_not_keeps_what_does_not_match(people: Graph) -> None:
    match = "$n: Note not { search($n.body, $q) }"

    assert slugs(people, match, "order { $n.slug }", {"q": "pears"}) == ["n3", "n4"]


def test_a_text_to_embed_without_a_provider_names_the_setting(people: Graph) -> None:
    with pytest.raises(BadRequestError, match="OMNIGRAPH_EMBED_PROVIDER"):
        slugs(people, "$n: Note", "order { nearest($n.vec, $q) } limit 1", {"q": "pears"})


def test_a_ranking_by_another_property_is_refused(people: Graph) -> None:
    with pytest.raises(BadRequestError, match="differs from row to row"):
        slugs(people, "$n: Note", "order { bm25($n.body, $n.slug) }")


def test_an_edge_that_is_null_in_some_rows_ranks_before_nodes_in_all(people: Graph) -> None:
    """Of one node's rows those without the edge come first, to the engine and to the reference."""
    query = """query x($v: Vector(3)) {
               match { $n: Note $p: Person optional { $p $z:wrote $y $y.slug = "n1" } }
               return { $n.slug as s, $p.name as p, $y.slug as y }
               order { nearest($n.vec, $v) } limit 50 }"""
    params = {"v": [1.0, 0.0, 0.0]}
    data = read_graph(people.snapshot(), people.catalog, inside(people).store.tables)
    ir = require_read(compile_query(query, people.catalog))

    rows = run_query(people, query, params).rows()

    is_bound = [row["y"] is not None for row in rows if row["s"] == "n1"]
    assert is_bound == sorted(is_bound)
    assert {*is_bound} == {True, False}
    assert rows == evaluate(ir, bind_params(ir.params, params), data)
