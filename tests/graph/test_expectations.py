"""Expectations: a publish lands only while every table it relied on stands where it was seen.

A rival publishes at the last moment: after the tables of the writer are committed, between the
checks of the publisher and its commit. It waits for no queue, as a writer on another machine. The
publish has to look again, and to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from ulid import ULID

import omnigraph as og
from omnigraph.errors import (
    ConflictError,
    ExpectedVersionMismatch,
    MergeConflicts,
    OmnigraphError,
    PreconditionFailed,
)
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.manifest import MAIN, Lineage, Publish, UpdatePin, publish
from omnigraph.storage.queues import Guard, QueueKey, WriterQueues
from omnigraph.testing.inside import inside
from omnigraph.write.recovery_actions import RECOVERY_ACTOR
from tests.graph.reading import SCHEMA, add, links, names, pins, reopen, rows, run


def publish_rival(graph: og.Graph, table_key: str) -> None:
    """Append a row to a table and publish it as a commit, without taking its queue."""
    with reopen(graph, mode="r") as rival:
        tables, entry = inside(rival).store.tables, rival.snapshot().entries[table_key]
        location = tables.root.table(entry.table_path, entry.table_branch)
        handle = tables.open_at(location, tables.head_version(location))
        values = {"id": "rival", "name": "rival", "text": "rival", "src": "ann", "dst": "ann"}
        row = {field.name: values.get(field.name) for field in handle.schema}
        staged = tables.rows.stage_append(handle, pa.Table.from_pylist([row], schema=handle.schema))
        made = tables.commit_staged(staged)
        pin = UpdatePin(
            table_key, made.version, None, made.row_count, made.manifest_path, made.transaction_uuid
        )
        commit = Lineage(str(ULID()), "rival", created_at=0)
        publish(inside(rival).coordinator, Publish(MAIN, (pin,), commits=(commit,)))


def overtake(graph: og.Graph, table_key: str, write: Callable[[og.Graph], object]) -> None:
    """Run a write, and a rival that publishes just before it does."""
    left = [table_key]

    def interrupt() -> None:
        if left:
            publish_rival(graph, left.pop())

    with arm_failpoints({Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT: interrupt}):
        write(graph)
    assert not left


@dataclass(frozen=True)
class Case:
    """A write, the table it relied on that the rival changes, and what it must not do."""

    write: Callable[[og.Graph], object]
    moved: str
    seen: Callable[[og.Graph], object]
    error: type[OmnigraphError] = ExpectedVersionMismatch


def add_a_mood(graph: og.Graph) -> None:
    graph.apply_schema(SCHEMA.replace("stars:", "mood: String?  stars:"))


def insert_on_condition(graph: og.Graph) -> None:
    head = graph.commits()[0].commit_id
    graph.mutate('query q() { insert Firm { code: "new" } }', if_commit=head)


def keep_only_bob(graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": "bob"}}], mode="overwrite")


def people(graph: og.Graph) -> list[str]:
    return [name for name in names(graph) if name != "rival"]


CASES = {
    # The edges of the rival and of the overwrite are checked against each other's tables.
    "overwrite": Case(keep_only_bob, "edge:Knows", people),
    "fast forward": Case(lambda g: g.merge("side"), "node:Person", links),
    "merge": Case(lambda g: g.merge("side"), "node:Person", links),
    "optimize": Case(lambda g: g.optimize(), "node:Person", people),
    "ensure_indices": Case(lambda g: g.ensure_indices(), "node:Person", people),
    # Every table has to stand still: its rows have to fit the schema that is published.
    "schema apply": Case(add_a_mood, "node:Person", lambda g: g.schema),
    "if_commit": Case(
        insert_on_condition, "node:Note", lambda g: rows(g, "Firm"), PreconditionFailed
    ),
}


@pytest.fixture
def busy(graph: og.Graph) -> og.Graph:
    """People in three fragments, without indexes."""
    for name in ("ann", "bob", "cy"):
        add(graph, "person", name=name)
    return graph


def prepare_merge(graph: og.Graph, *, is_fast_forward: bool) -> None:
    """Make a branch with one edge more than main, which may have gone on as well."""
    graph.create_branch("side")
    add(graph, "knows", branch="side", a="ann", b="bob")
    if not is_fast_forward:
        add(graph, "firm", code="f")


@pytest.mark.accepts("S-002", "S-028")
@pytest.mark.parametrize("name", CASES)
def test_a_writer_that_is_overtaken_before_its_publish_is_refused(
    busy: og.Graph, name: str
) -> None:
    case = CASES[name]
    if name in ("merge", "fast forward"):
        prepare_merge(busy, is_fast_forward=name == "fast forward")
    before, pin = case.seen(busy), pins(busy)[case.moved]

    with pytest.raises(case.error) as caught:
        overtake(busy, case.moved, case.write)

    if isinstance(caught.value, ExpectedVersionMismatch):
        assert (caught.value.table_key, caught.value.expected) == (case.moved, pin)
        assert caught.value.actual > pin
    again = reopen(busy)
    assert case.seen(again) == before
    assert next(c.actor for c in again.commits() if c.actor != RECOVERY_ACTOR) == "rival"
    assert run(again, 'insert Person { name: "after" }').affected_nodes == 1


def before_queues(monkeypatch: pytest.MonkeyPatch, interrupt: Callable[[], object]) -> None:
    """Let something happen when the next writer has planned its work and asks for its queues."""
    acquire = WriterQueues.acquire_many

    def acquire_late(self: WriterQueues, keys: Iterable[QueueKey], **options: Any) -> Guard:
        wanted = list(keys)
        if any(key in ("edge:Knows", "node:Person") for key, _ in wanted):
            monkeypatch.setattr(WriterQueues, "acquire_many", acquire)
            interrupt()
        return acquire(self, wanted, **options)

    monkeypatch.setattr(WriterQueues, "acquire_many", acquire_late)


DELETE_BOB = 'delete Person where name = "bob"'
BOB_KNOWS_CY = 'insert Knows { from: "bob", to: "cy" }'


@pytest.mark.parametrize("is_fast_forward", [True, False])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [('insert Knows { from: "ann", to: "bob" }', DELETE_BOB), (DELETE_BOB, BOB_KNOWS_CY)],
    ids=["an edge is brought and its node goes", "a node goes and gets an edge"],
)
def test_a_merge_depends_on_the_tables_that_its_rows_rest_on(
    busy: og.Graph,
    monkeypatch: pytest.MonkeyPatch,
    theirs: str,
    ours: str,
    is_fast_forward: bool,
) -> None:
    """Main changes after the merge is planned and before it holds its queues."""
    busy.create_branch("side")
    run(busy, theirs, branch="side")
    if not is_fast_forward:
        add(busy, "firm", code="f")
    other = reopen(busy)

    before_queues(monkeypatch, lambda: run(other, ours))
    with pytest.raises(ExpectedVersionMismatch):
        busy.merge("side")

    known = set(names(busy))
    assert [link for link in links(busy) if not known.issuperset(link)] == []
    with pytest.raises(MergeConflicts):
        busy.merge("side")


@pytest.mark.parametrize(("source", "into"), [("side", "main"), ("main", "side")])
def test_a_merge_planned_with_an_earlier_namesake_is_refused(
    busy: og.Graph, monkeypatch: pytest.MonkeyPatch, source: str, into: str
) -> None:
    """The branch is deleted and made again in between; its version numbers may repeat."""
    busy.create_branch("side")
    add(busy, "person", branch="side", name="first")
    add(busy, "person", name="on main")
    other = reopen(busy)

    def make_again() -> None:
        other.delete_branch("side")
        other.create_branch("side")
        add(other, "person", branch="side", name="second")

    before_queues(monkeypatch, make_again)
    with pytest.raises(ConflictError, match="branch 'side' was deleted and made again"):
        busy.merge(source, into)

    assert names(busy) == ["ann", "bob", "cy", "on main"]
    assert names(busy, "side") == ["ann", "bob", "cy", "on main", "second"]


def crash_before_publish(graph: og.Graph, if_commit: str | None = None) -> None:
    point = Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER
    text = 'query q() { insert Knows { from: "ann", to: "bob" } }'
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        graph.mutate(text, if_commit=if_commit)


@pytest.mark.parametrize(("moved", "is_conditional"), [("node:Person", False), ("node:Note", True)])
def test_recovery_that_is_overtaken_before_its_publish_finishes_nothing(
    busy: og.Graph, moved: str, is_conditional: bool
) -> None:
    """What a dead writer relied on moves while recovery is about to publish its work."""
    crash_before_publish(busy, busy.commits()[0].commit_id if is_conditional else None)

    with suppress(ConflictError):
        overtake(busy, moved, reopen)

    again = reopen(busy)
    assert links(again) == []
    assert add(again, "knows", a="ann", b="bob").affected_edges == 1
    assert links(again) == [("ann", "bob")]
