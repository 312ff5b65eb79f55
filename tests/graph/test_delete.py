"""Deletes: cascades, counts, staged like everything else, and never mixed with inserts."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, ConstraintError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.storage.counters import counting
from tests.graph.reading import (
    add,
    heads,
    links,
    names,
    new_graph,
    pins,
    rows,
    run,
    sidecars,
    standing,
)


@pytest.fixture
def ring(graph: og.Graph) -> og.Graph:
    """a → b → c → a, a knows itself, and all of them work at f."""
    records: list[dict[str, object]] = [
        {"type": "Person", "data": {"name": name}} for name in "abc"
    ]
    records += [{"type": "Firm", "data": {"code": "f"}}]
    records += [{"edge": "Knows", "from": s, "to": d} for s, d in ("ab", "bc", "ca", "aa")]
    records += [{"edge": "WorksAt", "from": name, "to": "f"} for name in "abc"]
    graph.load(records, mode="append")
    return graph


@pytest.mark.accepts("S-038")
def test_deleting_a_node_takes_its_edges_of_every_type_along(ring: og.Graph) -> None:
    result = add(ring, "gone", name="a")

    assert (result.affected_nodes, result.affected_edges) == (1, 4)
    assert names(ring) == ["b", "c"]
    assert links(ring) == [("b", "c")]
    assert links(ring, "WorksAt") == [("b", "f"), ("c", "f")]


@pytest.mark.accepts("S-038")
def test_a_cascade_and_an_explicit_edge_delete_count_each_edge_once(ring: og.Graph) -> None:
    before = pins(ring)

    result = run(
        ring,
        """
        delete Knows where from = "a"
        delete Person where name = "a"
        delete Person where name >= "a"
        """,
    )

    assert (result.affected_nodes, result.affected_edges) == (3, 7)
    moved = {key: pin - before[key] for key, pin in pins(ring).items() if pin != before[key]}
    assert moved == {"edge:Knows": 1, "edge:WorksAt": 1, "node:Person": 1}
    assert [rows(ring, name) for name in ("Person", "Knows", "WorksAt")] == [[], [], []]


@pytest.mark.accepts("S-038")
def test_edges_are_deleted_by_either_end(ring: og.Graph) -> None:
    assert run(ring, 'delete WorksAt where to = "f"').affected_edges == 3
    assert run(ring, 'delete Knows where to = "a"').affected_edges == 2
    assert names(ring) == ["a", "b", "c"]


@pytest.mark.accepts("S-039", "S-045")
def test_a_delete_is_staged_and_moves_no_head_before_its_sidecar(ring: og.Graph) -> None:
    """A crash before the sidecar leaves no drift at all."""
    before = standing(ring)

    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: "raise"}), pytest.raises(FailpointError):
        add(ring, "gone", name="a")

    assert standing(ring) == before
    with counting() as counters:
        add(ring, "gone", name="a")
    assert dict(counters.stages) == {"delete": 3}
    assert (counters.commits, counters.control_merges) == (3, 1)


@pytest.mark.accepts("S-043", "S-044")
def test_a_delete_that_fails_in_its_cascade_can_be_tried_again(ring: og.Graph) -> None:
    before = standing(ring)

    with (
        arm_failpoints({Failpoint.MUTATION_DELETE_NODE_PRE_PRIMARY_DELETE: "raise"}),
        pytest.raises(FailpointError),
    ):
        add(ring, "gone", name="a")

    assert standing(ring) == before
    assert add(ring, "gone", name="a").affected_nodes == 1
    assert heads(ring) == pins(ring)
    assert sidecars(ring) == []


@pytest.mark.accepts("S-040", "S-041", "S-042")
@pytest.mark.parametrize(
    "body",
    [
        'insert Firm { code: "g" } delete Person where name = "a"',
        'delete Knows where from = "a" insert Firm { code: "g" }',
        'update Person set { age: 1 } where name = "a" delete Person where name = "b"',
    ],
)
def test_a_query_that_builds_and_destroys_is_refused_before_any_storage_is_touched(
    ring: og.Graph, body: str
) -> None:
    """Only the three schema files are looked at, which every operation does."""
    before = standing(ring)

    with counting() as counters, pytest.raises(BadRequestError) as caught:
        run(ring, body)

    assert "mixes inserts/updates and deletes; split into separate mutations" in str(caught.value)
    assert caught.value.kind == "bad_request"
    assert (counters.opens, counters.head_probes, counters.scans) == (0, 0, 0)
    assert (counters.control_reads, counters.text_writes, counters.text_lists) == (0, 0, 0)
    assert counters.text_reads in (0, 3)  # by their attributes, or once
    assert standing(ring) == before


def test_a_compile_error_touches_no_storage(ring: og.Graph) -> None:
    for text in ("query q() { insert Nobody { name: 1 } }", "query q( {"):
        with counting() as counters, pytest.raises(og.errors.SourceError):
            ring.mutate(text)
        assert (counters.opens, counters.head_probes, counters.scans) == (0, 0, 0)
        assert (counters.control_reads, counters.text_writes) == (0, 0)


TEAM = """
node Person { name: String @key }
node Team { code: String @key }
edge In: Person -> Team @card(1..2)
"""


def test_a_minimum_that_a_delete_would_break_is_refused(tmp_path: Path) -> None:
    team = new_graph(tmp_path / "graph", TEAM)
    run(
        team,
        'insert Person { name: "a" } insert Team { code: "t" } insert In { from: "a", to: "t" }',
    )
    before = standing(team)

    for refused in ('delete In where from = "a"', 'delete Team where code = "t"'):
        with pytest.raises(ConstraintError, match="@card violation"):
            run(team, refused)

    assert standing(team) == before
    assert run(team, 'delete Person where name = "a"').affected_edges == 1
