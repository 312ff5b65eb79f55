"""Conflicts: exactly one winner, a typed loser, and nothing of the loser in the graph."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import lance
import pytest

import omnigraph as og
from omnigraph.errors import ConflictError, ExpectedVersionMismatch
from tests.graph.reading import add, ages, heads, links, names, pins, reopen, rows, run, standing


@pytest.mark.accepts("S-028", "S-145", "S-146")
def test_a_stale_update_is_refused_with_what_it_expected_and_what_is(pair: og.Graph) -> None:
    stale = reopen(pair)
    seen = pins(pair)["node:Person"]
    add(pair, "age", name="ann", age=1)
    before = standing(pair)

    with pytest.raises(ExpectedVersionMismatch) as caught:
        add(stale, "age", name="ann", age=2)

    error = caught.value
    assert (error.table_key, error.expected, error.actual) == ("node:Person", seen, seen + 1)
    assert (error.kind, error.http_status) == ("conflict", 409)
    assert str(error) == (
        f"stale view of 'node:Person': expected manifest table version {seen} "
        f"but current is {seen + 1} — refresh and retry"
    )
    assert standing(pair) == before
    stale.refresh()
    assert add(stale, "age", name="ann", age=2).affected_nodes == 1
    assert ages(pair)["ann"] == 2


@pytest.mark.parametrize(
    "write",
    [
        lambda graph: add(graph, "gone", name="ann"),
        lambda graph: add(graph, "age", name="ann", age=2),
        lambda graph: graph.load(
            [{"type": "Person", "data": {"name": name}} for name in ("ann", "bob", "z")],
            mode="overwrite",
        ),
        lambda graph: run(
            graph,
            'insert Person { name: "z" } update Person set { age: 2 } where name = "ann"',
        ),
    ],
    ids=["delete", "update", "overwrite", "insert-and-update"],
)
def test_every_write_that_decided_from_old_rows_is_refused(
    pair: og.Graph, write: Callable[[og.Graph], object]
) -> None:
    stale = reopen(pair)
    add(pair, "age", name="ann", age=1)
    before = standing(pair)

    with pytest.raises(ExpectedVersionMismatch):
        write(stale)

    assert standing(pair) == before
    assert ages(pair) == {"ann": 1, "bob": None}


@pytest.mark.parametrize(
    "write",
    [
        lambda graph: add(graph, "person", name="z"),
        lambda graph: add(graph, "knows", a="bob", b="ann"),
        lambda graph: add(graph, "note", text="z"),
        lambda graph: graph.load([{"type": "Person", "data": {"name": "z"}}], mode="merge"),
        lambda graph: graph.load([{"type": "Person", "data": {"name": "z"}}], mode="append"),
    ],
    ids=["upsert", "edge", "unkeyed", "merge", "append"],
)
def test_an_insert_of_a_stale_handle_is_made_on_top_of_what_is_there(
    pair: og.Graph, write: Callable[[og.Graph], object]
) -> None:
    stale = reopen(pair)
    add(pair, "pair", a="cy", b="dee")
    add(pair, "note", text="y")

    write(stale)

    assert {"ann", "bob", "cy", "dee"} <= set(names(pair))
    assert ("cy", "dee") in links(pair)
    assert "y" in [row["text"] for row in rows(pair, "Note")]
    assert heads(pair) == pins(pair)


def test_a_stale_insert_of_a_node_that_went_is_checked_again(pair: og.Graph) -> None:
    """The endpoint was there when the write was prepared, and is not any more."""
    stale = reopen(pair)
    add(pair, "gone", name="bob")
    before = standing(pair)

    with pytest.raises(og.errors.ConstraintError, match="'bob' not found in Person"):
        add(stale, "knows", a="ann", b="bob")

    assert standing(pair) == before


def test_a_strict_write_is_not_refused_for_a_table_that_was_only_laid_out_anew(
    pair: og.Graph,
) -> None:
    add(pair, "person", name="zoe")
    stale = reopen(pair)
    seen = pins(pair)["node:Person"]
    assert pair.optimize()

    add(stale, "age", name="ann", age=2)
    add(stale, "gone", name="zoe")

    assert pins(pair)["node:Person"] > seen + 2  # the new layout, and both writes
    assert ages(reopen(pair)) == {"ann": 2, "bob": None}


@pytest.mark.accepts("S-123", "S-145")
def test_of_many_strict_writers_with_one_view_exactly_one_wins(pair: og.Graph) -> None:
    handles = [reopen(pair) for _ in range(6)]
    together = threading.Barrier(len(handles))

    def attempt(number: int) -> ExpectedVersionMismatch | int:
        together.wait()
        try:
            add(handles[number], "age", name="ann", age=number)
        except ExpectedVersionMismatch as lost:
            return lost
        return number

    with ThreadPoolExecutor(len(handles)) as threads:
        outcomes = list(threads.map(attempt, range(len(handles))))

    winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert len(winners) == 1
    assert ages(pair)["ann"] == winners[0]
    for lost in outcomes:
        if isinstance(lost, ExpectedVersionMismatch):
            assert (lost.table_key, lost.expected + 1) == ("node:Person", lost.actual)
    assert len(pair.commits()) == 3


@pytest.mark.slow
def test_inserts_of_many_threads_all_succeed_and_form_one_chain(pair: og.Graph) -> None:
    handles = [pair, reopen(pair), reopen(pair)]

    def write(number: int) -> object:
        return add(handles[number % 3], "person", name=f"p{number:02}").commit_id

    with ThreadPoolExecutor(6) as threads:
        acknowledged = list(threads.map(write, range(24)))

    assert names(pair)[2:] == [f"p{number:02}" for number in range(24)]
    chain = pair.commits()
    assert {commit.commit_id for commit in chain} >= set(acknowledged)
    assert [commit.parent_id for commit in chain[:-1]] == [c.commit_id for c in chain[1:]]
    assert heads(pair) == pins(pair)


def test_writers_of_different_tables_do_not_conflict(pair: og.Graph) -> None:
    stale = reopen(pair)
    run(pair, 'insert Firm { code: "f" }')

    assert add(stale, "age", name="ann", age=2).affected_nodes == 1
    assert rows(pair, "Firm") == [{"id": "f", "code": "f"}]


def test_a_head_that_ran_ahead_of_its_pin_stops_writers(pair: og.Graph) -> None:
    """Drift that no sidecar covers: another program wrote to the table directly."""
    entry = pair.snapshot().entries["node:Person"]
    table = lance.dataset(f"{pair.uri}/{entry.table_path}")
    table.delete("id = 'ann'")

    with pytest.raises(ConflictError, match=r"ahead of manifest version.*omnigraph repair"):
        add(pair, "person", name="cy")

    assert names(pair) == ["ann", "bob"]
    assert run(pair, 'insert Firm { code: "f" }').affected_nodes == 1
