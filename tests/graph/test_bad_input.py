"""Bad input: a typed error, every HEAD where it was, and the next mutation works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequestError,
    ConstraintError,
    KeyConflict,
    OmnigraphError,
    ResourceLimitError,
    SourceError,
)
from tests.graph.reading import names, new_graph, run, standing

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    big: U64?
    score: F64?
    half: F32?
    born: Date?
    seen: DateTime?
    kind: enum(red, blue)?
    tags: [String]?
    place: Vector(3)?
    photo: Blob?
    email: String? @unique
    first: String?
    last: String?
    code: String?
    @unique(first, last)
    @range(age, 0..150)
    @range(score, 0.0..1.0)
    @check(code, "^[A-Z]+$")
}
node Firm { code: String @key  title: String }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Firm @card(0..1)
edge Owns: Person -> Firm { @unique(src, dst) }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """One graph for all of them: what each leaves behind, the next one meets."""
    graph = new_graph(tmp_path_factory.mktemp("bad") / "graph", SCHEMA)
    run(
        graph,
        """
        insert Person { name: "ann", email: "a@x", first: "A", last: "N" }
        insert Person { name: "bob" }
        insert Firm { code: "f", title: "F" }
        insert Firm { code: "g", title: "G" }
        insert Knows { from: "ann", to: "bob" }
        insert WorksAt { from: "ann", to: "f" }
        insert Owns { from: "ann", to: "f" }
        """,
    )
    return graph


def is_refused(graph: og.Graph, act: Any, error: type[OmnigraphError]) -> OmnigraphError:
    """Whether `act` raises and changes nothing; then whether the next write works."""
    before = standing(graph)
    with pytest.raises(error) as caught:
        act()
    assert standing(graph) == before
    assert str(caught.value).strip()
    for alien in ("lance", "LanceError", "DataFusion", "Traceback", "/home/", ".rs:"):
        assert alien not in str(caught.value)
    assert run(graph, 'insert Person { name: "next", age: 1 }').affected_nodes == 1
    return caught.value


MUTATIONS: dict[str, tuple[str, type[OmnigraphError]]] = {
    "unknown node type": ('insert Nobody { name: "x" }', SourceError),
    "unknown edge type": ('delete Likes where from = "x"', SourceError),
    "unknown property": ('insert Person { name: "x", nmae: "y" }', SourceError),
    "wrong literal type": ('insert Person { name: "x", age: "old" }', SourceError),
    "wrong list": ('insert Person { name: "x", tags: [1] }', SourceError),
    "missing key": ("insert Person { age: 1 }", OmnigraphError),
    "missing required": ('insert Firm { code: "x" }', OmnigraphError),
    "missing endpoint": ('insert Knows { from: "ann" }', OmnigraphError),
    "endpoint not there": ('insert Knows { from: "ann", to: "nobody" }', ConstraintError),
    "endpoint of another type": ('insert WorksAt { from: "bob", to: "ann" }', ConstraintError),
    "cardinality": ('insert WorksAt { from: "ann", to: "g" }', ConstraintError),
    "cardinality in one query": (
        'insert WorksAt { from: "bob", to: "f" } insert WorksAt { from: "bob", to: "g" }',
        ConstraintError,
    ),
    "unique value": ('insert Person { name: "x", email: "a@x" }', ConstraintError),
    "unique value in one query": (
        'insert Person { name: "x", email: "e" } insert Person { name: "y", email: "e" }',
        ConstraintError,
    ),
    "unique pair": ('insert Person { name: "x", first: "A", last: "N" }', ConstraintError),
    "unique by update": ('update Person set { email: "a@x" } where name = "bob"', ConstraintError),
    "unique by update of many": (
        'update Person set { email: "same" } where name != ""',
        ConstraintError,
    ),
    "unique edge": ('insert Owns { from: "ann", to: "f" }', ConstraintError),
    "out of range": ('insert Person { name: "x", age: 151 }', ConstraintError),
    "out of range by update": (
        'update Person set { age: 151 } where name = "ann"',
        ConstraintError,
    ),
    "check": ('insert Person { name: "x", code: "abc" }', ConstraintError),
    "enum literal": ('insert Person { name: "x", kind: "green" }', SourceError),
    "too large for I32": ('insert Person { name: "x", age: 2147483648 }', OmnigraphError),
    "not a date": ('insert Person { name: "x", born: date("2023-02-29") }', OmnigraphError),
    "vector of wrong size": ('insert Person { name: "x", place: [1.0, 2.0] }', OmnigraphError),
    "key update": ('update Person set { name: "x" } where name = "ann"', BadRequestError),
    "edge moved": ('update Knows set { from: "bob" } where from = "ann"', OmnigraphError),
    "mixed": (
        'insert Firm { code: "h", title: "H" } delete Knows where from = "ann"',
        BadRequestError,
    ),
    "null literal for required": ('insert Firm { code: "h", title: null }', OmnigraphError),
    "a read": ("match { $p: Person } return { $p.name }", SourceError),
    "nothing": ("", SourceError),
}


@pytest.mark.accepts("S-034", "S-035")
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_bad_mutation_changes_nothing(graph: og.Graph, name: str) -> None:
    body, error = MUTATIONS[name]

    is_refused(graph, lambda: run(graph, body), error)


PARAMETERS: dict[str, tuple[str, str, Any]] = {
    "missing": ("I32", "age: $v", ...),
    "null for required": ("String", "email: $v", None),
    "text for a number": ("I32", "age: $v", "seven"),
    "fraction for an integer": ("I32", "age: $v", 1.5),
    "too large": ("I32", "age: $v", 2**31),
    "far too large": ("U64", "big: $v", 2**64),
    "beyond every width": ("U64", "big: $v", 10**400),
    "negative for unsigned": ("U64", "big: $v", -1),
    "nan": ("F64", "score: $v", float("nan")),
    "infinite": ("F64", "score: $v", float("inf")),
    "too large for F32": ("F32", "half: $v", 1e39),
    "bool for a number": ("I32", "age: $v", True),
    "number for text": ("String", "email: $v", 3),
    "bytes for text": ("String", "email: $v", b"x"),
    "lone surrogate": ("String", "email: $v", "\ud800"),
    "enum": ("String", "kind: $v", "green"),
    "date": ("Date", "born: $v", "2024-13-01"),
    "datetime": ("DateTime", "seen: $v", "noon"),
    "list with a null": ("[String]", "tags: $v", ["a", None]),
    "list of numbers": ("[String]", "tags: $v", [1]),
    "not a list": ("[String]", "tags: $v", "a"),
    "short vector": ("Vector(3)", "place: $v", [1.0, 2.0]),
    "vector with nan": ("Vector(3)", "place: $v", [1.0, 2.0, float("nan")]),
    "vector with text": ("Vector(3)", "place: $v", [1.0, 2.0, "x"]),
    "an object": ("String", "email: $v", {"a": 1}),
}


@pytest.mark.accepts("S-034", "S-035")
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_bad_parameter_changes_nothing(graph: og.Graph, name: str) -> None:
    declared, assignment, value = PARAMETERS[name]
    text = f'query q($v: {declared}) {{ insert Person {{ name: "x", {assignment} }} }}'
    params = {} if value is ... else {"v": value}

    is_refused(graph, lambda: graph.mutate(text, params=params), OmnigraphError)


LOADS: dict[str, tuple[Any, str, type[OmnigraphError]]] = {
    "no such file": ("nowhere.jsonl", "merge", BadRequestError),
    "not JSON": ('{"type": "Person", "data": {"name": "x"}\n', "merge", BadRequestError),
    "not an object": ([3], "merge", OmnigraphError),
    "neither type nor edge": ([{"data": {}}], "merge", OmnigraphError),
    "both": ([{"type": "Person", "edge": "Knows"}], "merge", OmnigraphError),
    "unknown type": ([{"type": "Nobody", "data": {}}], "merge", OmnigraphError),
    "unknown member": ([{"type": "Firm", "data": {}, "extra": 1}], "merge", OmnigraphError),
    "unknown property": (
        [{"type": "Firm", "data": {"code": "x", "title": "X", "tilte": "Y"}}],
        "merge",
        OmnigraphError,
    ),
    "missing required": ([{"type": "Firm", "data": {"code": "x"}}], "merge", OmnigraphError),
    "null required": (
        [{"type": "Firm", "data": {"code": "x", "title": None}}],
        "merge",
        OmnigraphError,
    ),
    "append of what is there": (
        [{"type": "Firm", "data": {"code": "f", "title": "F2"}}],
        "append",
        KeyConflict,
    ),
    "append of one key twice": (
        [{"type": "Firm", "data": {"code": "x", "title": "X"}}] * 2,
        "append",
        OmnigraphError,
    ),
    "edge to nowhere": ([{"edge": "Knows", "from": "ann", "to": "no"}], "append", ConstraintError),
    "edge from nothing": ([{"edge": "Knows", "to": "ann"}], "append", OmnigraphError),
    "bad base64": (
        [{"type": "Person", "data": {"name": "x", "photo": "base64:***"}}],
        "merge",
        OmnigraphError,
    ),
    "overwrite that orphans edges": (
        [{"type": "Firm", "data": {"code": "z", "title": "Z"}}],
        "overwrite",
        ConstraintError,
    ),
    "one bad among good": (
        [
            {"type": "Firm", "data": {"code": "ok", "title": "T"}},
            {"type": "Person", "data": {"name": "x", "age": 900}},
        ],
        "merge",
        ConstraintError,
    ),
    "unknown mode": ([], "upsert", BadRequestError),
}


@pytest.mark.accepts("S-034", "S-035", "S-066", "S-071")
@pytest.mark.parametrize("name", LOADS)
def test_a_bad_load_changes_nothing(graph: og.Graph, name: str) -> None:
    data, mode, error = LOADS[name]

    is_refused(graph, lambda: graph.load(data, mode=mode), error)


def test_more_rows_than_a_mutation_may_stage_are_refused(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph", "node N { name: String @key  n: I32? }")
    graph.load([{"type": "N", "data": {"name": str(n)}} for n in range(8_193)], mode="append")
    before = standing(graph)

    with pytest.raises(ResourceLimitError, match="use `load`") as caught:
        run(graph, 'update N set { n: 1 } where name != ""')

    assert (caught.value.limit, caught.value.actual) == (8_192, 8_193)
    assert standing(graph) == before
    assert run(graph, 'update N set { n: 1 } where name < "2"').affected_nodes > 1_000


def test_a_required_parameter_is_named(graph: og.Graph) -> None:
    with pytest.raises(BadRequestError, match="parameter 'name' not provided"):
        graph.mutate("query q($name: String) { insert Person { name: $name } }")

    assert "ann" in names(graph)
