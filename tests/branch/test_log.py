"""`log` and `commits` with conditions: what they list, what they cost, what a cleanup leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, EntityNotFound
from omnigraph.storage.counters import counting
from tests.branch.people import change, new_people

ROWS = 4_000
SCHEMA = "node N { k: String @key n: I32? } node M { k: String @key n: I32? }"


def ids(found: list[og.Commit]) -> list[str]:
    return [each.commit_id for each in found]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Sixty commits on N, and every tenth of them is followed by one on M."""
    graph = og.init(
        tmp_path_factory.mktemp("log") / "g.omni",
        schema=SCHEMA,
        self_care=False,
        durability="process",
    )
    graph.load([{"type": "N", "data": {"k": f"k{i}", "n": 0}} for i in range(50)], mode="append")
    many = [{"type": "M", "data": {"k": f"k{i}", "n": 0}} for i in range(ROWS)]
    graph.load(many, mode="append")
    for number in range(60):
        _update(graph, "N", number % 50, number + 1)
        if number % 10 == 0:
            _update(graph, "M", 7, number + 1)
    return graph


def _update(graph: og.Graph, kind: str, key: int, value: int) -> None:
    text = f'query q() {{ update {kind} set {{ n: {value} }} where k = "k{key}" }}'
    graph.mutate(text, actor=f"by-{value}", message=f"{kind} gets {value}")


@pytest.mark.slow
def test_a_log_of_a_type_costs_the_commits_that_are_listed(long: og.Graph) -> None:
    """Not the history: one read of the manifest tells them, and what is not wanted is not read."""
    long.log(type="M", limit=1)

    with counting() as counters:
        [newest] = long.log(type="M", limit=1)
    assert newest.message == "M gets 51"
    one = counters.opens, counters.control_reads, counters.rows_scanned
    assert counters.control_reads <= 4
    with counting() as counters:
        assert len(long.log(type="M")) == 7
    assert counters.control_reads <= 1 + 2 * 7 + 2, "two states for each commit that is listed"
    assert one[0] < counters.opens
    # The load brought all rows, and they are counted twice; those of the manifest count as well.
    assert counters.rows_scanned <= 2.5 * ROWS, "no table is read whole for each commit"
    with counting() as counters:
        [newest] = long.log(type="M", id="k7", limit=1)
    assert newest.message == "M gets 51"
    assert counters.control_reads <= 2


@pytest.mark.slow
def test_conditions_on_a_log_are_conditions_on_its_commits(long: og.Graph) -> None:
    every = long.log()

    middle = every[30]
    assert ids(long.log(since=middle.time)) == ids(every[:31])
    assert ids(long.log(until=middle.time)) == ids(every[30:])
    assert ids(long.log(after=middle.commit_id, limit=3)) == ids(every[31:34])
    assert [each.actor for each in long.log(message="n GETS 1", type="N")] == [
        *(f"by-{number}" for number in range(19, 9, -1)),
        "by-1",
    ]
    assert ids(long.log(actor="by-1")) == ids([each for each in every if each.actor == "by-1"])
    assert ids(long.commits(type="M", id="k7")) == ids(long.log(type="M", id="k7"))
    assert long.log(type="M", id="k7", since=every[0].time) == []
    with pytest.raises(EntityNotFound):
        long.log(type="M", id="nothing")
    with pytest.raises(BadRequestError, match="without `type`"):
        long.log(id="k7")
    with pytest.raises(BadRequestError, match="expected 0 or more"):
        long.log(limit=-1)


@pytest.mark.slow
def test_patches_are_read_one_by_one(long: og.Graph) -> None:
    patches = long.log_patches(changes=100)

    with counting() as counters:
        first = next(patches)
    assert counters.control_reads <= 2
    [record] = first.changes or []
    assert (record["id"], record["after"]["properties"]["n"]) == ("k9", 60)
    *_, load, _ = long.log_patches(changes=2)
    assert (len(load.changes or []), load.is_cut) == (2, True)
    assert [each.inserts for each in load.tables] == [50], "counted, though they are not shown"
    assert {each.changes is None for each in long.log_patches(limit=3)} == {True}


def test_a_log_of_a_type_tells_what_a_cleanup_left_of_it(tmp_path: Path) -> None:
    """A commit whose states are gone still published the table; its changes are not stored."""
    graph = new_people(tmp_path / "g.omni")
    for age in range(31, 36):
        change(graph, "age", name="alice", age=age)
    change(graph, "firm", code="f9")
    before = ids(graph.log(type="Person"))

    graph.cleanup(keep=2, confirm=True)

    assert ids(graph.log(type="Person")) == before
    patches = list(graph.log_patches(type="Person", changes=10))
    assert patches[-1].notes == ("what it changed was removed by cleanup",)
    assert patches[-1].changes is None


def test_rows_written_back_as_they_were_are_no_change_of_the_type(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "g.omni")
    change(graph, "age", name="alice", age=31)
    expected = ids(graph.log(type="Person"))

    change(graph, "age", name="alice", age=31)

    assert len(graph.log()) > len(expected)
    assert ids(graph.log(type="Person")) == expected


def test_a_type_is_followed_through_its_names_and_changes_of_it(tmp_path: Path) -> None:
    graph = new_people(tmp_path / "g.omni")
    before = graph.log(type="Firm")
    graph.apply_schema(
        graph.schema.replace("node Firm", 'node Company @rename_from("Firm")').replace(
            "-> Firm", "-> Company"
        )
    )

    found = graph.log(type="Company")

    assert ids(found)[1:] == ids(before)
    [patch] = graph.log_patches(type="Company", limit=1)
    assert [each.to_json()["kind"] for each in patch.schema_steps] == ["rename_type"]
    assert patch.tables == ()
