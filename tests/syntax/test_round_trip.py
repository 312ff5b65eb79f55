"""Printing and parsing are inverse: `parse(print(tree)) == tree`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from omnigraph.syntax import QueryTree, SchemaTree, parse_query, parse_schema
from omnigraph.syntax.print_query import print_query
from omnigraph.syntax.print_schema import print_schema
from omnigraph.testing.query_strategies import query_trees
from omnigraph.testing.strategies import schema_trees
from tests.depth import depth

# Hypothesis warns when what it draws from is long to show, which is no failure of ours.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

# `1 == True == 1.0`, so equality alone would let one literal pass for another; `repr` does not.
thorough = settings(
    max_examples=depth(15, 1_000), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
@thorough
@given(schema_trees)
def test_a_printed_schema_parses_to_the_same_tree(tree: SchemaTree) -> None:
    text = print_schema(tree)

    parsed = parse_schema(text)

    assert parsed == tree
    assert repr(parsed) == repr(tree)
    assert print_schema(parsed) == text


@pytest.mark.slow
@thorough
@given(query_trees)
def test_a_printed_query_parses_to_the_same_tree(tree: QueryTree) -> None:
    text = print_query(tree)

    parsed = parse_query(text)

    assert parsed == tree
    assert repr(parsed) == repr(tree)
    assert print_query(parsed) == text
