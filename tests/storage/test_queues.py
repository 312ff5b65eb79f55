"""Queues: one writer at a time, in this process and between processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import ConflictError, InvariantViolated
from omnigraph.storage.location import GraphRoot, graph_root
from omnigraph.storage.queues import LOCK_DIRECTORY, writer_queues
from tests.processes import PROCESSES
from tests.storage.racers import count_up, hold

A, B = ("node:A", None), ("node:B", "x")


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    return graph_root(str(tmp_path / "graph"))


def is_free(root: GraphRoot, key: tuple[str, str | None]) -> bool:
    """Whether another thread could take the queue now."""
    answer: list[bool] = []

    def attempt() -> None:
        try:
            writer_queues(root).acquire_many([key], timeout_seconds=0.05).release()
            answer.append(True)
        except ConflictError:
            answer.append(False)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return answer[0]


def test_a_graph_has_one_registry_whatever_its_spelling(root: GraphRoot) -> None:
    assert writer_queues(root) is writer_queues(graph_root(f"file://{root.uri}/"))


def test_held_queues_keep_others_out_and_only_those(root: GraphRoot) -> None:
    with writer_queues(root).acquire_many([B, A, A]) as guard:
        assert guard.keys == {A, B}
        assert not is_free(root, A)
        assert is_free(root, ("node:A", "x"))

    assert is_free(root, A)
    assert guard.keys == frozenset()


def test_a_queue_is_given_back_when_the_block_raises(root: GraphRoot) -> None:
    with pytest.raises(ZeroDivisionError), writer_queues(root).acquire_many([A]):
        _ = 1 / 0

    assert is_free(root, A)


def test_a_failed_attempt_holds_nothing(root: GraphRoot) -> None:
    with writer_queues(root).acquire_many([B]):
        failed: list[bool] = []

        def attempt() -> None:
            with pytest.raises(ConflictError, match="node:B"):
                writer_queues(root).acquire_many([A, B], timeout_seconds=0.05)
            failed.append(True)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()

        assert failed
        assert is_free(root, A)


def test_taking_a_held_queue_again_is_an_error_and_no_deadlock(root: GraphRoot) -> None:
    with (
        writer_queues(root).acquire_many([A]),
        pytest.raises(InvariantViolated, match="pass its guard"),
    ):
        writer_queues(root).acquire_many([A])

    assert is_free(root, A)


def test_releasing_twice_releases_once(root: GraphRoot) -> None:
    guard = writer_queues(root).acquire_many([A])
    guard.release()
    again = writer_queues(root).acquire_many([A])

    guard.release()

    assert not is_free(root, A)
    again.release()


def test_queues_are_taken_in_one_order_whatever_order_they_are_asked_in(root: GraphRoot) -> None:
    """A writer that waits for B holds A already: no two can each hold what the other wants."""
    queues = writer_queues(root)
    waiter = threading.Thread(target=lambda: queues.acquire_many([B, A]).release())
    with queues.acquire_many([B]):
        waiter.start()

        taken = False
        for _ in range(100):
            taken = taken or not is_free(root, A)
            time.sleep(0.01 if not taken else 0)

    waiter.join(60)
    assert taken
    assert is_free(root, A)


def test_processes_and_threads_exclude_each_other(root: GraphRoot, tmp_path: Path) -> None:
    """Each reads a number, waits, and writes one more; not one increment may be lost."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    arguments = (root.uri, str(counter), 30)
    processes = [PROCESSES.Process(target=count_up, args=arguments) for _ in range(3)]
    threads = [threading.Thread(target=count_up, args=arguments) for _ in range(2)]
    workers: list[Any] = [*processes, *threads]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)

    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert counter.read_text() == str(5 * 30)


def test_a_killed_holder_blocks_no_other_writer(root: GraphRoot) -> None:
    held = PROCESSES.Event()
    process = PROCESSES.Process(target=hold, args=(root.uri, held))
    process.start()
    assert held.wait(60)
    assert not is_free(root, A)

    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)

    with writer_queues(root).acquire_many([A, B], timeout_seconds=30) as guard:
        assert guard.keys == {A, B}


def test_waiting_can_be_interrupted(root: GraphRoot) -> None:
    """Ctrl-C reaches a writer that waits for another process, and leaves nothing held.

    Other code of the process may have asked for calls that go on after a signal: asyncio does. A
    suite that a shell runs in the background ignores the signal; this test does not.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.siginterrupt(signal.SIGINT, False)
    held = PROCESSES.Event()
    process = PROCESSES.Process(target=hold, args=(root.uri, held))
    process.start()
    assert held.wait(60)
    timer = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    timer.start()

    with pytest.raises(KeyboardInterrupt):
        writer_queues(root).acquire_many([A])

    signal.signal(signal.SIGINT, before)
    timer.join()
    process.kill()
    process.join(60)
    assert is_free(root, A)


def test_a_key_has_a_plain_file_of_its_own(root: GraphRoot) -> None:
    strange = [("node:A", "a/b"), ("node:A", "a-b"), ("node:" + "x" * 300, None), ("node:é", "..")]

    with writer_queues(root).acquire_many(strange):
        names = os.listdir(root.child(LOCK_DIRECTORY))

    assert len(names) == len(strange)
    assert all(name.endswith(".lock") and len(name) < 120 for name in names)


def test_an_object_store_has_in_process_queues_only() -> None:
    root = graph_root("s3://bucket/graph")

    with writer_queues(root).acquire_many([A]):
        assert not is_free(root, A)

    assert is_free(root, A)
