"""Fences: each bad outcome of a race, kept out by one fence and shown when the fence is removed.

Two handles write at the same time without luck: the second one runs at the moment at which the
first has made its last check and holds its queues. The queues are taken away throughout, as for
two machines on one object store, so that what is left has to hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import lance
import pytest
from lance.dataset import Transaction

import omnigraph as og
from omnigraph.errors import ConflictError, ExpectedVersionMismatch, RecoveryRequired
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.manifest import publisher
from omnigraph.storage.queues import Guard, WriterQueues
from omnigraph.storage.transactions import Committer, describe_version
from omnigraph.write.fork import open_pin
from omnigraph.write.staging import MutationStaging
from tests.graph.reading import add, ages, heads, links, names, pins, reopen, rows, run, sidecars

Write = Callable[[og.Graph], object]


def dangling(graph: og.Graph) -> list[str]:
    known = set(names(graph))
    return [end for link in links(graph) for end in link if end not in known]


def doubled(graph: og.Graph) -> list[str]:
    found = names(graph)
    return [name for name in found if found.count(name) > 1]


def overfull(graph: og.Graph) -> list[str]:
    sources = [source for source, _ in links(graph, "WorksAt")]
    return [source for source in sources if sources.count(source) > 1]


def shared_emails(graph: og.Graph) -> list[str]:
    emails = [row["email"] for row in rows(graph, "Person") if row["email"] is not None]
    return [email for email in emails if emails.count(email) > 1]


def lost_updates(graph: og.Graph) -> list[int | None]:
    """The second writer's 2 was acknowledged; the first must not overwrite it with its 1."""
    return [age for age in [ages(graph)["ann"]] if age == 1]


@dataclass(frozen=True)
class Race:
    """Two writes that must not both win on one view, and what is wrong when they do."""

    first: Write
    second: Write
    wrong: Callable[[og.Graph], list[Any]]


RACES = {
    "edge against its node": Race(
        lambda g: add(g, "knows", a="ann", b="bob"), lambda g: add(g, "gone", name="bob"), dangling
    ),
    "node against its edge": Race(
        lambda g: add(g, "gone", name="bob"), lambda g: add(g, "knows", a="ann", b="bob"), dangling
    ),
    "one new key twice": Race(
        lambda g: add(g, "person", name="new", age=1),
        lambda g: add(g, "person", name="new", age=2),
        doubled,
    ),
    "one update twice": Race(
        lambda g: add(g, "age", name="ann", age=1),
        lambda g: add(g, "age", name="ann", age=2),
        lost_updates,
    ),
    "cardinality in two halves": Race(
        lambda g: add(g, "works", a="ann", b="f"),
        lambda g: add(g, "works", a="ann", b="f"),
        overfull,
    ),
    "one unique value twice": Race(
        lambda g: run(g, 'insert Person { name: "x", email: "e" }'),
        lambda g: run(g, 'insert Person { name: "y", email: "e" }'),
        shared_emails,
    ),
}
ACROSS_TABLES = {"edge against its node", "node against its edge"}


@pytest.fixture
def unqueued(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    """A graph of people and a firm, in which no writer waits for another."""
    run(
        graph,
        'insert Person { name: "ann" } insert Person { name: "bob" } insert Firm { code: "f" }',
    )
    monkeypatch.setattr(WriterQueues, "acquire_many", lambda *_, **__: Guard([]))
    return graph


def collide(graph: og.Graph, race: Race) -> None:
    """Run the second write in the middle of the first."""
    other = reopen(graph)
    left = [race.second]

    def interrupt() -> None:
        if left:
            left.pop()(other)

    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: interrupt}):
        race.first(graph)
    assert not left


def expect_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away: the publisher compares the versions that the write read and wrote."""
    real = publisher.publish

    def without_expectations(coordinator: Any, request: Any) -> Any:
        return real(coordinator, replace(request, expected={}))

    monkeypatch.setattr("omnigraph.write.protocol.publish", without_expectations)


def verify_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away: a commit looks at HEAD first, and proves afterwards that it made one version."""

    def unverified(self: Committer, staged: Any, properties: Any, **_: Any) -> Any:
        transaction = Transaction(
            staged.read_version, staged._operation, staged.uuid, dict(properties)
        )
        dataset = self._commit(staged, transaction)
        return describe_version(staged.location, dataset, staged.uuid), dataset

    monkeypatch.setattr(Committer, "commit", unverified)


@pytest.mark.accepts("S-028", "S-146")
@pytest.mark.parametrize("race", RACES.values(), ids=RACES)
def test_without_queues_the_loser_gets_a_typed_conflict_and_no_harm_is_done(
    unqueued: og.Graph, race: Race
) -> None:
    with pytest.raises(ExpectedVersionMismatch) as caught:
        collide(unqueued, race)

    lost = caught.value
    assert lost.table_key.partition(":")[0] in ("node", "edge")
    assert lost.actual == lost.expected + 1
    assert race.wrong(unqueued) == []


@pytest.mark.parametrize("name", sorted(ACROSS_TABLES))
def test_planted_without_expectations_an_edge_dangles(
    unqueued: og.Graph, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect_nothing(monkeypatch)

    collide(unqueued, RACES[name])

    assert RACES[name].wrong(unqueued) == ["bob"]


@pytest.mark.parametrize("name", sorted(ACROSS_TABLES))
def test_planted_comparing_only_what_was_written_an_edge_dangles(
    unqueued: og.Graph, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual half of optimistic concurrency: it lets write skew through."""
    monkeypatch.setattr(
        MutationStaging,
        "read_versions",
        property(
            lambda self: {key: entry.version for key, entry in self.list_pins().items()},
            lambda self, value: None,
        ),
        raising=False,
    )

    def open_unseen(self: MutationStaging, table_key: str) -> Any:
        return open_pin(self.tables, self._entry(table_key))

    monkeypatch.setattr(MutationStaging, "open", open_unseen)

    collide(unqueued, RACES[name])

    assert RACES[name].wrong(unqueued) == ["bob"]


@pytest.mark.parametrize("name", sorted(set(RACES) - ACROSS_TABLES))
def test_without_expectations_the_commit_itself_still_refuses_a_moved_head(
    unqueued: og.Graph, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect_nothing(monkeypatch)

    with pytest.raises(ExpectedVersionMismatch):
        collide(unqueued, RACES[name])

    assert RACES[name].wrong(unqueued) == []
    assert sidecars(unqueued) == []


@pytest.mark.parametrize("name", ["one new key twice", "cardinality in two halves"])
def test_planted_with_no_fence_at_all_two_writers_break_the_rules(
    unqueued: og.Graph, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance rebases the second commit without a word; nothing but our fences would notice."""
    expect_nothing(monkeypatch)
    verify_nothing(monkeypatch)

    collide(unqueued, RACES[name])

    assert RACES[name].wrong(unqueued) != []


@pytest.mark.accepts("S-014", "S-146")
def test_a_fork_that_another_writer_has_claimed_is_never_reclaimed(unqueued: og.Graph) -> None:
    """Both meet the fork of a dead writer; the second claims it before the first has looked."""
    unqueued.create_branch("b")
    with arm_failpoints({Failpoint.FORK_AFTER_CREATE: "raise"}), pytest.raises(FailpointError):
        add(unqueued, "person", branch="b", name="lost")
    left = [reopen(unqueued)]

    def claim() -> None:
        if left:
            add(left.pop(), "person", branch="b", name="second")

    with (
        arm_failpoints({Failpoint.FORK_BEFORE_CLASSIFY: claim}),
        pytest.raises(ConflictError, match="another writer forked 'node:Person' on branch 'b'"),
    ):
        add(unqueued, "person", branch="b", name="first")

    assert names(reopen(unqueued), "b") == ["ann", "bob", "second"]
    assert heads(unqueued, "b") == pins(unqueued, "b")
    unqueued.refresh()
    add(unqueued, "person", branch="b", name="first")
    assert names(unqueued, "b") == ["ann", "bob", "first", "second"]


def append_behind_our_back(graph: og.Graph) -> None:
    """A foreign program appends a row to the table of people."""
    entry = graph.snapshot().entries["node:Person"]
    table = lance.dataset(f"{graph.uri}/{entry.table_path}")
    row = {"id": "foreign", "name": "foreign", "age": None, "email": None}
    lance.write_dataset(
        table.to_table().slice(0, 0).from_pylist([row], schema=table.schema), table, mode="append"
    )


def test_a_foreign_commit_between_our_checks_is_never_published(pair: og.Graph) -> None:
    """It lands after the last look at HEAD and before our commit, where no lock of ours helps."""
    real = Committer._commit

    def late(self: Committer, staged: Any, transaction: Any) -> Any:
        append_behind_our_back(pair)
        return real(self, staged, transaction)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Committer, "_commit", late)
        with pytest.raises(RecoveryRequired, match="do not repeat it"):
            add(pair, "person", name="cy")

    assert names(pair) == ["ann", "bob"]
    assert len(sidecars(pair)) == 1


def test_planted_without_verification_a_foreign_commit_is_published_as_ours(
    pair: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_nothing(monkeypatch)

    with arm_failpoints({Failpoint.COMMIT_AFTER_SIDECAR: lambda: append_behind_our_back(pair)}):
        add(pair, "person", name="cy")

    assert names(pair) == ["ann", "bob", "cy", "foreign"]


def test_a_foreign_commit_before_ours_is_refused_and_leaves_no_chore(pair: og.Graph) -> None:
    with (
        arm_failpoints({Failpoint.COMMIT_AFTER_SIDECAR: lambda: append_behind_our_back(pair)}),
        pytest.raises(ConflictError),
    ):
        add(pair, "person", name="cy")

    assert names(pair) == ["ann", "bob"]
    assert sidecars(pair) == []
