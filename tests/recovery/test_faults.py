"""When the store fails, or a writer is slow: recovery is loud, patient, and done exactly once."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

import omnigraph as og
from omnigraph.errors import (
    ConflictError,
    HeadMoved,
    InvariantViolated,
    RecoveryRequired,
    StorageError,
)
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.graph import Graph
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from omnigraph.write import recovery
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.recovery_actions import RECOVERY_ACTOR
from tests.recovery import work
from tests.recovery.staging import (
    commit_rows,
    is_whole,
    kinds,
    leave,
    mutate,
    names,
    new_graph,
    reopen,
    sidecar,
    sidecar_files,
)

pytestmark = pytest.mark.slow

COMPLETE = Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER
PARTIAL = Failpoint.COMMIT_AFTER_TABLE
WRITERS = ["insert", "update", "delete", "load append", "load merge", "load overwrite"]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path / "graph")


def fails() -> None:
    raise StorageError("the disk is on fire")


# The store fails


@pytest.mark.accepts("S-136", "S-141")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_sidecar_that_cannot_be_written_stops_the_write(graph: Graph, writer: str) -> None:
    before = work.standing_of(graph)

    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: fails}), pytest.raises(StorageError):
        work.WRITERS[writer](graph, 2)

    assert work.standing_of(graph) == before
    work.WRITERS[writer](graph, 2)
    assert kinds(graph) == []
    is_whole(graph)


def test_a_sidecar_whose_write_failed_late_is_taken_back(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is there, its directory could not be synced: no HEAD has moved, so it goes."""
    store = type(inside(graph).store.texts.store)
    real = store.write_text

    def write_and_fail(self: Any, uri: str, text: str, **given: Any) -> None:
        real(self, uri, text, **given)
        if "__recovery" in uri:
            fails()

    monkeypatch.setattr(store, "write_text", write_and_fail)
    with pytest.raises(StorageError):
        mutate(graph, work.INSERTS[2])
    monkeypatch.undo()

    assert sidecar_files(graph) == []
    mutate(graph, work.INSERTS[2])
    assert kinds(graph) == []


@pytest.mark.accepts("S-137", "S-141")
@pytest.mark.parametrize("healed_by", ["write", "refresh", "open"])
def test_a_sidecar_that_cannot_be_deleted_is_only_a_chore(
    graph: Graph, healed_by: str, caplog: pytest.LogCaptureFixture
) -> None:
    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_DELETE: fails}):
        done = mutate(graph, work.INSERTS[2])

    assert done.commit_id is not None
    assert "could not be deleted" in caplog.text
    assert len(sidecar_files(graph)) == 1
    match healed_by:
        case "write":
            mutate(graph, work.DELETES[1])
        case "refresh":
            graph.refresh()
        case _:
            graph = reopen(graph)
    assert kinds(graph) == ["RolledForward"]
    assert "new" in names(graph)
    is_whole(graph)


@pytest.mark.accepts("S-138", "S-141")
def test_a_listing_that_fails_is_loud_everywhere(graph: Graph) -> None:
    before = work.standing_of(graph)

    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_LIST: fails}):
        for attempt in (
            lambda: mutate(graph, work.INSERTS[1]),
            lambda: graph.load(work.records(1, keep=False), mode="merge"),
            graph.refresh,
            lambda: reopen(graph),
        ):
            with pytest.raises(StorageError, match="on fire"):
                attempt()
        assert reopen(graph, mode="r").branches() == ["main"]

    assert work.standing_of(graph) == before
    mutate(graph, work.INSERTS[1])


@pytest.mark.accepts("S-140", "S-141")
@pytest.mark.parametrize("point", [COMPLETE, PARTIAL, Failpoint.RECOVERY_SIDECAR_DELETE])
def test_an_audit_that_fails_once_is_written_exactly_once(graph: Graph, point: Failpoint) -> None:
    leave(graph, point)

    with arm_failpoints({Failpoint.RECOVERY_RECORD_AUDIT: fails}), pytest.raises(StorageError):
        reopen(graph)

    assert len(sidecar_files(graph)) == 1
    recovered = reopen(graph)
    assert kinds(recovered) == ["RolledBack" if point is PARTIAL else "RolledForward"]
    is_whole(recovered)


@pytest.mark.accepts("S-108")
@pytest.mark.parametrize("point", [COMPLETE, PARTIAL, Failpoint.COMMIT_AFTER_SIDECAR])
def test_a_sidecar_goes_last(graph: Graph, point: Failpoint) -> None:
    """The delete fails after everything else is done: the file stays, and a re-run converges."""
    leave(graph, point)
    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_DELETE: fails}), pytest.raises(StorageError):
        reopen(graph)
    written = kinds(graph)
    before = work.standing_of(graph)

    recovered = reopen(graph)

    assert len(before["sidecars"]) == 1
    assert kinds(recovered) == written
    assert len(written) == 1
    after = work.standing_of(recovered)
    assert after == {**before, "sidecars": []}


# Where recovery runs


@pytest.mark.accepts("S-093")
def test_a_read_only_open_leaves_a_sidecar_alone(graph: Graph) -> None:
    leave(graph, PARTIAL)
    before = work.standing_of(graph)

    reader = reopen(graph, mode="r")
    reader.refresh()

    assert work.standing_of(graph) == before
    assert "new" not in names(reader)


HEALERS: dict[str, Callable[[Graph], object]] = {
    "mutate": lambda graph: mutate(graph, work.DELETES[1]),
    "load": lambda graph: graph.load([{"type": "Tag", "data": {"name": "x"}}], mode="merge"),
    "refresh": lambda graph: graph.refresh(),
}


@pytest.mark.accepts("S-111", "S-112")
@pytest.mark.parametrize("entry", HEALERS)
def test_a_live_handle_finishes_a_write_that_only_lacks_its_publish(
    graph: Graph, entry: str
) -> None:
    leave(graph, COMPLETE, count=5)

    HEALERS[entry](graph)

    assert kinds(graph) == ["RolledForward"]
    assert "new" in names(graph)
    mutate(graph, 'update Person set { age: 50 } where name = "new"')
    is_whole(graph)


@pytest.mark.accepts("S-099", "S-105", "S-106")
def test_a_rolled_forward_write_is_one_publish_with_its_own_commit(graph: Graph) -> None:
    leave(graph, COMPLETE, count=5)
    intent = sidecar(graph)
    before = graph.snapshot()

    recovered = reopen(graph)

    assert recovered.snapshot().manifest_version == before.manifest_version + 1
    newest, original = recovered.commits()[:2]
    assert (newest.actor, original.actor) == (RECOVERY_ACTOR, "worker")
    assert original.commit_id == intent["lineage"]["commit_id"]
    (record,) = recovered.recoveries()
    assert record.commit_id == newest.commit_id
    assert (record.operation_id, record.for_actor) == (intent["operation_id"], "worker")
    assert {(o.table_key, o.from_version, o.to_version) for o in record.outcomes} == {
        (pin["table_key"], pin["expected_version"], pin["post_commit_pin"])
        for pin in intent["tables"]
    }


@pytest.mark.accepts("S-101", "S-102", "S-104", "S-105", "S-106")
def test_a_rolled_back_table_shows_what_its_pin_showed(graph: Graph) -> None:
    rows = work.rows_of(graph)
    leave(graph, PARTIAL, count=5, nth=3)
    pins = {key: entry.version for key, entry in graph.snapshot().entries.items()}

    recovered = reopen(graph)

    assert work.rows_of(recovered) == rows
    (record,) = recovered.recoveries()
    assert len(record.outcomes) == 3
    shown = recovered.snapshot().entries
    for outcome in record.outcomes:
        assert outcome.to_version == pins[outcome.table_key]
        assert outcome.from_version == pins[outcome.table_key] + 1
        assert shown[outcome.table_key].version == pins[outcome.table_key] + 2
    assert [c.actor for c in recovered.commits(actor=RECOVERY_ACTOR)] == [RECOVERY_ACTOR]
    is_whole(recovered)


@pytest.mark.accepts("S-118")
@pytest.mark.parametrize("entry", [*HEALERS, "a write to its table"])
def test_a_live_handle_undoes_a_write_that_cannot_be_finished(graph: Graph, entry: str) -> None:
    """Its queues are held, by locks of the system as well: nothing of it can be in flight."""
    rows = work.rows_of(graph)
    leave(graph, PARTIAL)
    assert work.standing_of(graph)["heads"]["main edge:Knows"] == 3

    if entry in HEALERS:
        HEALERS[entry](graph)
    else:
        mutate(graph, 'insert Knows { from: "ann", to: "ann" }')

    assert kinds(graph) == ["RolledBack"]
    assert "new" not in names(graph)
    if entry == "refresh":
        assert work.rows_of(graph) == rows
    mutate(graph, work.INSERTS[2])
    is_whole(graph)


@pytest.mark.accepts("S-118", "S-120")
@pytest.mark.parametrize("entry", HEALERS)
def test_without_locks_of_the_system_what_needs_a_restore_waits_for_an_open(
    graph: Graph, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovery at entry neither restores nor drops it; a write on its table says what to do."""
    monkeypatch.setattr(WriteEnvironment, "has_system_locks", property(lambda _: False))
    leave(graph, PARTIAL)
    before = work.standing_of(graph)

    HEALERS[entry](graph)

    after = work.standing_of(graph)
    assert after["sidecars"] == before["sidecars"]
    assert {k: v for k, v in after["heads"].items() if "Knows" in k} == {
        k: v for k, v in before["heads"].items() if "Knows" in k
    }
    with pytest.raises(RecoveryRequired) as caught:
        mutate(graph, 'insert Knows { from: "ann", to: "ann" }')
    assert caught.value.message == (
        "table 'edge:Knows' has Lance HEAD version 3 ahead of manifest version 2; a pending "
        "recovery sidecar requires rollback — reopen the graph read-write (e.g. restart the "
        "server) to recover"
    )
    recovered = reopen(graph)
    assert kinds(recovered) == ["RolledBack"]
    mutate(graph, 'insert Knows { from: "ann", to: "ann" }')
    is_whole(recovered)


@pytest.mark.accepts("S-120")
def test_drift_that_no_sidecar_of_the_branch_names_is_for_repair(tmp_path: Path) -> None:
    """A sidecar over the same table on another branch is no excuse."""
    graph = new_graph(tmp_path / "graph", "forked")
    leave(graph, PARTIAL, writer="branch insert")
    commit_rows(graph, "edge:Knows", "uncovered")

    with pytest.raises(ConflictError, match=r"run `omnigraph repair` before writing"):
        mutate(graph, 'insert Knows { from: "ann", to: "ann" }')


@pytest.mark.accepts("S-113")
def test_a_heal_with_nothing_to_do_costs_one_listing(graph: Graph) -> None:
    environment = inside(graph).environment()
    with counting() as counters:
        assert recovery.recover_all(environment, full=False) == 0

    assert counters.text_lists == 1
    assert (counters.opens, counters.head_probes, counters.control_reads) == (0, 0, 0)
    assert counters.text_reads == 0


@pytest.mark.accepts("S-135")
def test_every_look_at_a_sidecar_goes_through_the_text_store(graph: Graph) -> None:
    with counting() as counters:
        mutate(graph, work.INSERTS[2])

    # The listing of recovery, the three schema files, the sidecar written and deleted.
    assert (counters.text_lists, counters.text_writes, counters.text_deletes) == (1, 1, 1)


@pytest.mark.accepts("S-098")
def test_a_table_behind_its_pin_stops_the_open_and_keeps_the_sidecar(graph: Graph) -> None:
    leave(graph, PARTIAL, count=2)
    entry = graph.snapshot().entries["edge:Knows"]
    versions = Path(graph.uri) / entry.table_path / "_versions"
    for version in (2, 3):
        (versions / f"{2**64 - 1 - version:020d}.manifest").unlink()
    (versions / "latest_version_hint.json").unlink(missing_ok=True)

    with pytest.raises(InvariantViolated, match=r"'edge:Knows' is behind its pin.*is kept"):
        reopen(graph)

    assert len(sidecar_files(graph)) == 1
    graph.refresh()  # warns and leaves it
    assert len(sidecar_files(graph)) == 1


def test_a_table_that_is_gone_is_damage_and_not_a_write_that_never_happened(
    graph: Graph,
) -> None:
    leave(graph, Failpoint.COMMIT_AFTER_SIDECAR, count=2)
    entry = graph.snapshot().entries["edge:Knows"]
    table = Path(graph.uri) / entry.table_path
    table.rename(table.with_name("lost"))

    with pytest.raises(InvariantViolated, match="'edge:Knows'"):
        reopen(graph)

    assert len(sidecar_files(graph)) == 1


# A live writer


def paused_writer(graph: Graph, point: Failpoint) -> tuple[threading.Thread, Callable[[], None]]:
    """A writer that has stopped at a point and goes on when it is told to."""
    reached, go_on = threading.Event(), threading.Event()
    once = threading.Lock()

    def pause() -> None:
        if once.acquire(blocking=False):
            reached.set()
            assert go_on.wait(60)

    guard = arm_failpoints({point: pause})
    guard.__enter__()
    errors: list[Exception] = []

    def write() -> None:
        try:
            mutate(graph, work.INSERTS[2])
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    assert reached.wait(60)

    def finish() -> None:
        go_on.set()
        thread.join(60)
        guard.__exit__(None, None, None)
        assert errors == [], "the writer was robbed"

    return thread, finish


@pytest.mark.accepts("S-114", "S-115")
@pytest.mark.parametrize("point", [PARTIAL, COMPLETE, Failpoint.COMMIT_AFTER_SIDECAR])
@pytest.mark.parametrize("who", ["open", "refresh"])
def test_a_live_writer_is_waited_for_and_never_robbed(
    graph: Graph, point: Failpoint, who: str
) -> None:
    """Recovery starts while the writer stands in the middle: it waits, and finds nothing to do."""
    _, finish = paused_writer(graph, point)
    done = threading.Event()

    def recover() -> None:
        reopen(graph) if who == "open" else reopen_and_refresh()
        done.set()

    def reopen_and_refresh() -> None:
        recovery.recover_all(inside(graph).environment(), full=False)

    other = threading.Thread(target=recover)
    other.start()
    is_done_early = done.wait(0.3)
    standing = len(sidecar_files(graph))
    finish()
    other.join(60)

    assert not is_done_early
    assert standing == 1
    assert kinds(graph) == []
    assert "new" in names(graph)
    is_whole(reopen(graph))


@pytest.mark.accepts("S-114")
def test_a_writer_of_another_process_is_waited_for(graph: Graph, tmp_path: Path) -> None:
    signal_file = tmp_path / "go"
    code = (
        "from tests.recovery import work\n"
        f"work.write({graph.uri!r}, 'insert', 2, arm='commit.after_table=wait:{signal_file}')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as writer:
        while not signal_file.with_name("go.reached").exists():
            assert writer.poll() is None
        opener = threading.Thread(target=lambda: reopen(graph))
        opener.start()
        opener.join(0.3)
        was_waiting = opener.is_alive()
        signal_file.touch()
        assert writer.wait(60) == 0
        opener.join(60)

    assert was_waiting
    assert kinds(reopen(graph)) == []
    assert "new" in names(reopen(graph))


@pytest.mark.accepts("S-116")
def test_writers_and_heals_in_many_threads_come_to_an_end(graph: Graph) -> None:
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for step in range(3):
                name = f"t{number}-{step}"
                graph.mutate(work.NEXT, params={"name": name})
                graph.refresh()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert errors == []
    assert not any(thread.is_alive() for thread in threads)
    assert len(names(graph, "node:Team")) == 1 + 12
    is_whole(graph)


# What may have changed since


def unhealed(graph: Graph, write: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A write whose recovery had run before the other writer died."""
    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.graph.session.recover_all", lambda *_, **__: 0)
        write()


def test_an_edge_is_not_finished_once_its_node_is_gone(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the dead writer had checked no longer holds, so its write is undone, not published."""
    mutate(graph, 'insert Person { name: "lone" }')
    with arm_failpoints({COMPLETE: "raise"}), pytest.raises(FailpointError):
        mutate(graph, 'insert Knows { from: "ann", to: "lone" }')
    unhealed(graph, lambda: mutate(graph, 'delete Person where name = "lone"'), monkeypatch)

    graph.refresh()

    assert kinds(graph) == ["RolledBack"]
    is_whole(graph)


def test_a_conditional_write_is_not_finished_on_another_head(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(graph, COMPLETE, writer="conditional")
    unhealed(graph, lambda: mutate(graph, 'insert Tag { name: "x" }'), monkeypatch)

    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledBack"]
    assert "new" not in names(recovered)
    is_whole(recovered)


def test_an_acknowledged_write_is_not_called_undone_for_a_later_death(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sidecar stayed behind, and the next writer died on the same tables."""
    with arm_failpoints({Failpoint.RECOVERY_SIDECAR_DELETE: fails}):
        mutate(graph, 'insert Knows { from: "ann", to: "ann" }')

    def dies() -> None:
        with arm_failpoints({PARTIAL: "raise"}), pytest.raises(FailpointError):
            mutate(graph, work.INSERTS[2])

    unhealed(graph, dies, monkeypatch)
    assert len(sidecar_files(graph)) == 2

    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledForward", "RolledBack"]
    assert len(work.rows_of(recovered)["main"]["edge:Knows"]) == 3
    is_whole(recovered)


def test_a_write_that_never_began_is_not_called_done(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(graph, Failpoint.COMMIT_AFTER_SIDECAR)
    for body in ('insert Knows { from: "ann", to: "ann" }', 'insert Person { name: "later" }'):
        unhealed(graph, partial(mutate, graph, body), monkeypatch)

    recovered = reopen(graph)

    (record,) = recovered.recoveries()
    assert (record.kind.value, record.outcomes) == ("RolledBack", ())
    assert "later" in names(recovered)
    is_whole(recovered)


@pytest.mark.accepts("S-124")
def test_what_was_classified_is_what_is_published(graph: Graph) -> None:
    """HEAD moves between the look and the publish; the version looked at is the one shown."""
    leave(graph, COMPLETE)

    with arm_failpoints({Failpoint.RECOVERY_AFTER_CLASSIFY: lambda: moves(graph)}):
        recovered = reopen(graph)

    assert recovered.snapshot().entries["node:Person"].version == 3
    assert "sneaked" not in names(recovered)


def moves(graph: Graph) -> None:
    commit_rows(graph, "node:Person", "sneaked")


def test_a_foreign_commit_is_not_published_as_the_dead_writers(graph: Graph) -> None:
    """The numbers fit; the transaction at HEAD is another writer's."""
    leave(graph, Failpoint.COMMIT_AFTER_SIDECAR, count=1)
    commit_rows(graph, "node:Person", "foreign")

    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledBack"]
    assert "foreign" not in names(recovered)
    is_whole(recovered)


# Branches


@pytest.mark.parametrize("template", ["branch", "forked"])
def test_a_branch_is_recovered_by_its_own_pins(tmp_path: Path, template: str) -> None:
    graph = new_graph(tmp_path / "graph", template)
    rows = work.rows_of(graph)
    leave(graph, PARTIAL, writer="branch insert", count=5, nth=2)
    for number in range(3):
        mutate(graph, f'insert Firm {{ name: "later {number}" }}')

    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledBack"]
    assert work.rows_of(recovered)[work.BRANCH] == rows[work.BRANCH]
    is_whole(recovered)


def test_the_sidecar_of_a_deleted_branch_is_discarded_once(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph", "branch")
    leave(graph, PARTIAL, writer="branch insert")
    graph.delete_branch(work.BRANCH)

    mutate(graph, work.INSERTS[1])

    (record,) = graph.recoveries()
    assert (record.kind.value, record.outcomes) == ("OrphanedBranchDiscarded", ())
    assert graph.commits(actor=RECOVERY_ACTOR)[0].commit_id == record.commit_id
    is_whole(reopen(graph))


@pytest.mark.parametrize("point", [PARTIAL, COMPLETE])
def test_a_branch_of_the_same_name_does_not_inherit_a_dead_write(
    tmp_path: Path, point: Failpoint
) -> None:
    """Deleted and made again while the sidecar waited: neither stuck nor surprised."""
    graph = new_graph(tmp_path / "graph", "branch")
    leave(graph, point, writer="branch insert")
    graph.delete_branch(work.BRANCH)
    mutate_main = work.INSERTS[2].replace('"new"', '"on main"')
    coordinator = inside(graph).coordinator
    coordinator.create_branch(work.BRANCH, coordinator.fresh("main"))

    recovered = reopen(graph)

    assert kinds(recovered) == ["OrphanedBranchDiscarded"]
    assert "new" not in names(recovered, branch=work.BRANCH)
    mutate(recovered, mutate_main, branch=work.BRANCH)
    assert "on main" in names(recovered, branch=work.BRANCH)
    is_whole(recovered)


# Failing without dying


@pytest.mark.accepts("S-123")
def test_of_two_strict_writers_one_wins_and_one_is_told(graph: Graph) -> None:
    second = reopen(graph)
    second.snapshot()
    mutate(graph, 'update Person set { age: 5 } where name = "ann"')

    with pytest.raises(og.errors.ExpectedVersionMismatch) as caught:
        second.mutate('query q() { update Person set { age: 6 } where name = "ann" }')

    assert (caught.value.table_key, caught.value.expected, caught.value.actual) == (
        "node:Person",
        2,
        3,
    )


@pytest.mark.accepts("S-109")
def test_a_full_disk_at_the_publish_is_not_an_invitation_to_repeat(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the publish nor its undo finds room: the caller is told to wait for recovery."""

    def full(*_: object) -> int:
        raise og.errors.StorageFull("no space left — nothing was published; run it again")

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.manifest.coordinator.Coordinator.merge", full)
        with pytest.raises(RecoveryRequired, match="do not repeat it") as caught:
            mutate(graph, 'insert Knows { from: "ann", to: "ann" }')

    assert caught.value.operation_id == sidecar(graph)["operation_id"]
    graph.refresh()
    assert kinds(graph) == ["RolledBack"]
    assert len(work.rows_of(graph)["main"]["edge:Knows"]) == 2
    is_whole(graph)


def test_a_failure_before_any_head_moved_leaves_nothing_to_recover(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = work.standing_of(graph)

    def full(*_: object, **__: object) -> None:
        raise og.errors.StorageFull("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.storage.tables.TableStorage.commit_staged", full)
        with pytest.raises(og.errors.StorageFull):
            mutate(graph, work.INSERTS[2])

    assert work.standing_of(graph) == before
    mutate(graph, work.INSERTS[2])
    assert kinds(graph) == []


# What the rules rest on


def ids_of(table: lance.LanceDataset) -> list[str]:
    found: list[str] = table.to_table()["id"].to_pylist()
    return sorted(found)


@pytest.mark.accepts("S-119")
def test_lance_lets_a_restore_orphan_an_append_that_it_never_saw(tmp_path: Path) -> None:
    """Why a restore never runs beside live writers: it wins over a concurrent commit, unsaid.

    The append is acknowledged, and its version stays; the newest one does without its rows. The
    other way round Lance refuses: an append that was staged before a restore cannot land.
    """
    uri = str(tmp_path / "t.lance")
    before = lance.write_dataset(pa.table({"id": ["kept"]}), uri)
    late = write_fragments(pa.table({"id": ["late"]}), uri, mode="append")
    appended = lance.write_dataset(pa.table({"id": ["appended"]}), uri, mode="append")
    assert ids_of(appended) == ["appended", "kept"]

    restore = lance.LanceOperation.Restore(before.version)
    restored = lance.LanceDataset.commit(uri, restore, read_version=before.version)

    assert restored.version == appended.version + 1
    assert ids_of(lance.dataset(uri)) == ["kept"]
    assert ids_of(lance.dataset(uri, version=appended.version)) == ["appended", "kept"]
    append = lance.LanceOperation.Append(late)
    with pytest.raises(Exception, match="incompatible with concurrent transaction Restore"):
        lance.LanceDataset.commit(uri, append, read_version=appended.version)


@pytest.mark.accepts("S-119")
def test_a_restore_of_ours_is_refused_when_an_append_came_first(graph: Graph) -> None:
    tables, entry = inside(graph).store.tables, graph.snapshot().entries["node:Tag"]
    location = tables.root.table(entry.table_path)
    staged = tables.stage_restore(tables.open_at(location, entry.version), entry.version)
    appended = commit_rows(graph, "node:Tag", "in flight")

    with pytest.raises(HeadMoved):
        tables.commit_staged(staged)

    head = tables.open_at(location, tables.head_version(location))
    assert head.version == appended
    assert sorted(tables.reads.scan(head, ["name"])["name"].to_pylist()) == ["in flight", "tag"]


@pytest.mark.accepts("S-088")
def test_a_phase_letter_means_a_phase_of_a_write() -> None:
    source = Path(recovery.__file__).parents[1]
    letters = {
        (letter, path.parent.name)
        for path in source.rglob("*.py")
        for letter in re.findall(r"\b[Pp]hase ([A-Z])\b", path.read_text())
    }

    assert {letter for letter, _ in letters} <= set("ABCD")
    assert {package for _, package in letters} <= {"write", "branch", "upkeep"}
