"""Restore: types or single entities become what they were; the rest stays."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.branch.merge import MergePreview
from omnigraph.errors import BadRequestError, CommitStateGone, MergeConflicts, NotFoundError
from omnigraph.storage.counters import counting
from tests.branch.people import SCHEMA, change, new_people, state_of


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_people(tmp_path / "graph")


def test_the_whole_graph_goes_back_to_a_state(graph: og.Graph) -> None:
    before = state_of(graph)
    graph.tag("good")
    change(graph, "gone", name="bob")
    change(graph, "person", name="eve", age=1)
    change(graph, "age", name="alice", age=1)

    result = graph.restore("good", actor="ada")

    assert state_of(graph) == before
    assert (result.affected_nodes, result.affected_edges) == (3, 2)
    head = graph.commits()[0]
    assert (head.commit_id, head.actor) == (result.commit_id, "ada")
    assert head.manifest_version == result.manifest_version
    assert head.metadata["restored_from"] == graph.commit("good").commit_id
    assert graph.verify().is_clean


def test_one_type_goes_back_and_others_stay(graph: og.Graph) -> None:
    graph.tag("good")
    change(graph, "person", name="eve", age=1)
    change(graph, "firm", code="f3")

    graph.restore("good", types=["Person"])

    assert "eve" not in state_of(graph)["node:Person"]
    assert "f3" in state_of(graph)["node:Firm"]


def test_single_entities_go_back(graph: og.Graph) -> None:
    graph.tag("good")
    for name in ("alice", "bob"):
        change(graph, "age", name=name, age=1)
    change(graph, "person", name="eve", age=1)

    graph.restore("good", ids=["alice", "eve"])

    ages = {name: row["age"] for name, row in state_of(graph)["node:Person"].items()}
    assert ages == {"alice": 30, "bob": 1, "carol": 40, "dan": 50}


def test_names_that_are_given_many_times_are_looked_up_once(graph: og.Graph) -> None:
    graph.tag("good")
    change(graph, "age", name="alice", age=1)
    types, ids = ["Person", "node:Person"], ["alice", "bob"]

    with counting() as once:
        graph.restore("good", types=types, ids=ids, preview=True)
    with counting() as often:
        graph.restore("good", types=types * 500, ids=ids * 500, preview=True)

    assert (often.scans, often.opens) == (once.scans, once.opens)


def test_a_state_that_is_shown_already_makes_no_commit(graph: og.Graph) -> None:
    head = graph.commits()[0]

    result = graph.restore("main")

    assert (result.commit_id, result.affected_nodes) == (None, 0)
    assert graph.commits()[0] == head


def test_a_result_that_breaks_a_rule_is_refused(graph: og.Graph) -> None:
    graph.tag("good")
    change(graph, "person", name="eve", age=1)
    change(graph, "knows", a="alice", b="eve")
    before = state_of(graph)

    with pytest.raises(MergeConflicts, match="restore conflicts: edge:Knows"):
        graph.restore("good", types=["Person"])
    preview = graph.restore("good", types=["Person"], preview=True)

    assert isinstance(preview, MergePreview)
    assert [each.kind for each in preview.conflicts] == ["orphan_edge"]
    assert state_of(graph) == before


def test_bad_names_are_refused(graph: og.Graph) -> None:
    with pytest.raises(NotFoundError, match="there is no 'nope' to restore"):
        graph.restore("main~1", ids=["nope"])
    with pytest.raises(BadRequestError, match="did you mean `Person`"):
        graph.restore("main~1", types=["Persn"])
    with pytest.raises(NotFoundError, match="not found"):
        graph.restore("nope")


def test_a_type_that_was_added_since_becomes_empty_and_a_renamed_one_goes_back(
    graph: og.Graph,
) -> None:
    graph.tag("good")
    renamed = SCHEMA.replace("node Firm {", 'node Company @rename_from("Firm") {').replace(
        "-> Firm", "-> Company"
    )
    graph.apply_schema(f"{renamed}\nnode Town {{ name: String @key }}")
    graph.mutate('query q() { insert Town { name: "t" } insert Company { code: "c" } }')

    graph.restore("good")

    assert state_of(graph)["node:Town"] == {}
    assert set(state_of(graph)["node:Company"]) == {"f1", "f2"}
    assert graph.verify().is_clean


def test_a_state_that_a_cleanup_removed_is_refused(graph: og.Graph) -> None:
    old = graph.commits()[0].commit_id
    for age in range(5):
        change(graph, "age", name="alice", age=age)
    graph.cleanup(keep=1, older_than=timedelta(0), confirm=True)

    with pytest.raises(CommitStateGone):
        graph.restore(old)
