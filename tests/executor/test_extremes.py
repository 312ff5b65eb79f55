"""The least and greatest of what is only counted: sent along the tree, never made into rows."""

from __future__ import annotations

import pytest

from omnigraph.executor import weights
from omnigraph.graph import Graph
from omnigraph.index import RuntimeCache
from tests.executor.running import run_query

QUERY = """query q() { match { $t: Town $p livesIn $t $p knows $o }
           return { $t.name as t, min($o.age) as youngest, max($o.name) as last,
                    min($p.town) as town, count($o) as n } order { $t.name } }"""
TOTAL = """query q() { match { $p: Person $p knows $o $o wrote $n }
           return { min($n.body) as first, max($o.score) as score, min($p.age) as age } }"""


@pytest.mark.parametrize("few", [0, 8, 10**9])
def test_extremes_are_those_of_the_rows(
    people: Graph, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Whichever way the messages take."""
    monkeypatch.setattr(weights, "FEW", few)

    assert run_query(people, QUERY).rows() == [
        {"t": "London", "youngest": 25, "last": "bo", "town": "London", "n": 1},
        {"t": "Oslo", "youngest": 25, "last": "cy", "town": "Oslo", "n": 2},
    ]
    assert run_query(people, TOTAL).rows() == [
        {"first": "apples and pears", "score": 1.5, "age": 25}
    ]


def test_a_group_whose_values_are_all_null_has_no_extreme(people: Graph) -> None:
    query = """query q() { match { $p: Person $p wrote $n }
               return { $p.name as p, min($n.body) as a, max($n.body) as z } order { p } }"""

    assert run_query(people, query).rows() == [
        {"p": "ada", "a": "apples and pears", "z": "pears"},
        {"p": "bo", "a": "whales", "z": "whales"},
        {"p": "cy", "a": "apples and pears", "z": "apples and pears"},
        {"p": "di", "a": None, "z": None},
    ]


def test_extremes_of_variables_that_meet_in_a_product_stay_their_own(people: Graph) -> None:
    query = """query q() { match { $p: Person $t: Town }
               return { min($p.age) as p, max($t.size) as t, count($p) as n } }"""

    assert run_query(people, query, cache=RuntimeCache()).rows() == [{"p": 25, "t": 9, "n": 8}]


def test_what_has_an_extreme_taken_is_counted_and_not_bound(people: Graph) -> None:
    shown = people.explain(QUERY).plan

    assert "count $p to $o along out Knows" in shown
    assert "expand" not in shown
