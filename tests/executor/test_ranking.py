"""Rankings over what matched: filters first, all rows of a node share its rank."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import BadRequestError, TypeCheckError
from omnigraph.graph import Graph
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


@pytest.mark.accepts("S-174")
def test_a_small_k_makes_the_first_places_count_more(people: Graph) -> None:
    """nearest v: n1 n3 n2; nearest w: n3 n1 n2. Equal scores keep the order of the first arm."""
    order = "order { rrf(nearest($n.vec, $v), nearest($n.vec, $w), $k) } limit 9"

    for k in (1, 60):
        vectors = {"v": [1.0, 0.0, 0.0], "w": [0.8, 0.2, 0.0], "k": k}
        assert slugs(people, "$n: Note", order, vectors) == ["n1", "n3", "n2"]


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
