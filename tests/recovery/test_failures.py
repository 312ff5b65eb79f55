"""What a caller is told: an error that is not RecoveryRequired is not done, and never will be.

Every writer goes through the same protocol, so every one is asked the same.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import (
    ConflictError,
    OmnigraphError,
    RecoveryRequired,
    RowLevelCasContention,
    StorageError,
)
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.graph import Graph
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.publisher import RETRY_BUDGET
from omnigraph.storage.queues import WriterQueues
from omnigraph.storage.tables import TableStorage
from omnigraph.write.environment import WriteEnvironment
from tests.depth import sample
from tests.recovery import fault_work as faults
from tests.recovery import work
from tests.recovery.staging import is_whole, kinds, leave, mutate, names, reopen, sidecar_files

pytestmark = pytest.mark.slow

WRITERS = [
    "insert",
    "conditional",
    "load merge",
    "branch insert",
    "merge",
    "merge both",
    "apply schema",
    "ensure indices",
    "optimize",
]
BEFORE = Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT
AFTER = Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("failures")

    def template(writer: str) -> Path:
        place = folder / faults.WRITERS[writer].template
        if not place.exists():
            faults.build(str(place), writer)
        return place

    return template


@pytest.fixture
def start(templates: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Graph]:
    """The graph that a writer starts from, open."""

    def opened(writer: str) -> Graph:
        path = tmp_path / "graph"
        shutil.copytree(templates(writer), path)
        return work.open_graph(str(path), self_care=False)

    return opened


def run(graph: Graph, writer: str) -> None:
    faults.WRITERS[writer].run(graph)


def fails_at(*turns: int) -> Callable[[], None]:
    """A store that fails at these hits of a point, and works otherwise."""
    hits = count()

    def fail() -> None:
        if next(hits) in turns:
            raise StorageError("the store does not answer")

    return fail


def is_never_done(graph: Graph, writer: str, old: object) -> None:
    """Nothing of a failed write is there or comes back, and its tables are free at once."""
    assert faults.shown(graph.uri) == old
    assert sidecar_files(graph) == []
    assert "RolledForward" not in kinds(graph)
    graph.refresh()
    assert faults.shown(reopen(graph).uri) == old
    is_whole(graph)
    run(graph, writer)
    assert "RolledForward" not in kinds(graph)
    is_whole(graph)


# The publish does not happen


@pytest.mark.parametrize("writer", WRITERS)
def test_a_publish_that_fails_is_undone_before_the_caller_hears_of_it(
    start: Callable[[str], Graph], writer: str
) -> None:
    graph = start(writer)
    old = faults.shown(graph.uri)

    with (
        arm_failpoints({BEFORE: fails_at(0)}),
        pytest.raises(StorageError, match="does not answer; nothing was written"),
    ):
        run(graph, writer)

    assert kinds(graph) == ["RolledBack"]
    is_never_done(graph, writer, old)


@pytest.mark.accepts("S-109", "S-110")
@pytest.mark.parametrize("writer", sample(WRITERS, 3))
def test_a_publisher_that_gives_up_has_written_nothing(
    start: Callable[[str], Graph], writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six attempts, then a typed conflict; no later write finishes what the caller was told of."""
    graph = start(writer)
    old = faults.shown(graph.uri)
    attempts = count(1)
    real = Coordinator.merge

    def contended(self: Coordinator, *args: Any, **options: Any) -> Any:
        if next(attempts) <= RETRY_BUDGET + 1:
            raise RowLevelCasContention("another writer was first")
        return real(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Coordinator, "merge", contended)
        with pytest.raises(ConflictError, match=r"exhausted 5 retries.*nothing was written"):
            run(graph, writer)

    assert next(attempts) == RETRY_BUDGET + 3  # the seventh was the publish of the undo
    is_never_done(graph, writer, old)


def test_a_schema_change_of_no_table_leaves_no_files_behind(start: Callable[[str], Graph]) -> None:
    """It has no sidecar: what it laid down beside the schema is taken back by itself."""
    graph = start("insert")
    old = faults.shown(graph.uri)

    with (
        arm_failpoints({BEFORE: fails_at(0)}),
        pytest.raises(StorageError, match="nothing was written"),
    ):
        graph.apply_schema(faults.INDEXED)

    assert list(Path(graph.uri).glob("*.staging")) == []
    assert faults.shown(graph.uri) == old
    assert graph.apply_schema(faults.INDEXED).applied


# The publish happens, whatever the store says


@pytest.mark.parametrize("writer", ["insert", "merge", "apply schema", "optimize"])
def test_a_publish_that_fails_after_it_took_effect_is_a_success(
    start: Callable[[str], Graph], writer: str
) -> None:
    graph = start(writer)

    with arm_failpoints({AFTER: fails_at(0)}) as hits:
        run(graph, writer)

    assert hits[AFTER] == 1
    assert kinds(graph) == []
    is_whole(graph)


def test_what_follows_the_publish_of_a_schema_is_no_reason_to_call_it_failed(
    start: Callable[[str], Graph], caplog: pytest.LogCaptureFixture
) -> None:
    graph = start("apply schema")

    with arm_failpoints({Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT: fails_at(0)}):
        assert graph.apply_schema(faults.WIDER).applied

    assert "does not answer" in caplog.text
    assert "email" in graph.schema
    graph.refresh()
    assert kinds(graph) == ["RolledForward"]
    assert list(Path(graph.uri).glob("*.staging")) == []
    is_whole(graph)


# A table cannot be committed


@pytest.mark.parametrize("writer", ["insert", "merge both", "apply schema"])
def test_a_table_that_fails_after_another_moved_undoes_both(
    start: Callable[[str], Graph], writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = start(writer)
    old = faults.shown(graph.uri)
    commits = count(1)
    real = TableStorage.commit_staged

    def second_fails(self: TableStorage, *args: Any, **options: Any) -> Any:
        if next(commits) == 2:
            raise StorageError("the store does not answer")
        return real(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(TableStorage, "commit_staged", second_fails)
        with pytest.raises(StorageError, match="nothing was written"):
            run(graph, writer)

    assert kinds(graph) == ["RolledBack"]
    is_never_done(graph, writer, old)


def test_a_merge_that_cannot_be_confirmed_is_undone(start: Callable[[str], Graph]) -> None:
    graph = start("merge both")
    old = faults.shown(graph.uri)

    with (
        arm_failpoints({Failpoint.RECOVERY_SIDECAR_CONFIRM: fails_at(0)}),
        pytest.raises(StorageError, match="nothing was written"),
    ):
        run(graph, "merge both")

    is_never_done(graph, "merge both", old)


# When the undo fails as well


@pytest.mark.parametrize(
    ("writer", "recovered_by"),
    [
        ("insert", "write"),
        ("merge", "refresh"),
        ("merge both", "write"),
        ("apply schema", "write"),
        ("apply schema", "open"),
        ("optimize", "refresh"),
    ],
)
def test_an_undo_that_fails_is_left_to_recovery_and_the_caller_is_told(
    start: Callable[[str], Graph], writer: str, recovered_by: str
) -> None:
    graph = start(writer)

    with (
        arm_failpoints({BEFORE: fails_at(0, 1)}),
        pytest.raises(RecoveryRequired, match="do not repeat it") as caught,
    ):
        run(graph, writer)

    assert [path.stem for path in sidecar_files(graph)] == [caught.value.operation_id]
    match recovered_by:
        case "write":
            mutate(graph, 'insert Team { name: "next" }')
        case "refresh":
            graph.refresh()
        case _:
            reopen(graph)
    assert len(kinds(graph)) == 1
    is_whole(graph)


@pytest.mark.parametrize("writer", ["insert", "merge both", "apply schema"])
@pytest.mark.parametrize(
    "point", [Failpoint.RECOVERY_AFTER_RESTORE, Failpoint.RECOVERY_AFTER_PUBLISH]
)
def test_a_crash_in_the_middle_of_an_undo_never_finishes_the_write(
    start: Callable[[str], Graph], writer: str, point: Failpoint
) -> None:
    """Some tables are restored, the schema is laid down in full: still it is undone."""
    graph = start(writer)
    old = faults.shown(graph.uri)

    with arm_failpoints({BEFORE: fails_at(0), point: "raise"}), pytest.raises(FailpointError):
        run(graph, writer)
    recovered = reopen(graph)

    assert kinds(recovered) == ["RolledBack"]
    is_never_done(recovered, writer, old)


def test_an_undo_whose_records_cannot_be_written_is_an_undo(start: Callable[[str], Graph]) -> None:
    graph = start("insert")

    with (
        arm_failpoints({BEFORE: fails_at(0), Failpoint.RECOVERY_RECORD_AUDIT: fails_at(0)}),
        pytest.raises(StorageError, match="nothing was written"),
    ):
        run(graph, "insert")

    graph.refresh()
    assert kinds(graph) == ["RolledBack"]
    assert "new" not in names(graph)
    is_whole(graph)


# Where a failed call may still arrive


@pytest.mark.parametrize("writer", ["insert", "merge", "apply schema"])
def test_without_locks_of_the_system_an_unknown_outcome_is_left_to_recovery(
    start: Callable[[str], Graph], writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object store may carry out a request after the client has given it up."""
    monkeypatch.setattr(WriteEnvironment, "has_system_locks", property(lambda _: False))
    graph = start(writer)

    with arm_failpoints({BEFORE: fails_at(0)}), pytest.raises(RecoveryRequired) as caught:
        run(graph, writer)

    assert [path.stem for path in sidecar_files(graph)] == [caught.value.operation_id]
    graph.refresh()
    assert kinds(graph) == ["RolledForward"]
    is_whole(graph)


# A writer that dies while another one waits for it


@pytest.mark.accepts("S-114", "S-118")
def test_a_writer_that_dies_while_another_waits_is_undone_by_the_one_that_waited(
    start: Callable[[str], Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recovery of the second has run already; it never runs beside the first while it lives."""
    graph = start("insert")
    signal_file, waiting = tmp_path / "go", threading.Event()
    code = (
        "from tests.recovery import work\n"
        f"work.write({graph.uri!r}, 'insert', 2, arm='commit.after_table=wait:{signal_file}')\n"
    )
    real = WriterQueues.acquire_many

    def seen(self: WriterQueues, *args: Any, **options: Any) -> Any:
        waiting.set()
        return real(self, *args, **options)

    results: list[object] = []

    def write() -> None:
        try:
            results.append(mutate(graph, 'insert Knows { from: "bob", to: "bob" }').commit_id)
        except OmnigraphError as error:
            results.append(error)

    with subprocess.Popen([sys.executable, "-c", code]) as other:
        while not signal_file.with_name("go.reached").exists():
            assert other.poll() is None
        monkeypatch.setattr("omnigraph.graph.session.recover_all", lambda *_, **__: 0)
        monkeypatch.setattr(WriterQueues, "acquire_many", seen)
        second = threading.Thread(target=write)
        second.start()
        assert waiting.wait(60)
        second.join(0.2)
        was_waiting = second.is_alive()
        other.kill()
        other.wait(60)
        second.join(60)
    monkeypatch.undo()

    assert was_waiting
    assert isinstance(results[0], str), results
    assert kinds(graph) == ["RolledBack"]
    assert "new" not in names(graph)
    is_whole(graph)


def test_a_write_that_must_be_undone_blocks_no_table(start: Callable[[str], Graph]) -> None:
    graph = start("insert")
    for point in (Failpoint.COMMIT_AFTER_TABLE, Failpoint.COMMIT_AFTER_SIDECAR):
        leave(graph, point, count=5)
        graph.mutate(work.NEXT, params={"name": str(point)})

    assert kinds(graph) == ["RolledBack", "RolledBack"]
    is_whole(graph)
