"""Optional and either: what they add to rows, by the reference evaluator."""

from __future__ import annotations

import pytest

from omnigraph.executor import execute
from omnigraph.graph import Graph
from omnigraph.index import RuntimeCache
from omnigraph.ir.expressions import Aggregate, IsNull, NodeRef, Projected, PropertyRef
from omnigraph.ir.query import (
    AntiJoin,
    Direction,
    EitherMatch,
    Expand,
    Filter,
    NodeScan,
    Operator,
    OptionalMatch,
    QueryIR,
    ReturnItem,
)
from omnigraph.syntax.query_tree import AggregateFunction
from omnigraph.testing.evaluator import evaluate, read_graph
from omnigraph.testing.inside import inside
from omnigraph.types import PropertyType, Scalar

TEXT = PropertyType(Scalar.STRING)
PEOPLE = NodeScan("a", "Person")
LIVES = Expand("a", "t", "LivesIn", Direction.OUT, "Town")
TOWN = OptionalMatch(("a",), (LIVES,), (("t", "Town"),))
KNOWS = Expand("a", "b", "Knows", Direction.OUT, "Person", edge_variable="k")
FRIEND = OptionalMatch(("a",), (KNOWS,), (("b", "Person"),), (("k", "Knows"),))
EITHER_WAY = EitherMatch(
    ("a",),
    tuple((Expand("a", "b", "Knows", way, "Person"),) for way in (Direction.OUT, Direction.IN)),
    (("b", "Person"),),
)


def name(variable: str) -> PropertyRef:
    return PropertyRef(variable, "name", TEXT)


def count(variable: str, type_name: str) -> Aggregate:
    found = PropertyType(Scalar.I64)
    return Aggregate(AggregateFunction.COUNT, NodeRef(variable, type_name), found)


@pytest.mark.parametrize(
    ("pipeline", "returned"),
    [
        ([PEOPLE, TOWN], [name("a"), name("t")]),
        ([PEOPLE, TOWN], [name("a"), count("t", "Town")]),
        ([PEOPLE, TOWN], [name("t"), count("a", "Person")]),
        ([PEOPLE, TOWN, Filter(IsNull(name("t")))], [name("a")]),
        (
            [PEOPLE, FRIEND, TOWN],
            [name("a"), PropertyRef("k", "weight", PropertyType(Scalar.I32)), name("t")],
        ),
        (
            [
                PEOPLE,
                FRIEND,
                AntiJoin(("b",), (Expand("b", "#1", "Wrote", Direction.OUT, "Note"),)),
            ],
            [name("a"), name("b")],
        ),
        ([PEOPLE, EITHER_WAY], [name("a"), name("b")]),
        ([PEOPLE, AntiJoin(("a",), (EITHER_WAY,))], [name("a")]),
        ([PEOPLE, OptionalMatch(("a",), (EITHER_WAY,), (("b", "Person"),))], [name("b")]),
    ],
)
def test_blocks_add_what_the_reference_says(
    people: Graph, pipeline: list[Operator], returned: list[Projected]
) -> None:
    items = tuple(ReturnItem(each, f"c{place}") for place, each in enumerate(returned))
    ir = QueryIR("q", (), tuple(pipeline), items)
    snapshot, catalog = people.snapshot(), people.catalog
    tables = inside(people).store.tables

    found = execute(ir, {}, snapshot, catalog, tables, RuntimeCache()).to_pylist()

    expected = evaluate(ir, {}, read_graph(snapshot, catalog, tables))
    assert sorted(map(str, found)) == sorted(map(str, expected))
