"""Patterns with cycles: the answers of the reference evaluator, one plan for every clause order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from omnigraph.compiler import compile_query, require_read
from omnigraph.executor import closing, execute, match, match_stages, steps
from omnigraph.executor.rows import Rows
from omnigraph.graph import Graph, init
from omnigraph.index import RuntimeCache
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.ir.query import QueryIR
from omnigraph.planner import Statistics, format_plan, make_plan
from omnigraph.testing.evaluator import GraphData, evaluate, read_graph
from omnigraph.testing.inside import inside
from tests.depth import depth
from tests.executor.test_differential import as_texts, check, with_ticks

SCHEMA = """
node Ann { key: String @key  n: I32?  x: F64? }
node Bob { key: String @key  n: I32? }
edge Likes: Ann -> Ann { w: I32? }
edge Meets: Ann -> Ann
edge Owns: Ann -> Bob { w: I32? }
"""
GRAPHS = depth(3, 60)
QUERIES = depth(12, 40)
ORDERS = 3


def draw_records(random: Random) -> list[dict[str, Any]]:
    """Few nodes and many edges between them: parallel ones, loops, both ways."""
    anns = [f"a{n}" for n in range(random.randint(1, 6))]
    bobs = [f"b{n}" for n in range(random.randint(1, 4))]

    def data(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if random.random() < 0.8}

    def number() -> int:
        return random.randint(-2, 2)

    records: list[dict[str, Any]] = [
        {"type": "Ann", "data": {"key": key} | data(n=number(), x=number() / 2)} for key in anns
    ]
    records += [{"type": "Bob", "data": {"key": key} | data(n=number())} for key in bobs]
    for edge, targets in (("Likes", anns), ("Meets", anns), ("Owns", bobs)):
        for _ in range(random.randint(0, 14)):
            ends = {"from": random.choice(anns), "to": random.choice(targets)}
            values = {} if edge == "Meets" else data(w=number())
            records.append({"edge": edge, **ends, "data": values})
    return records


class QueryDraw:
    """One query whose pattern closes, as clauses that can be put in any order."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = [f"{letter}{random.randint(0, 9)}" for letter in "mqaztb"]
        random.shuffle(self.names)
        self.edges: list[str] = []
        self.has_walk = False
        ring = self.names[: random.randint(2, 5)]
        self.clauses = [self.hop(a, b) for a, b in zip(ring, ring[1:] + ring[:1], strict=True)]
        if random.random() < 0.3:
            self.clauses.append(self.hop(*random.choices(ring, k=2)))
        self.bobs: list[str] = []
        for owner in random.sample(ring, k=random.randint(0, 2)):
            bob = random.choice(["_", "u", "v"])
            self.clauses.append(f"${owner} owns ${bob}")
            self.bobs += [bob] if bob != "_" else []
        for _ in range(random.randint(0, 2)):
            self.clauses.append(self.condition(ring))
        self.ring = ring
        self.tail = self.draw_tail()

    def hop(self, source: str, target: str) -> str:
        random = self.random
        edge = random.choice(["likes", "meets"])
        walk = f"<{edge}>" if random.random() < 0.25 else edge
        if random.random() < 0.12:
            self.has_walk = True
            return f"${source} {walk}{{1,{random.randint(1, 2)}}} ${target}"
        if random.random() < 0.25:
            name = f"e{len(self.edges)}"
            self.edges.append(name if edge == "likes" else "")
            return f"${source} ${name}:{walk} ${target}"
        return f"${source} {walk} ${target}"

    def condition(self, ring: list[str]) -> str:
        one, other = self.random.choices(ring, k=2)
        return self.random.choice(
            [
                f"not {{ ${one} likes ${other} }}",
                f"not {{ ${one} <meets> ${other}  ${one}.n < ${other}.n }}",
                f"not {{ ${one} likes $inner  $inner meets ${other} }}",
                f"not {{ ${one} likes $inner  $inner meets ${other}  not {{ ${one} owns $_ }} }}",
                f"not {{ ${one} owns $_ }}",
                f"${one}.n < ${other}.n",
                f"${one}.key != ${other}.key",
                f"${one}.key = ${other}.key",
                f"${one}.n >= 0",
                f'${one}: Ann {{ key: "a1" }}',
            ]
        )

    def draw_tail(self) -> str:
        random, ring = self.random, self.ring
        one, other = random.choice(ring), random.choice(ring)
        values = [f"${one}.key", f"${other}.n", *(f"${bob}.n" for bob in self.bobs)]
        weights = [f"${name}.w" for name in self.edges if name]
        kind = random.random()
        if kind < 0.35:
            return f"return {{ count(${one}) as c }}"
        if kind < 0.7:
            numbers = [f"${name}.n" for name in [*ring, *self.bobs]] + weights
            functions = random.choices(["sum", "avg", "min", "max", "count"], k=2)
            aggregates = [f"{f}({random.choice(numbers)}) as g{n}" for n, f in enumerate(functions)]
            keys = random.sample(values, k=random.randint(0, 2))
            order = f" order {{ g0 desc }} limit {random.randint(0, 3)}"
            return f"return {{ {', '.join([*keys, *aggregates])} }}{random.choice(['', order])}"
        items = random.sample([*values, *weights], k=random.randint(1, 2))
        order = random.choice(["", f" order {{ ${other}.n desc }}"])
        limit = random.choice(["", f" limit {random.randint(0, 4)}"])
        return f"return {{ {', '.join(items)} }}{order}{limit}"

    def texts(self) -> Iterator[str]:
        for _ in range(ORDERS):
            yield f"query q() {{ match {{ {'  '.join(self.clauses)} }} {self.tail} }}"
            self.random.shuffle(self.clauses)


def as_if_large(block: int) -> ExitStack:
    """Small blocks, folded at every chance; pairs hashed first, into a table that is too small."""
    stack = ExitStack()
    for module, name, value in (
        (steps, "BLOCK_ENTRIES", block),
        (steps, "FOLDED_ROWS_MIN", 0),
        (steps, "FOLDING_PAYS", 0),
        (match, "HELD_BEFORE_FOLDING", 1),
        (match_stages, "LONG_TREE", 0),
        (closing, "FILTER_PAYS", 1_000),
        (closing, "BYTES_PER_EDGE", 1),
        (closing, "EXACT_BYTES_MAX", 0 if block == 2 else 1_000),
        (closing, "ONE_WAY_PAYS", 0),
    ):
        stack.enter_context(patch.object(module, name, value))
    return stack


def rows_of(graph: Graph, ir: QueryIR, data: GraphData, cache: RuntimeCache) -> list[str]:
    tables = inside(graph).store.tables
    found = execute(ir, {NOW_PARAMETER: 0}, graph.snapshot(), data.catalog, tables, cache)
    return as_texts(with_ticks(found))


DENSE: list[dict[str, Any]] = [
    *({"type": "Ann", "data": {"key": f"a{n}", "n": n + 1, "x": n / 2}} for n in range(4)),
    *({"type": "Bob", "data": {"key": f"b{n}", "n": n}} for n in range(4)),
    *({"edge": "Likes", "from": f"a{n // 4}", "to": f"a{n % 4}", "data": {}} for n in range(16)),
    *({"edge": "Meets", "from": f"a{n}", "to": f"a{n // 2}", "data": {}} for n in range(4)),
]
FIXED = [
    "match { $a likes $b  $b likes $c  $c likes $d  $d likes $a } return { count($a) as n }",
    """match { $a likes $b  $b likes $c  $c likes $d  $d likes $a  $b.n < $d.n }
       return { count($a) as n }""",
    """match { $a likes $b  $b likes $c  $c likes $d  $d likes $a  not { $d meets $b } }
       return { sum($b.n) as total, max($b.x) as most }""",
    """match { $a likes $b  $b likes $c  $c likes $d  $d likes $a  $p: Bob  $b.n < $p.n }
       return { $p.key, count($c) as n }""",
    "match { $a likes $b  $b likes $c  $c likes $d } return { $a.n, $b.n, $c.n, $d.n }",
    "match { $a likes $a  $a <meets> $b  $b meets $b } return { $b.key } limit 2",
]


@pytest.mark.slow
def test_joins_of_every_shape_give_the_rows_of_the_evaluator(tmp_path: Path) -> None:
    """Folding in the middle, predicates that wait for their second variable, a second tree."""
    with init(tmp_path / "g.omni", schema=SCHEMA, durability="process") as graph:
        graph.load(DENSE, mode="overwrite")
        data = read_graph(graph.snapshot(), graph.catalog, inside(graph).store.tables)
        for text in FIXED:
            ir = require_read(compile_query(f"query q() {{ {text} }}", data.catalog))
            expected = as_texts(evaluate(ir, {NOW_PARAMETER: 0}, data, with_limit=False))
            for block in (2, 1_000):
                with as_if_large(block):
                    check(rows_of(graph, ir, data, RuntimeCache()), expected, ir)


def test_a_long_path_copies_columns_in_proportion_to_its_hops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read again only at the end is not copied at every hop."""
    hops = 40
    with init(tmp_path / "g.omni", schema=SCHEMA, durability="process") as graph:
        keys = [f"a{n:02}" for n in range(hops + 9)]
        records: list[dict[str, Any]] = [{"type": "Ann", "data": {"key": key}} for key in keys]
        records += [{"edge": "Likes", "from": a, "to": b} for a, b in pairwise(keys)]
        graph.load(records, mode="overwrite")
        copied = 0
        take = Rows.take

        def counted(rows: Rows, indices: Any) -> Rows:
            nonlocal copied
            copied += len(rows.nodes)
            return take(rows, indices)

        monkeypatch.setattr(Rows, "take", counted)
        path = " ".join(f"$v{n} likes $v{n + 1}" for n in range(hops))
        tail = f"return {{ $v0.key as first, $v{hops}.key as last }} order {{ $v0.key }}"

        found = graph.query(f"query q() {{ match {{ {path} }} {tail} }}").rows()

    assert [row["first"] for row in found] == keys[:9]
    assert [row["last"] for row in found] == keys[hops:]
    assert copied <= 6 * hops


def read_again(graph: Graph, random: Random | None) -> GraphData:
    """The graph as it is, after one more edge: what is cached of it is then patched."""
    if random is not None:
        anns = graph.query("query q() { match { $a: Ann } return { $a.key as key } }").rows()
        ends = {end: random.choice(anns)["key"] for end in ("from", "to")}
        insert = "insert Likes { from: $from, to: $to, w: 1 }"
        graph.mutate(f"query add($from: String, $to: String) {{ {insert} }}", params=ends)
    return read_graph(graph.snapshot(), graph.catalog, inside(graph).store.tables)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(GRAPHS))
def test_patterns_that_close_give_the_rows_of_the_evaluator(tmp_path: Path, seed: int) -> None:
    """In large blocks and small ones, and in whatever order the clauses are written."""
    random = Random(seed)
    with init(tmp_path / "g.omni", schema=SCHEMA, durability="process") as graph:
        graph.load(draw_records(random), mode="overwrite")
        cache = RuntimeCache()
        for place in range(QUERIES):
            if place in (0, QUERIES // 2):
                data = read_again(graph, random if place else None)
                entries = graph.snapshot().entries
                counts = {key: entry.row_count for key, entry in entries.items()}
            query = QueryDraw(random)
            plans = set()
            for number, text in enumerate(query.texts()):
                ir = require_read(compile_query(text, data.catalog))
                expected = as_texts(evaluate(ir, {NOW_PARAMETER: 0}, data, with_limit=False))

                check(rows_of(graph, ir, data, cache), expected, ir)
                with as_if_large(block=1_000 if number else 2):
                    check(rows_of(graph, ir, data, cache), expected, ir)

                plans.add(format_plan(make_plan(ir, data.catalog, Statistics(counts))))
            # The meaning of a walk depends on where it starts, and that on what is bound before.
            assert len(plans) == 1 or query.has_walk, "\n\n".join(plans)
