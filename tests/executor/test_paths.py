"""Paths: every walk takes the path that the reference picks, from whichever end it is searched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random

import pytest

from omnigraph.executor import execute
from omnigraph.graph import Graph, init
from omnigraph.index import RuntimeCache
from omnigraph.ir.expressions import (
    Compare,
    CompareKind,
    Constant,
    Predicate,
    PropertyRef,
    SameNode,
)
from omnigraph.ir.query import (
    HOP_VARIABLE,
    Direction,
    Expand,
    Filter,
    NodeScan,
    Operator,
    OrderItem,
    QueryIR,
    ReturnItem,
    WalkMode,
    is_walk,
)
from omnigraph.testing.evaluator import GraphData, evaluate, read_graph
from omnigraph.testing.inside import inside
from omnigraph.types import PropertyType, Scalar
from tests.depth import depth, sample

SCHEMA = "node N { name: String @key  size: I32? }\nedge To: N -> N { w: I32? }"
NAMES = PropertyType(Scalar.STRING, is_list=True)
SIZES = PropertyType(Scalar.I32, is_list=True, nullable=True)
COUNT, NAME = PropertyType(Scalar.I64), PropertyType(Scalar.STRING)
GRAPHS = depth(2, 60)


@dataclass(frozen=True)
class Case:
    graph: Graph
    data: GraphData
    cache: RuntimeCache = field(default_factory=RuntimeCache)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder = tmp_path_factory.mktemp("paths")
    return [make_graph(folder / f"{seed}.omni", Random(seed)) for seed in range(GRAPHS)]


def make_graph(place: Path, random: Random) -> Case:
    """Few nodes, ids in no order of their rows, parallel edges and loops."""
    names = [f"n{number}" for number in range(random.randint(4, 7))]
    random.shuffle(names)
    records: list[dict[str, object]] = [
        {"type": "N", "data": {"name": name, "size": random.choice([None, 1, 2])}} for name in names
    ]
    for number in range(random.randint(6, 14)):
        data = {"id": f"e{random.random()}{number}", "w": random.choice([None, 0, 1, 2])}
        ends = {"from": random.choice(names), "to": random.choice(names)}
        records.append({"edge": "To", **ends, "data": data})
    graph = init(place, schema=SCHEMA, durability="process")
    graph.load(records, mode="overwrite")
    return Case(graph, read_graph(graph.snapshot(), graph.catalog, inside(graph).store.tables))


def named(variable: str, name: str) -> Predicate:
    key = PropertyRef(variable, "name", NAME)
    return Compare(key, CompareKind.EQUAL, Constant(name, NAME))


def walks() -> Iterator[Expand]:
    """Every way to walk, written from the left and from the right."""
    light = Compare(
        PropertyRef(HOP_VARIABLE, "w", PropertyType(Scalar.I32)),
        CompareKind.LESS,
        Constant(2, COUNT),
    )
    bounds: list[tuple[WalkMode, int, int | None, str | None]] = [
        (WalkMode.REACH, 1, 2, None),
        (WalkMode.REACH, 2, 3, None),
        (WalkMode.REACH, 1, 1, None),
        (WalkMode.SHORTEST, 1, None, "w"),
    ]
    bounds += [
        (mode, least, most, None)
        for mode in (WalkMode.SHORTEST, WalkMode.ALL_SHORTEST)
        for least, most in ((1, None), (2, None), (1, 2))
    ]
    for direction, (mode, least, most, weight), where, turned in product(
        Direction, bounds, ((), (light,)), (False, True)
    ):
        is_path = is_walk(least, most, mode)
        yield Expand(
            "a", "b", "To", direction, "N", least, most,
            edge_variable="t" if is_path else None,
            mode=mode, hop_filters=where, weight=weight, is_reversed=turned and is_path,
        )  # fmt: skip


PATH = [
    PropertyRef("t", "#hops", COUNT),
    PropertyRef("t", "#nodes", NAMES),
    PropertyRef("t", "#edges", NAMES),
    PropertyRef("t", "#nodes/size", SIZES),
    PropertyRef("t", "#edges/w", SIZES),
]


def format_expand(expand: Expand) -> str:
    turned = " reversed" if expand.is_reversed else ""
    bounds = f"{expand.min_hops},{expand.max_hops} {expand.weight}"
    return f"{expand.mode} {expand.direction} {bounds}{turned}"


def pipelines(expand: Expand, name: str, other: str) -> Iterator[list[Operator]]:
    """No end given, one end, the other, and both."""
    scan, end = NodeScan("a", "N"), NodeScan("b", "N", (named("b", other),))
    yield [scan, expand]
    yield [NodeScan("a", "N", (named("a", name),)), expand]
    reached = Expand(
        **{each: getattr(expand, each) for each in Expand.__dataclass_fields__} | {"target": "#1"}
    )
    yield [scan, end, reached, Filter(SameNode("#1", "b"))]
    yield [NodeScan("a", "N", (named("a", name),)), end, reached, Filter(SameNode("#1", "b"))]


@pytest.mark.parametrize("expand", sample(list(walks()), 3), ids=format_expand)
def test_a_walk_takes_the_path_that_the_reference_picks(graphs: list[Case], expand: Expand) -> None:
    shown = [PropertyRef(end, "name", NAME) for end in "ab"]
    if expand.edge_variable is not None:
        shown += PATH
    if expand.weight is not None:
        shown.append(PropertyRef("t", "#cost", PropertyType(Scalar.F64)))
    returns = tuple(ReturnItem(each, f"c{place}") for place, each in enumerate(shown))
    order = (OrderItem(shown[-1] if expand.edge_variable is None else PATH[0], descending=True),)
    for number, case in enumerate(graphs):
        graph, data = case.graph, case.data
        names = sorted(data.nodes["N"])
        name, other = names[number % len(names)], names[-1]
        for pipeline in pipelines(expand, name, other):
            ir = QueryIR("q", (), tuple(pipeline), returns, order)
            where = graph.snapshot(), graph.catalog, inside(graph).store.tables

            found = execute(ir, {}, *where, case.cache).to_pylist()

            assert found == evaluate(ir, {}, data)


@pytest.mark.parametrize(
    "ends",
    ['$x: N { name: "a" }  $y: N { name: "t" }', '$x: N { name: "a" }', '$y: N { name: "t" }'],
)
@pytest.mark.parametrize("edge", ["to", "<to>"])
def test_the_first_nodes_of_a_path_decide_before_the_last_ones(
    tmp_path: Path, ends: str, edge: str
) -> None:
    """Of a-p-y-t and a-q-x-t the first is taken, though x comes before y; from any end."""
    steps = ["ap", "aq", "py", "qx", "yt", "xt"]
    records: list[dict[str, object]] = [{"type": "N", "data": {"name": name}} for name in "txyqpa"]
    records += [{"edge": "To", "from": each[0], "to": each[1]} for each in steps]
    text = f"""query q() {{
        match {{ {ends}  $x $t:shortest {edge} $y  $x.name = "a"  $y.name = "t" }}
        return {{ nodes($t) as way }}
    }}"""
    with init(tmp_path / "g.omni", schema=SCHEMA, durability="process") as graph:
        graph.load(records, mode="overwrite")

        assert graph.query(text).rows() == [{"way": ["a", "p", "y", "t"]}]
