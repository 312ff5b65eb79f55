"""The publisher: one door, fenced row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import (
    ConflictError,
    ExpectedVersionMismatch,
    InvariantViolated,
    PreconditionFailed,
    RowLevelCasContention,
)
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.manifest import (
    MAIN,
    Coordinator,
    Publish,
    PublishDelta,
    RegisterTable,
    Tombstone,
    UpdatePin,
    publish,
)
from omnigraph.manifest.publisher import RETRY_BUDGET
from omnigraph.manifest.retained_commits import RetainedCommits
from omnigraph.manifest.rows import change_to_row, rows_to_table
from omnigraph.storage.control import ControlTable
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from tests.graph.reading import add, new_graph

KEY = "node:Person"
OTHER = "node:Firm"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_graph(tmp_path / "graph")


def coordinator_of(graph: og.Graph) -> Coordinator:
    """A coordinator of its own, as another process would have."""
    return Coordinator(inside(graph).store.manifest, RetainedCommits(inside(graph).store.texts))


def pin(version: int, key: str = KEY, rows: int = 0, branch: str | None = None) -> UpdatePin:
    return UpdatePin(key, version, branch, rows)


def request(*changes: Any, **options: Any) -> Publish:
    return Publish(branch=MAIN, changes=changes, **options)


def object_ids(graph: og.Graph) -> list[str]:
    found: list[str] = inside(graph).store.manifest.read(columns=["object_id"]).rows[0].to_pylist()
    return found


@pytest.mark.accepts("S-003")
def test_all_expectations_hold_or_nothing_is_published(graph: og.Graph) -> None:
    coordinator = coordinator_of(graph)
    publish(coordinator, request(pin(2, OTHER)))
    before = object_ids(graph)

    with pytest.raises(ExpectedVersionMismatch) as caught:
        publish(
            coordinator, request(pin(2), pin(3, OTHER), expected={KEY: 1, OTHER: 1, "node:Note": 1})
        )

    assert (caught.value.table_key, caught.value.expected, caught.value.actual) == (OTHER, 1, 2)
    assert object_ids(graph) == before


def test_a_table_that_is_not_there_has_version_zero(graph: og.Graph) -> None:
    publish(coordinator_of(graph), request(pin(2), expected={"node:Nobody": 0}))

    with pytest.raises(ExpectedVersionMismatch) as caught:
        publish(coordinator_of(graph), request(pin(3), expected={"node:Nobody": 4}))
    assert caught.value.actual == 0


def test_a_publish_without_changes_only_checks(graph: og.Graph) -> None:
    coordinator = coordinator_of(graph)
    version = coordinator.fresh(MAIN).version

    assert publish(coordinator, request(expected={KEY: 1})).version == version
    with pytest.raises(ExpectedVersionMismatch):
        publish(coordinator, request(expected={KEY: 2}))
    assert coordinator.fresh(MAIN).version == version


@pytest.mark.accepts("S-004")
def test_of_two_publishes_of_one_row_one_lands_and_no_row_is_doubled(graph: og.Graph) -> None:
    """The second merge was decided on a version that the first has replaced."""
    first, second = coordinator_of(graph), coordinator_of(graph)
    seen = second.fresh(MAIN)
    publish(first, request(pin(2, rows=1)))

    change = pin(2, rows=9)
    step = PublishDelta(MAIN, None, seen.version, (change,))
    with pytest.raises(RowLevelCasContention):
        second.merge(seen, rows_to_table([change_to_row(change)]), step)

    ids = object_ids(graph)
    assert len(ids) == len(set(ids))
    assert second.fresh(MAIN).entries[KEY].row_count == 1


@pytest.mark.parametrize("is_read_again", [False, True])
def test_a_key_of_another_table_before_has_no_row_twice(
    graph: og.Graph, is_read_again: bool
) -> None:
    """Rows are named by key and version: those of the later table take the place of the earlier."""
    coordinator = coordinator_of(graph)
    key = "node:New"
    publish(coordinator, request(RegisterTable(key, "nodes/first"), pin(1, key)))
    for version in (2, 3):
        publish(coordinator, request(pin(version, key)))
    publish(coordinator, request(Tombstone(key, 3)))
    publish(coordinator, request(RegisterTable(key, "nodes/second"), pin(1, key)))

    for version in (2, 3, 4):
        coordinator = coordinator_of(graph) if is_read_again else coordinator
        publish(coordinator, request(pin(version, key, rows=version)))

    ids = object_ids(graph)
    assert len(ids) == len(set(ids))
    entry = coordinator_of(graph).fresh(MAIN).entries[key]
    assert (entry.table_path, entry.version, entry.row_count) == ("nodes/second", 4, 4)


@pytest.mark.accepts("S-004")
def test_planted_without_the_primary_key_the_row_is_doubled(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps `__manifest` right is one line of field metadata, and Lance says nothing."""
    path = f"{graph.uri}/__manifest"
    rows = lance.dataset(path).to_table()
    bare = pa.schema([field.remove_metadata() for field in rows.schema], rows.schema.metadata)
    lance.write_dataset(rows.cast(bare), f"{graph.uri}/bare", enable_stable_row_ids=True)
    table = ControlTable(inside(graph).store.root, "bare", key="object_id", durability="process")
    new = rows_to_table([change_to_row(pin(2))])

    with pytest.raises(InvariantViolated, match="would duplicate rows"):
        table.merge_rows(new, read_version=1)
    monkeypatch.setattr(ControlTable, "_refuse_unfenced", lambda *_: None)
    table.merge_rows(new, read_version=1)
    table.merge_rows(new, read_version=1)

    ids = table.read(columns=["object_id"]).rows[0].to_pylist()
    assert ids.count(f"{KEY}${2:020d}") == 2


def interleaved(graph: og.Graph, change: UpdatePin) -> Any:
    """Another publisher lands `change` just before ours merges, once."""
    left = [change]

    def land() -> None:
        if left:
            publish(coordinator_of(graph), request(left.pop()))

    return arm_failpoints({Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT: land})


def test_a_publish_of_other_tables_is_retried_and_lands(graph: og.Graph) -> None:
    with interleaved(graph, pin(2, OTHER)):
        state = publish(coordinator_of(graph), request(pin(2), expected={KEY: 1}))

    assert (state.entries[KEY].version, state.entries[OTHER].version) == (2, 2)
    assert state.version == 3


def test_a_retried_publish_checks_its_expectations_again(graph: og.Graph) -> None:
    """The fence of a table that was only read: its row is not among those we merge."""
    with interleaved(graph, pin(2, OTHER)), pytest.raises(ExpectedVersionMismatch):
        publish(coordinator_of(graph), request(pin(2), expected={KEY: 1, OTHER: 1}))

    assert coordinator_of(graph).fresh(MAIN).entries[KEY].version == 1


def test_a_retried_publish_checks_the_head_again(graph: og.Graph) -> None:
    head = graph.commits()[0].commit_id
    left = [lambda: add(graph, "firm", code="f")]

    def land() -> None:
        if left:
            left.pop()()

    with (
        arm_failpoints({Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT: land}),
        pytest.raises(PreconditionFailed),
    ):
        publish(coordinator_of(graph), request(pin(2), if_commit=head))


@pytest.mark.accepts("S-110")
def test_contention_without_end_is_given_up_after_five_retries(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = 0

    def contended(*_: Any, **__: Any) -> int:
        nonlocal attempts
        attempts += 1
        raise RowLevelCasContention("another writer was first")

    monkeypatch.setattr(ControlTable, "merge_rows", contended)

    with pytest.raises(ConflictError, match="exhausted 5 retries"):
        publish(coordinator_of(graph), request(pin(2)))

    assert attempts == 1 + RETRY_BUDGET == 6


@pytest.mark.parametrize(
    "changes",
    [
        [pin(2), pin(2)],
        [pin(1)],
        [UpdatePin("node:Nobody", 1, None, 0)],
        [RegisterTable(KEY, "nodes/elsewhere")],
    ],
    ids=["twice", "again", "unregistered", "moved"],
)
def test_a_request_that_makes_no_sense_is_our_mistake(graph: og.Graph, changes: list[Any]) -> None:
    before = object_ids(graph)

    with pytest.raises(InvariantViolated):
        publish(coordinator_of(graph), request(*changes))

    assert object_ids(graph) == before


def test_a_table_can_be_registered_hidden_and_shown_again(graph: og.Graph) -> None:
    coordinator = coordinator_of(graph)
    publish(coordinator, request(RegisterTable("node:New", "nodes/new"), pin(1, "node:New")))
    assert coordinator.fresh(MAIN).entries["node:New"].table_path == "nodes/new"

    publish(coordinator, request(Tombstone("node:New", 1)))
    for each in (coordinator, coordinator_of(graph)):
        assert "node:New" not in each.fresh(MAIN).entries
        assert each.fresh(MAIN).latest_version("node:New") == 1

    publish(coordinator, request(RegisterTable("node:New", "nodes/new"), pin(2, "node:New")))
    assert coordinator_of(graph).fresh(MAIN).entries["node:New"].version == 2


def test_the_state_after_a_publish_is_what_storage_holds(graph: og.Graph) -> None:
    """A writer does not read the manifest back; what it goes on with must be the same."""
    add(graph, "pair", a="a", b="b")
    add(graph, "gone", name="a")

    with counting() as counters:
        known = inside(graph).coordinator.fresh(MAIN)
    assert counters.control_reads == 0
    read = coordinator_of(graph).fresh(MAIN)

    assert known == read
    assert known.commit_rows.num_rows == read.commit_rows.num_rows == 3
    assert graph.commits() == sorted(
        graph.commits(), key=lambda commit: commit.manifest_version, reverse=True
    )


def test_a_handover_to_another_lineage_may_keep_its_number(graph: og.Graph) -> None:
    coordinator = coordinator_of(graph)
    publish(coordinator, request(pin(2, rows=3)))

    publish(coordinator, request(pin(2, rows=3, branch="b")))

    assert coordinator.fresh(MAIN).entries[KEY].table_branch == "b"
    with pytest.raises(InvariantViolated):
        publish(coordinator, request(pin(2, rows=4)))
