"""`@default`: what a new row gets where the data says nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import ConstraintError, TypeCheckError
from omnigraph.write.bad_rows import BadRowsError
from tests.graph.reading import new_graph, rows, run

SCHEMA = """
node Task {
    name: String @key
    state: enum(open, done) @default(open)
    rank: I32? @default(-3)
    due: Date @default("2024-01-02")
    at: DateTime? @default("2024-01-02T03:04:05Z")
    share: F32 @default(0.5)
    is_late: Bool @default(false)
    note: String
}
edge Blocks: Task -> Task { why: String @default("unknown")  @key(src, dst) }
"""

FILLED = {"state": "open", "rank": -3, "share": 0.5, "is_late": False}
GIVEN = {"state": "done", "rank": 1, "share": 0.25, "is_late": True}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_graph(tmp_path / "graph", SCHEMA)


def read(graph: og.Graph, name: str) -> dict[str, Any]:
    return next(row for row in rows(graph, "Task") if row["name"] == name)


def shown(graph: og.Graph, name: str) -> dict[str, Any]:
    return {column: value for column, value in read(graph, name).items() if column in FILLED}


def task(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Task", "data": {"name": name, "note": "", **data}}


def test_an_insert_fills_in_what_it_omits(graph: og.Graph) -> None:
    run(graph, 'insert Task { name: "a", note: "" } insert Task { name: "b", note: "", rank: 7 }')
    run(graph, 'insert Blocks { from: "a", to: "b" }')

    assert shown(graph, "a") == FILLED
    assert str(read(graph, "a")["due"]) == "2024-01-02"
    assert str(read(graph, "a")["at"]) == "2024-01-02 03:04:05"
    assert shown(graph, "b") == FILLED | {"rank": 7}
    assert [row["why"] for row in rows(graph, "Blocks")] == ["unknown"]


def test_what_has_no_default_is_still_required(graph: og.Graph) -> None:
    with pytest.raises(TypeCheckError, match="omits `note`"):
        run(graph, 'insert Task { name: "a" }')
    with pytest.raises(BadRowsError, match="'note'"):
        graph.load([{"type": "Task", "data": {"name": "a"}}], mode="append")


@pytest.mark.parametrize("shape", ["lines", "mixed lines", "records", "columns"])
def test_a_load_fills_in_what_is_missing_and_keeps_null_where_it_may_be(
    graph: og.Graph, shape: str
) -> None:
    """Null is a value of an optional property only; what is exported loads back equal."""
    records = [task("a", rank=1), task("b", rank=None), task("c"), task("d", state=None)]
    match shape:
        case "lines":
            graph.load("\n".join(map(json.dumps, records)), mode="append")
        case "mixed lines":
            unusual = dict(reversed(records[0].items()))
            graph.load("\n".join(map(json.dumps, [unusual, *records[1:]])), mode="append")
        case "records":
            graph.load(records, mode="append")
        case _:
            columns = pa.table({"name": ["a", "b"], "note": ["", ""], "rank": [1, None]})
            graph.load_dataframe(columns, type="Task", mode="append")
            others = pa.table({"name": ["c", "d"], "note": ["", ""], "state": [None, None]})
            graph.load_dataframe(others, type="Task", mode="append")

    assert {name: read(graph, name)["rank"] for name in "abcd"} == {
        "a": 1,
        "b": None,
        "c": -3,
        "d": -3,
    }
    assert {row["state"] for row in rows(graph, "Task")} == {"open"}


def test_an_export_loads_back_equal(graph: og.Graph, tmp_path: Path) -> None:
    graph.load([task("a", rank=None), task("b", **GIVEN)], mode="append")
    copy = new_graph(tmp_path / "copy", SCHEMA)

    copy.load("\n".join(map(json.dumps, graph.export())), mode="append")

    assert rows(copy, "Task") == rows(graph, "Task")


def test_an_update_to_null_is_not_the_default(graph: og.Graph) -> None:
    run(graph, 'insert Task { name: "a", note: "" }')

    with pytest.raises(ConstraintError):
        graph.mutate(
            'query q($s: F32?) { update Task set { share: $s } where name = "a" }',
            params={"s": None},
        )
    graph.mutate(
        'query q($r: I32?) { update Task set { rank: $r } where name = "a" }', params={"r": None}
    )

    assert shown(graph, "a") == FILLED | {"rank": None}


def test_a_changed_default_touches_no_table(graph: og.Graph) -> None:
    """Rows that exist keep their value; new ones get the new default."""
    run(graph, 'insert Task { name: "a", note: "" }')
    before = {key: each.version for key, each in graph.snapshot().entries.items()}

    plan = graph.plan_schema(SCHEMA.replace("@default(-3)", "@default(4)"))
    graph.apply_schema(SCHEMA.replace("@default(-3)", "@default(4)"))

    assert [step.to_json() for step in plan.steps] == [
        {
            "kind": "update_property_metadata",
            "type_kind": "node",
            "type_name": "Task",
            "property_name": "rank",
            "annotations": [{"name": "default", "value": 4}],
        }
    ]
    assert before == {key: each.version for key, each in graph.snapshot().entries.items()}
    run(graph, 'insert Task { name: "b", note: "" }')
    assert [row["rank"] for row in rows(graph, "Task")] == [-3, 4]
