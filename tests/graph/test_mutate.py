"""Mutations: one publish, one version a table, and the storage they cost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import OmnigraphError, PreconditionFailed
from omnigraph.storage.counters import counting
from tests.graph.reading import (
    ADD,
    add,
    ages,
    heads,
    links,
    names,
    new_graph,
    pins,
    reopen,
    rows,
    run,
    standing,
)

BATCH = """
    insert Person { name: "cy", age: 1 }
    insert Firm { code: "f" }
    insert Knows { from: "cy", to: "ann" }
    insert Knows { from: "ann", to: "cy" }
    update Person set { age: 2 } where name = "cy"
    insert WorksAt { from: "cy", to: "f" }
"""


@pytest.mark.accepts("S-001", "S-024", "S-025")
def test_many_statements_publish_once_and_move_each_table_once(pair: og.Graph) -> None:
    before, version = pins(pair), pair.snapshot().manifest_version

    result = run(pair, BATCH)

    moved = {key: pin - before[key] for key, pin in pins(pair).items() if pin != before[key]}
    assert moved == dict.fromkeys(("edge:Knows", "edge:WorksAt", "node:Firm", "node:Person"), 1)
    assert pair.snapshot().manifest_version == version + 1 == result.manifest_version
    assert heads(pair) == pins(pair)
    assert (result.affected_nodes, result.affected_edges) == (3, 3)
    assert pair.commits()[0].commit_id == result.commit_id


@pytest.mark.accepts("S-018", "S-024", "S-029", "S-030", "S-031")
def test_every_table_is_staged_and_committed_once(pair: og.Graph) -> None:
    """Keyed nodes are merged, edges are appended, and nothing is staged twice."""
    with counting() as counters:
        run(pair, BATCH)

    assert dict(counters.stages) == {"append": 2, "merge_insert": 2}
    assert (counters.stage_append_calls, counters.stage_append_rows) == (2, 3)
    assert (counters.stage_merge_insert_calls, counters.stage_merge_insert_rows) == (2, 2)
    assert (counters.commits, counters.control_merges) == (4, 1)


def test_inserts_at_the_same_time_cost_no_more_than_in_turn(pair: og.Graph) -> None:
    """None is prepared or staged in vain, or looks at what the others are in the middle of."""

    def cost_of(number: int) -> tuple[int, int, int]:
        with counting() as counters:
            add(pair, "person", name=f"p{number:02}")
        return counters.stages.total(), counters.text_reads, counters.control_merges

    alone = cost_of(0)
    with ThreadPoolExecutor(4) as pool:
        costs = list(pool.map(cost_of, range(1, 17)))

    stages, reads, publishes = zip(*costs, strict=True)
    assert max(reads) <= alone[1]
    assert alone[0] == alone[2] == 1
    assert sum(stages) == 16
    assert [each for each in names(pair) if each[0] == "p"] == [f"p{each:02}" for each in range(17)]
    commits = pair.commits()
    assert sum(publishes) == len({commit.manifest_version for commit in commits[:16]})


def test_a_warm_one_row_insert_costs_two_commits_and_no_control_read(pair: og.Graph) -> None:
    with counting() as counters:
        add(pair, "person", name="cy")

    assert (counters.commits, counters.control_merges) == (1, 1)
    assert (counters.control_reads, counters.control_appends, counters.forks) == (0, 0, 0)
    assert counters.control_compactions == 0
    assert (counters.text_writes, counters.text_deletes) == (1, 1)


@pytest.mark.accepts("S-029")
def test_an_insert_without_a_key_is_an_append_of_a_new_node(graph: og.Graph) -> None:
    with counting() as counters:
        run(graph, 'insert Note { text: "a" } insert Note { text: "a" }')

    assert dict(counters.stages) == {"append": 1}
    found = rows(graph, "Note")
    assert [row["text"] for row in found] == ["a", "a"]
    assert len({row["id"] for row in found}) == 2


@pytest.mark.accepts("S-030")
def test_an_insert_of_an_existing_key_replaces_the_row(pair: og.Graph) -> None:
    run(pair, 'insert Person { name: "ann", age: 7, email: "a@x" }')
    run(pair, 'insert Person { name: "ann", age: 8 }')

    assert [row for row in rows(pair, "Person") if row["name"] == "ann"] == [
        {"id": "ann", "age": 8, "email": None, "name": "ann"}
    ]


@pytest.mark.accepts("S-031")
def test_an_update_changes_what_it_matches_and_nothing_else(pair: og.Graph) -> None:
    run(pair, 'insert Person { name: "ann", age: 7, email: "a@x" }')

    result = add(pair, "age", name="ann", age=9)

    assert result.affected_nodes == 1
    assert rows(pair, "Person") == [
        {"id": "ann", "age": 9, "email": "a@x", "name": "ann"},
        {"id": "bob", "age": None, "email": None, "name": "bob"},
    ]


@pytest.mark.parametrize(
    "body",
    [
        'update Person set { age: 1 } where name = "nobody"',
        'delete Person where name = "nobody"',
        'delete Knows where from = "nobody"',
    ],
)
def test_a_write_that_matches_nothing_makes_no_commit(pair: og.Graph, body: str) -> None:
    before = standing(pair)

    with counting() as counters:
        result = run(pair, body)

    assert (result.commit_id, result.affected_nodes, result.affected_edges) == (None, 0, 0)
    assert result.manifest_version == before.manifest_version
    assert standing(pair) == before
    assert (counters.commits, counters.control_merges, counters.text_writes) == (0, 0, 0)


@pytest.mark.accepts("S-148")
def test_the_actor_of_a_write_is_on_its_commit(pair: og.Graph) -> None:
    """The actor of the call, else of the handle, else none."""
    signed = reopen(pair, actor="ada")
    add(signed, "person", name="p")
    signed.mutate(ADD, "person", {"name": "q"}, actor="lin")
    signed.load([{"type": "Firm", "data": {"code": "f"}}], mode="append", actor="sam")

    assert [commit.actor for commit in pair.commits()] == ["sam", "lin", "ada", None, None]
    assert [commit.actor for commit in pair.commits(actor="lin")] == ["lin"]
    assert len(pair.commits(limit=2)) == 2
    for call in (pair.commits, pair.log):
        with pytest.raises(og.errors.BadRequestError, match="limit is -1, expected 0 or more"):
            call(limit=-1)


def test_commits_form_a_chain_that_names_its_manifest_versions(pair: og.Graph) -> None:
    for number in range(3):
        add(pair, "person", name=f"p{number}")

    found = pair.commits()

    assert [commit.parent_id for commit in found[:-1]] == [c.commit_id for c in found[1:]]
    assert [commit.manifest_version for commit in found] == [5, 4, 3, 2, 1]
    for commit in found:
        assert pair.commit(commit.commit_id) == commit


def test_an_earlier_version_stays_as_it_was(pair: og.Graph) -> None:
    version = pair.snapshot().manifest_version
    add(pair, "gone", name="ann")
    add(pair, "person", name="cy")

    assert names(pair) == ["bob", "cy"]
    assert names(pair, version=version) == ["ann", "bob"]
    with pytest.raises(og.errors.VersionNotFound):
        pair.snapshot_at_version(999)
    with pytest.raises(og.errors.CommitNotFound):
        pair.commit("01NOSUCHCOMMIT")


def test_a_write_can_insist_on_the_head_it_saw(pair: og.Graph) -> None:
    seen = pair.commits()[0].commit_id
    pair.mutate(ADD, "person", {"name": "cy"}, if_commit=seen)
    before = standing(pair)

    with pytest.raises(PreconditionFailed) as caught:
        pair.mutate(ADD, "person", {"name": "dee"}, if_commit=seen)

    assert (caught.value.expected, caught.value.actual) == (seen, pair.commits()[0].commit_id)
    assert standing(pair) == before
    with pytest.raises(PreconditionFailed):
        pair.mutate(ADD, "gone", {"name": "nobody"}, if_commit=seen)


def test_now_is_one_instant_for_all_statements(tmp_path: Path) -> None:
    clock = new_graph(tmp_path / "clock", "node Seen { name: String @key  at: DateTime }")
    run(clock, 'insert Seen { name: "a", at: now() } insert Seen { name: "b", at: now() }')

    found = rows(clock, "Seen")

    assert found[0]["at"] == found[1]["at"] is not None


EVERY_TYPE = """
node Thing {
    name: String @key
    flag: Bool?
    small: I32?
    large: I64?
    count: U32?
    total: U64?
    half: F32?
    whole: F64?
    day: Date?
    at: DateTime?
    kind: enum(red, blue)?
    words: [String]?
    numbers: [I64]?
    place: Vector(2)?
    body: Blob?
}
"""


@pytest.mark.accepts("S-032")
@pytest.mark.parametrize(
    ("column", "literal", "stored"),
    [
        ("flag", "true", True),
        ("small", "5", 5),
        ("large", "9007199254740993", 9007199254740993),
        ("count", "4294967295", 4294967295),
        ("total", "9223372036854775807", 9223372036854775807),
        ("half", "0.5", 0.5),
        ("whole", "2", 2.0),
        ("day", 'date("2024-02-29")', "2024-02-29"),
        ("at", 'datetime("2024-02-29T10:00:00Z")', "2024-02-29 10:00:00"),
        ("kind", '"red"', "red"),
        ("words", '["a", "b"]', ["a", "b"]),
        ("numbers", "[1, 2]", [1, 2]),
        ("place", "[1.5, 2.0]", [1.5, 2.0]),
    ],
)
def test_a_literal_is_stored_at_the_type_of_its_column(
    tmp_path_factory: pytest.TempPathFactory, column: str, literal: str, stored: object
) -> None:
    graph = new_graph(tmp_path_factory.mktemp("types") / "graph", EVERY_TYPE)

    run(graph, f'insert Thing {{ name: "t", {column}: {literal} }}')

    found = rows(graph, "Thing")[0][column]
    assert (str(found) if column in ("day", "at") else found) == stored


def test_one_write_sees_the_rows_another_handle_has_just_acknowledged(pair: og.Graph) -> None:
    """Invariant I11: a handle opened earlier needs no refresh."""
    other = reopen(pair)

    add(pair, "person", name="cy")

    assert names(other) == ["ann", "bob", "cy"]
    assert add(other, "knows", a="cy", b="ann").affected_edges == 1
    assert ("cy", "ann") in links(pair)


def test_a_stale_handle_updates_a_row_it_had_never_seen(pair: og.Graph) -> None:
    """What another handle acknowledged is not skipped as if it matched nothing."""
    other = reopen(pair)
    add(pair, "person", name="cy")

    assert add(other, "age", name="cy", age=3).affected_nodes == 1
    assert ages(pair)["cy"] == 3


def test_a_stale_handle_deletes_a_row_it_had_never_seen(pair: og.Graph) -> None:
    other = reopen(pair)
    add(pair, "person", name="cy")

    assert add(other, "gone", name="cy").affected_nodes == 1
    assert names(pair) == ["ann", "bob"]


def test_a_stale_handle_may_reuse_a_unique_value_that_is_free_again(pair: og.Graph) -> None:
    run(pair, 'insert Person { name: "cy", email: "c@x" }')
    other = reopen(pair)
    add(pair, "gone", name="cy")

    assert run(other, 'insert Person { name: "dee", email: "c@x" }').affected_nodes == 1


def test_a_stale_handle_may_append_an_id_that_is_free_again(pair: og.Graph) -> None:
    other = reopen(pair)
    add(pair, "gone", name="ann")

    other.load([{"type": "Person", "data": {"name": "ann"}}], mode="append")

    assert names(pair) == ["ann", "bob"]


def test_a_refused_write_is_still_refused_on_a_stale_handle(pair: og.Graph) -> None:
    other = reopen(pair)
    add(pair, "person", name="cy")

    with pytest.raises(OmnigraphError, match="not found in Person"):
        add(other, "knows", a="cy", b="nobody")


@pytest.mark.parametrize(
    ("name", "value"),
    [("tags", '["x"]'), ("counts", "[1]"), ("place", "[1.0, 2.0]"), ("photo", '"base64:AAEC"')],
)
def test_an_update_that_matches_no_row_is_no_commit(tmp_path: Path, name: str, value: str) -> None:
    """Whatever the type of the property: of no rows there is no list to repeat."""
    graph = new_graph(
        tmp_path / "graph",
        "node Doc { slug: String @key  tags: [String]?  counts: [I32]?  place: Vector(2)?"
        "  photo: Blob? }",
    )
    before = standing(graph)

    result = run(graph, f'update Doc set {{ {name}: {value} }} where slug = "none"')

    assert (result.commit_id, result.affected_nodes) == (None, 0)
    assert standing(graph) == before
