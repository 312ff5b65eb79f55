"""The order of clauses in a `match` says nothing: every order of them means the same."""

from __future__ import annotations

from itertools import permutations

import pytest

from omnigraph.ir import QueryIR
from omnigraph.ir.query import AntiJoin, Expand, NodeScan, Operator
from tests.compiler.papers import compiled, read_text

BLOCKS = [
    ["$a: Author", "$p: Paper { year: 1 }", "$a wrote $p", "$p cites $c"],
    ["$v: Venue", "$v appearedIn $p", "$a wrote $p", "not { $p cites $_ }", '$v.name = "x"'],
    ["$p: Paper", "$p $w:cites $q", 'not { $q.title = "x" }', '$w.reason = "y"'],
]


@pytest.mark.parametrize("clauses", BLOCKS, ids=" ".join)
def test_every_order_binds_the_same_variables_to_the_same_types(clauses: list[str]) -> None:
    found = {_bound_types(" ".join(order)) for order in permutations(clauses)}

    assert len(found) == 1


def _bound_types(match: str) -> frozenset[tuple[str, str]]:
    """What is bound and negated, whichever end an edge is walked from."""
    ir = compiled(read_text(match, "return { 1 }")).ir
    assert isinstance(ir, QueryIR)
    return frozenset(fact for operator in ir.pipeline for fact in _facts(operator))


def _facts(operator: Operator) -> list[tuple[str, str]]:
    match operator:
        case NodeScan(variable, type_name):
            return [(variable, type_name)]
        case Expand(target=target, target_type=target_type, edge=edge):
            return [(target, target_type), (edge, "expanded")]
        case AntiJoin(outer_variables):
            return [("not", ",".join(outer_variables))]
        case _:
            return []
