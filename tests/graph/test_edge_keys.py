"""Edges with a key: the same fact written again, on whatever path, is the same edge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import KeyConflict, MergeConflicts
from omnigraph.write.bad_rows import BadRowsError
from tests.graph.reading import new_graph, run

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { since: I32?  @key(src, dst) }
edge Pays: Person -> Person @card(0..2) { day: Date  amount: F64?  @key(src, dst, day) }
"""

PEOPLE = [{"type": "Person", "data": {"name": name}} for name in ("ann", "bob", 'c"y')]


def knows(source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": data}


def pays(day: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Pays", "from": "ann", "to": "bob", "data": {"day": day, **data}}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = new_graph(tmp_path / "graph", SCHEMA)
    graph.load(PEOPLE, mode="append")
    return graph


def edges(graph: og.Graph, type_name: str = "Knows", **at: Any) -> dict[str, dict[str, Any]]:
    found = graph.edges(type_name, **at).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row.pop("id"): row for row in found}


def test_a_merge_load_run_twice_leaves_the_edges_of_one(graph: og.Graph) -> None:
    records = [knows("ann", "bob", since=1), knows("ann", 'c"y'), pays("2024-01-02", amount=1.0)]
    graph.load(records, mode="merge")
    first = edges(graph), edges(graph, "Pays")

    graph.load([records[0], *records], mode="merge")

    assert (edges(graph), edges(graph, "Pays")) == first
    assert first[0].keys() == {'["ann","bob"]', '["ann","c\\"y"]'}
    assert first[1].keys() == {'["ann","bob","19724"]'}


def test_an_insert_replaces_the_edge_of_its_key(graph: og.Graph) -> None:
    run(graph, 'insert Knows { from: "ann", to: "bob", since: 1 }')

    run(
        graph,
        'insert Knows { from: "ann", to: "bob", since: 2 }'
        ' insert Knows { from: "ann", to: "bob" }'
        ' insert Knows { from: "bob", to: "ann", since: 3 }',
    )

    assert {id_: row["since"] for id_, row in edges(graph).items()} == {
        '["ann","bob"]': None,
        '["bob","ann"]': 3,
    }


def test_a_replaced_edge_counts_once(graph: og.Graph) -> None:
    """`@card` is 2: the same fact again is no third edge, another day is."""
    graph.load([pays("2024-01-02"), pays("2024-01-03")], mode="append")

    graph.load([pays("2024-01-02", amount=5.0)], mode="merge")

    assert len(edges(graph, "Pays")) == 2
    with pytest.raises(BadRowsError, match="@card violation"):
        graph.load([pays("2024-01-04")], mode="merge")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (knows("ann", "bob", id="mine"), "id does not match the key"),
        (knows("ann", "bob", id='["bob","ann"]'), "id does not match the key"),
        ({"edge": "Pays", "from": "ann", "to": "bob"}, "non-nullable property 'day'"),
    ],
)
def test_a_record_that_contradicts_its_key_is_refused_by_file_and_line(
    graph: og.Graph, tmp_path: Path, record: dict[str, Any], reason: str
) -> None:
    file = tmp_path / "edges.jsonl"
    file.write_text("\n".join(map(json.dumps, [knows("bob", "ann"), record])))

    with pytest.raises(BadRowsError, match=reason) as caught:
        graph.load(file, mode="merge")

    assert f"{file}:2: " in str(caught.value)
    assert edges(graph) == {}


def test_an_append_of_an_edge_that_is_there_is_a_key_conflict(graph: og.Graph) -> None:
    graph.load([knows("ann", "bob")], mode="append")

    with pytest.raises(KeyConflict):
        graph.load([knows("ann", "bob")], mode="append")
    with pytest.raises(BadRowsError, match=r"@unique violation on Knows\.\(src, dst\)"):
        graph.load([knows("bob", "ann"), knows("bob", "ann")], mode="append")


def test_what_is_exported_loads_back_equal(graph: og.Graph, tmp_path: Path) -> None:
    graph.load([knows("ann", 'c"y', since=1), pays("2024-01-02")], mode="append")
    copy = new_graph(tmp_path / "copy", SCHEMA)

    copy.load(list(graph.export()), mode="append")

    assert (edges(copy), edges(copy, "Pays")) == (edges(graph), edges(graph, "Pays"))


def test_two_branches_that_write_the_same_fact_agree(graph: og.Graph) -> None:
    graph.create_branch("review")
    for branch in ("main", "review"):
        run(graph, 'insert Knows { from: "ann", to: "bob", since: 1 }', branch)
    run(graph, 'insert Knows { from: "bob", to: "ann" }', "review")

    graph.merge("review", "main")

    assert edges(graph).keys() == {'["ann","bob"]', '["bob","ann"]'}
    assert [change.id for change in graph.diff("main", "review")] == []


def test_two_branches_that_contradict_each_other_conflict(graph: og.Graph) -> None:
    graph.create_branch("review")
    for branch, since in (("main", 1), ("review", 2)):
        run(graph, f'insert Knows {{ from: "ann", to: "bob", since: {since} }}', branch)

    with pytest.raises(MergeConflicts, match="divergent_insert"):
        graph.merge("review", "main")
    graph.merge("review", "main", resolve="theirs")

    assert edges(graph) == {'["ann","bob"]': {"src": "ann", "dst": "bob", "since": 2}}


def test_the_id_of_an_edge_is_read_and_deleted_by(graph: og.Graph) -> None:
    graph.load([knows("ann", "bob"), knows("bob", "ann")], mode="append")
    ids = "query q() { match { $a: Person $a $k:knows $b } return { $k.id } order { $k.id desc } }"
    assert graph.query(ids).rows() == [{"k.id": '["bob","ann"]'}, {"k.id": '["ann","bob"]'}]

    found = graph.query(
        "query q($id: String) { match { $a: Person $a $k:knows $b $k.id = $id } return { $a } }",
        params={"id": '["bob","ann"]'},
    )
    gone = run(graph, "delete Knows where id = $id", params={"id": '["bob","ann"]'})

    assert found.rows() == [{"a": "bob"}]
    assert gone.affected_edges == 1
    assert edges(graph).keys() == {'["ann","bob"]'}


def test_renames_leave_the_ids_of_edges_alone(graph: og.Graph) -> None:
    """The key of the nodes, the node type, the edge type and a member of the key get new names."""
    graph.load([knows("ann", "bob"), pays("2024-01-02")], mode="append")

    graph.apply_schema("""
        node Human @rename_from("Person") { full: String @key @rename_from("name") }
        edge Knows: Human -> Human { since: I32?  @key(src, dst) }
        edge Paid: Human -> Human @card(0..2) @rename_from("Pays") {
            a_day: Date @rename_from("day")  amount: F64?  @key(src, dst, a_day)
        }
    """)
    again = {"edge": "Paid", "from": "ann", "to": "bob", "data": {"a_day": "2024-01-02"}}
    graph.load([knows("ann", "bob", since=7), again], mode="merge")

    assert {id_: row["since"] for id_, row in edges(graph).items()} == {'["ann","bob"]': 7}
    assert edges(graph, "Paid").keys() == {'["ann","bob","19724"]'}
    assert [each for each in graph.verify().findings if each.check == "keys"] == []
